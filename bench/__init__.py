"""What the gateway costs, measured on this machine: `python -m bench`."""
