"""`agent-gate tools`: what this agent may call."""

import click
import msgspec

from agent_gate.cli.agent import ConnectOptions, connection_options, run, write_json
from agent_gate.cli.suggest import complete_tool


@click.command()
@click.argument("names", nargs=-1, shell_complete=complete_tool)
@connection_options
def command(connection: ConnectOptions, names: tuple[str, ...]) -> None:
    """Print the tools this agent may call, or those of them that are named, as a JSON array."""
    found = run(lambda client: client.tools(names or None, timeout=connection.timeout), connection)
    write_json(msgspec.json.encode(found))
