"""Secrets that the gateway keeps for others, sealed in the store: nobody reads them without the vault's key."""
