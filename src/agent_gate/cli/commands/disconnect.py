"""`agent-gate disconnect CLIENT`: put a client's configuration file back as it was before `connect`."""

import shlex

import click

from agent_gate.cli.client_tokens import forget_tokens
from agent_gate.cli.commands.connect import backups
from agent_gate.cli.importing import this_place
from agent_gate.cli.operator import reporting
from agent_gate.cli.output import json_option, print_json, say
from agent_gate.config.clients.backup import disconnect_file, require
from agent_gate.config.clients.registry import CLIENTS


@click.command()
@click.argument("client_name", metavar="CLIENT", type=click.Choice(list(CLIENTS)))
@json_option
def command(client_name: str, as_json: bool) -> None:
    """Put a client's file back as it was.

    A file that nobody changed since is restored byte for byte; in any other, only the gateway is taken out and the
    servers that it replaced come back.
    """
    with reporting():
        place = this_place()
        kept = backups(place)
        done = [(one.path, disconnect_file(kept, one)) for one in require(kept, client_name)]
        left = forget_tokens(client_name, place)
        if as_json:
            print_json(
                [{"file": str(path), "restored": "whole" if whole else "entry"} for path, whole in done]
            )
            return
        for path, whole in done:
            how = "byte for byte" if whole else "without the gateway; your later changes stay"
            say(f"Restored {path} {how}.")
        for agent, where in left:
            revoking = shlex.join(["agent-gate", "agents", "revoke", agent, "--admin-socket", where])
            say(f"Its gateway does not run and still knows it; when it runs again: {revoking}")
