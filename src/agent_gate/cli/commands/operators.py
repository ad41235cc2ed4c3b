"""`agent-gate operators`: tokens with which programs use the admin API."""

import click

from agent_gate.cli.operator import admin_group, reporting, segment
from agent_gate.cli.output import ago, print_json, table

command = admin_group("See, make and revoke the tokens of programs that operate this gateway.")


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def list_command(ctx: click.Context, as_json: bool = False) -> None:
    """Every operator token, by name."""
    with reporting():
        found = ctx.obj["client"].get("/api/operators")
        if as_json or ctx.obj["json"]:
            print_json(found)
            return
        rows = [(one["name"], one["person"], ago(one["created_at"])) for one in found]
        click.echo(table(("name", "answers as", "made"), rows) if rows else "There are no operator tokens.")


@command.command("make")
@click.argument("name")
@click.option("--as", "login", help="Whose answers it gives: a `login` under `people:`.")
@click.pass_context
def make_command(ctx: click.Context, name: str, login: str | None) -> None:
    """Make a token and print it; it is not shown again."""
    with reporting():
        made = ctx.obj["client"].request("POST", "/api/operators", {"name": name, "login": login})
        print_json(made) if ctx.obj["json"] else click.echo(made["token"])


@command.command("revoke")
@click.argument("name")
@click.pass_context
def revoke_command(ctx: click.Context, name: str) -> None:
    """Revoke a token; it is refused from now on."""
    with reporting():
        revoked = ctx.obj["client"].request("DELETE", f"/api/operators/{segment(name)}")
        print_json(revoked) if ctx.obj["json"] else click.echo(f"Revoked {revoked['revoked']}.")
