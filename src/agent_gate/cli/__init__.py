"""The command `agent-gate`: a module for each of its commands, and what several of them share."""
