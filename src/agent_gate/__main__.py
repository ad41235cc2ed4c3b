"""`python -m agent_gate` is the `agent-gate` command."""

from agent_gate.cli.main import main

if __name__ == "__main__":
    main()
