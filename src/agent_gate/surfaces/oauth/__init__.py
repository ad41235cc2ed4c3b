"""The gateway as an authorization server of its own, on the public listener: nothing is ever answered here."""
