"""Services declared in YAML: their settings, their tools, and how both are read."""
