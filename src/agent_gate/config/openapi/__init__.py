"""OpenAPI documents into tool files: read once, looked through by a person, and from then on plain YAML."""
