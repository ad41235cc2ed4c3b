"""`tools/list` and `tools/call`: the lists, the calls, and how their outcomes look."""
