"""`agent-gate completion SHELL`: the script that makes the shell complete commands, tools and arguments."""

import click
from click.shell_completion import get_completion_class

VARIABLE = "_AGENT_GATE_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script for SHELL.

    For bash: agent-gate completion bash > ~/.local/share/bash-completion/completions/agent-gate
    """
    kind = get_completion_class(shell)
    assert kind is not None
    root = click.get_current_context().find_root().command
    click.echo(kind(root, {}, "agent-gate", VARIABLE).source())
