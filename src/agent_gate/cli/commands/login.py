"""`agent-gate login`: a fresh one-time link to the operator's page."""

import sys
from pathlib import Path

import click

from agent_gate.cli.operator import admin_options, client_of, reporting
from agent_gate.cli.output import print_json, put, say
from agent_gate.cli.qrcode import code_for_a_phone


@click.command()
@click.option("--as", "login", help="Log in as this person: their `login` under `people:`.")
@admin_options
def command(login: str | None, admin_socket: Path | None, config: Path | None, as_json: bool) -> None:
    """Print a link to the operator's page; it works once, for 15 minutes."""
    with reporting():
        made = client_of(admin_socket, config).request("POST", "/api/logins", {"login": login})
    if as_json:
        print_json(made)
        return
    put(made["url"])
    if sys.stdout.isatty() and (code := code_for_a_phone(made["url"])):
        say(code)
