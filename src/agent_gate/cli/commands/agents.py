"""`agent-gate agents`: who may call, and the tokens that were made for them."""

import click

from agent_gate.cli.operator import admin_group, reporting, segment
from agent_gate.cli.output import print_json, table

command = admin_group("See agents, make new ones, revoke those made here.")


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def list_command(ctx: click.Context, as_json: bool = False) -> None:
    """Every agent, what it sees and where its token is kept."""
    with reporting():
        found = ctx.obj["client"].get("/api/agents")
        if as_json or ctx.obj["json"]:
            print_json(found)
            return
        rows = [
            (
                one["name"],
                one["mode"],
                "all" if one["namespaces"] is None else ", ".join(one["namespaces"]),
                one["tools"],
                "made here" if one["made_here"] else "configuration",
            )
            for one in found
        ]
        click.echo(
            table(("name", "mode", "sees", "tools", "token"), rows) if rows else "There are no agents."
        )


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
        print_json(made) if ctx.obj["json"] else click.echo(made["token"])


@command.command("revoke")
@click.argument("name")
@click.pass_context
def revoke_command(ctx: click.Context, name: str) -> None:
    """Revoke the token of an agent made here; it is refused from now on."""
    with reporting():
        revoked = ctx.obj["client"].request("DELETE", f"/api/agents/{segment(name)}")
        print_json(revoked) if ctx.obj["json"] else click.echo(f"Revoked {revoked['revoked']}.")
