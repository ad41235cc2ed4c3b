"""Signed statements of other issuers: read strictly, checked against keys that the issuer publishes, never stored."""
