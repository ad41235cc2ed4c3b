"""How callers come in. Thin: decode, `run(call)`, encode."""
