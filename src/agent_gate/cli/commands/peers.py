"""`agent-gate peers`: who is paired with this gateway, until when, and taking it back."""

from typing import Any

import click

from agent_gate.cli.operator import add_listing, admin_group, segment, tell
from agent_gate.cli.output import ago, clock, table


def listing(peers: list[dict[str, Any]]) -> str:
    rows = [
        (
            one["name"],
            one["component_type"],
            one["status"],
            one["endpoint"],
            clock(one["not_after"]) if one["not_after"] else "",
            ago(one["last_seen"]),
        )
        for one in peers
    ]
    headers = ("name", "type", "status", "endpoint", "certificate ends", "seen")
    return table(headers, rows, "Nobody is paired. Pair a host with `agent-gate pair tool URL NAME`.")


def page(one: dict[str, Any]) -> str:
    rows = [(name.replace("_", " "), "" if value is None else value) for name, value in one.items()]
    return table(("", ""), rows)


command = admin_group("See who is paired, trust, renew or revoke it.")
add_listing(command, "/api/peers", listing, "Every peer, its state and its certificate's end.")


@command.command("show")
@click.argument("name")
@click.pass_context
def show_command(ctx: click.Context, name: str) -> None:
    """Everything that is known of one peer."""
    found = ctx.obj["client"].get(f"/api/peers/{segment(name)}")
    tell(ctx, found, page(found))


@command.command("revoke")
@click.argument("name")
@click.pass_context
def revoke_command(ctx: click.Context, name: str) -> None:
    """Take a peer's access back; its next request is refused."""
    found = ctx.obj["client"].request("DELETE", f"/api/peers/{segment(name)}")
    tell(ctx, found, f"Revoked {name}.")


@command.command("rotate")
@click.argument("name")
@click.pass_context
def rotate_command(ctx: click.Context, name: str) -> None:
    """Give a peer a new certificate now; the old one counts no more."""
    found = ctx.obj["client"].request("POST", f"/v1/peers/{segment(name)}/rotate", {})
    tell(ctx, found, f"{name} has a new certificate, {found['certificate']}.")


@command.command("trust")
@click.argument("name")
@click.option("--no", "distrust", is_flag=True, help="Believe it no more.")
@click.pass_context
def trust_command(ctx: click.Context, name: str, distrust: bool) -> None:
    """Believe what a host says of its tools: that they are idempotent, or have no side effects."""
    wanted = {"trusted": not distrust}
    found = ctx.obj["client"].request("POST", f"/api/peers/{segment(name)}/trust", wanted)
    tell(ctx, found, f"{name} is {'not ' if distrust else ''}trusted.")
