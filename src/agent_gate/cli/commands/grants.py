"""`agent-gate grants`: remembered answers, and taking them back."""

import click

from agent_gate.cli.operator import admin_group, reporting, segment
from agent_gate.cli.output import ago, print_json, span, table

command = admin_group("See remembered answers and revoke them.")


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def list_command(ctx: click.Context, as_json: bool = False) -> None:
    """Every grant that still counts."""
    with reporting():
        found = ctx.obj["client"].get("/api/grants")
        if as_json or ctx.obj["json"]:
            print_json(found)
            return
        rows = [
            (
                g["id"][-8:],
                g["caller"],
                "until revoked"
                if g["expires_at"] is None
                else f"{span(g['expires_at'] - g['created_at'])} from {ago(g['created_at'])}",
                g["created_by"],
                g["used"],
                g["signature"],
            )
            for g in found
        ]
        click.echo(
            table(("id", "agent", "for", "by", "used", "allows"), rows) if rows else "There are no grants."
        )


@command.command("revoke")
@click.argument("grant_id")
@click.pass_context
def revoke_command(ctx: click.Context, grant_id: str) -> None:
    """Take a grant back; the next such call is asked again."""
    with reporting():
        revoked = ctx.obj["client"].request("DELETE", f"/api/grants/{segment(grant_id)}")
        print_json(revoked) if ctx.obj["json"] else click.echo(f"Revoked {revoked['revoked'][-8:]}.")
