"""`agent-gate agents`: who may call, and the tokens that were made for them."""

from typing import Any

import click

from agent_gate.cli.operator import admin_group, reporting, segment, tell
from agent_gate.cli.output import table


def listing(agents: list[dict[str, Any]]) -> str:
    rows = [
        (
            one["name"],
            one["mode"],
            "all" if one["namespaces"] is None else ", ".join(one["namespaces"]),
            one["tools"],
            "made here" if one["made_here"] else "configuration",
        )
        for one in agents
    ]
    return table(("name", "mode", "sees", "tools", "token"), rows, "There are no agents.")


command = admin_group("See agents, make new ones, revoke those made here.")


@command.command("list")
@click.pass_context
def list_command(ctx: click.Context) -> None:
    """Every agent, what it sees and where its token is kept."""
    with reporting():
        found = ctx.obj["client"].get("/api/agents")
        tell(ctx, found, listing(found))


@command.command("make")
@click.argument("name")
@click.option("--mode", type=click.Choice(["full", "proxy", "gateway"]), default="full", show_default=True)
@click.option("--namespace", "namespaces", multiple=True, help="A source it sees; several times for several.")
@click.pass_context
def make_command(ctx: click.Context, name: str, mode: str, namespaces: tuple[str, ...]) -> None:
    """Make an agent and print its token; it is not shown again."""
    with reporting():
        wanted = {"name": name, "mode": mode, "namespaces": list(namespaces) or None}
        made = ctx.obj["client"].request("POST", "/api/agents", wanted)
        tell(ctx, made, made["token"])


@command.command("revoke")
@click.argument("name")
@click.pass_context
def revoke_command(ctx: click.Context, name: str) -> None:
    """Revoke the token of an agent made here; it is refused from now on."""
    with reporting():
        revoked = ctx.obj["client"].request("DELETE", f"/api/agents/{segment(name)}")
        tell(ctx, revoked, f"Revoked {revoked['revoked']}.")
