"""The numbered files that make the schema, applied in order by `store.migrate`."""
