"""What clients hear of without asking: change notices, and who subscribed to what."""
