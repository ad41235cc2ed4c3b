"""`agent-gate grants`: remembered answers, and taking them back."""

from typing import Any

import click

from agent_gate.cli.operator import add_listing, admin_group, segment, tell
from agent_gate.cli.output import ago, span, table


def lifetime(grant: dict[str, Any]) -> str:
    if grant["expires_at"] is None:
        return "until revoked"
    return f"{span(grant['expires_at'] - grant['created_at'])} from {ago(grant['created_at'])}"


def listing(grants: list[dict[str, Any]]) -> str:
    rows = [
        (g["id"][-8:], g["caller"], lifetime(g), g["created_by"], g["used"], g["signature"]) for g in grants
    ]
    return table(("id", "agent", "for", "by", "used", "allows"), rows, "There are no grants.")


command = admin_group("See remembered answers and revoke them.")
add_listing(command, "/api/grants", listing, "Every grant that still counts.")


@command.command("revoke")
@click.argument("grant_id")
@click.pass_context
def revoke_command(ctx: click.Context, grant_id: str) -> None:
    """Take a grant back; the next such call is asked again."""
    revoked = ctx.obj["client"].request("DELETE", f"/api/grants/{segment(grant_id)}")
    tell(ctx, revoked, f"Revoked {revoked['revoked'][-8:]}.")
