"""MCP servers to connect to: their settings, and how they are read from our files and from other clients'."""
