"""Other machines that were paired with this gateway: their keys, the handshake, certificates, and what each may do."""
