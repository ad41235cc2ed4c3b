"""TLS: the certificates that listeners show, whom clients trust, and both sides at once between paired machines."""
