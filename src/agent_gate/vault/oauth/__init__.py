"""The client's half of OAuth: finding an authorization server, registering, asking, and exchanging for tokens."""
