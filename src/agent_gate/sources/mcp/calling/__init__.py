"""A caller's request to a server, whichever revisions the two speak, and the server's questions back to the caller."""
