"""What a migration of the same number does beside its own statements where the engine is PostgreSQL."""
