"""`agent-gate operators`: tokens with which programs use the admin API."""

from typing import Any

import click

from agent_gate.cli.operator import add_listing, admin_group, segment, tell
from agent_gate.cli.output import ago, table


def listing(tokens: list[dict[str, Any]]) -> str:
    rows = [(one["name"], one["person"], ago(one["created_at"])) for one in tokens]
    return table(("name", "answers as", "made"), rows, "There are no operator tokens.")


command = admin_group("See, make and revoke the tokens of programs that operate this gateway.")
add_listing(command, "/api/operators", listing, "Every operator token, by name.")


@command.command("make")
@click.argument("name")
@click.option("--as", "login", help="Whose answers it gives: a `login` under `people:`.")
@click.pass_context
def make_command(ctx: click.Context, name: str, login: str | None) -> None:
    """Make a token and print it; it is not shown again."""
    made = ctx.obj["client"].request("POST", "/api/operators", {"name": name, "login": login})
    tell(ctx, made, made["token"])


@command.command("revoke")
@click.argument("name")
@click.pass_context
def revoke_command(ctx: click.Context, name: str) -> None:
    """Revoke a token; it is refused from now on."""
    revoked = ctx.obj["client"].request("DELETE", f"/api/operators/{segment(name)}")
    tell(ctx, revoked, f"Revoked {revoked['revoked']}.")
