"""`agent-gate agents`: who may call, and the tokens that were made for them."""

from typing import Any

import click

from agent_gate.cli.operator import add_listing, admin_group, segment, tell
from agent_gate.cli.output import ago, table


def listing(agents: list[dict[str, Any]]) -> str:
    rows = [
        (
            one["name"],
            one["mode"],
            "all" if one["namespaces"] is None else ", ".join(one["namespaces"]),
            one["tools"],
            token_of(one),
        )
        for one in agents
    ]
    return table(("name", "mode", "sees", "tools", "token"), rows, "There are no agents.")


def token_of(agent: dict[str, Any]) -> str:
    """Where its token comes from; of one that signed in, through which client."""
    signed_in = agent["signed_in"]
    if signed_in is not None:
        return f"signed in by {signed_in['client']}, seen {ago(signed_in['last_seen'])}"
    return "made here" if agent["made_here"] else "configuration"


command = admin_group("See agents, make new ones, revoke those made here or signed in.")
add_listing(command, "/api/agents", listing, "Every agent, what it sees and where its token is kept.")


@command.command("make")
@click.argument("name")
@click.option("--mode", type=click.Choice(["full", "proxy", "gateway"]), default="full", show_default=True)
@click.option("--namespace", "namespaces", multiple=True, help="A source it sees; several times for several.")
@click.pass_context
def make_command(ctx: click.Context, name: str, mode: str, namespaces: tuple[str, ...]) -> None:
    """Make an agent and print its token; it is not shown again."""
    wanted = {"name": name, "mode": mode, "namespaces": list(namespaces) or None}
    made = ctx.obj["client"].request("POST", "/api/agents", wanted)
    tell(ctx, made, made["token"])


@command.command("revoke")
@click.argument("name")
@click.pass_context
def revoke_command(ctx: click.Context, name: str) -> None:
    """Revoke an agent made here, or one that signed in; it is refused from now on."""
    revoked = ctx.obj["client"].request("DELETE", f"/api/agents/{segment(name)}")
    tell(ctx, revoked, f"Revoked {revoked['revoked']}.")


@command.command("invite")
@click.pass_context
def invite_command(ctx: click.Context) -> None:
    """Print a link for somebody who wants to sign in: no limit on sign-ins holds it up. It works once, for a day."""
    made = ctx.obj["client"].request("POST", "/api/invites")
    tell(ctx, made, made["url"])
