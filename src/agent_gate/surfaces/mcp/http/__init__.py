"""Streamable HTTP: the endpoint, what a POST carries, and the challenge to who has no token."""
