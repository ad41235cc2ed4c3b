"""Where tools come from. Each folder is one kind of source; the supervisor keeps them connected.

Kinds register through the entry point group `agent_gate.sources`, the built-in ones too.
"""
