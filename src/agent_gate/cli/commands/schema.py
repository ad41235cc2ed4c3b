"""`agent-gate schema`: JSON Schema of the files, for editors."""

import click

from agent_gate.cli.output import print_json
from agent_gate.config.schema import SCHEMAS


@click.command()
@click.argument("file", type=click.Choice(sorted(SCHEMAS)), default="config")
def command(file: str) -> None:
    """Print the JSON Schema of a configuration file."""
    print_json(SCHEMAS[file]())
