"""`agent-gate login`: a fresh one-time link to the operator's page."""

from pathlib import Path

import click

from agent_gate.cli.operator import admin_options, client_of, reporting
from agent_gate.cli.output import print_json, put


@click.command()
@click.option("--as", "login", help="Log in as this person: their `login` under `people:`.")
@admin_options
def command(login: str | None, admin_socket: Path | None, config: Path | None, as_json: bool) -> None:
    """Print a link to the operator's page; it works once, for 15 minutes."""
    with reporting():
        made = client_of(admin_socket, config).request("POST", "/api/logins", {"login": login})
        print_json(made) if as_json else put(made["url"])
