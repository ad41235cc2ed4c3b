"""`agent-gate tokens`: what the catalog costs each agent's context in each mode, and which mode to use."""

from pathlib import Path
from typing import Any

import click

from agent_gate.cli.operator import admin_options, client_of, reporting
from agent_gate.cli.output import print_json, say, table

MODES = ("full", "proxy", "gateway")


def of_agent(found: dict[str, Any]) -> str:
    rows = [
        (
            mode,
            found["upfront"][mode],
            found["callable_within"][mode],
            "← now" if mode == found["mode"] else "",
        )
        for mode in MODES
    ]
    costs = table(("mode", "tokens up front", "until a tool is callable", ""), rows)
    servers = table(
        ("namespace", "tools", "full", "proxy"),
        [(s["namespace"], s["tools"], s["full"], s["proxy"]) for s in found["servers"]],
    )
    advice = f"Recommended: mode: {found['recommended']} ({found['reason']})."
    return f"{found['agent']}: {found['tools']} tools\n{costs}\n{servers}\n{advice}"


@click.command()
@admin_options
def command(admin_socket: Path | None, config: Path | None, as_json: bool) -> None:
    """What the catalog costs in tokens, per mode, server and agent."""
    with reporting():
        found = client_of(admin_socket, config).get("/api/economy")
        print_json(found) if as_json else say("\n\n".join(map(of_agent, found)))
        if not as_json:
            say("\nHosts with their own tool search (Claude Code among them) are often better off with full.")
