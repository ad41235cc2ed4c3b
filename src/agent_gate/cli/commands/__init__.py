"""The commands, a module each; `cli/main.py` names them, and loads the one that was typed."""
