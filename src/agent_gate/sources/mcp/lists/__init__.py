"""What a server offers: its lists read and cleaned, and read again when it says that they changed."""
