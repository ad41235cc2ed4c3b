"""A server's own process: `child` starts and ends it, `launch` is the guard above it."""
