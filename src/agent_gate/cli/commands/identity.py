"""`agent-gate identity`: the gateway's public key, which hosts are given as `gateway_public_key_ed25519`."""

from pathlib import Path

import click

from agent_gate.cli.operator import admin_options, client_of, reporting
from agent_gate.cli.output import print_json, say


@click.command()
@admin_options
def command(admin_socket: Path | None, config: Path | None, as_json: bool) -> None:
    """Print the public key that tool hosts are given, so that they believe this gateway and no other."""
    with reporting():
        found = client_of(admin_socket, config).get("/v1/identity")
        print_json(found) if as_json else say(found["public_key_ed25519"])
