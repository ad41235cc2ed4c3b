"""`agent-gate entries`: changes of the configuration made on the page that wait for a yes here."""

from typing import Any

import click

from agent_gate.approval.render import visible, visible_lines
from agent_gate.cli.operator import admin_group, reporting, segment, tell


def listing(held: list[dict[str, Any]]) -> str:
    """What waits, with nothing in it that a terminal would show as something else than it is."""
    if not held:
        return "No change waits for a yes."
    return "\n".join(
        f"{one['id']}  {visible(one['entry'])}, by {visible(one['person'])}\n{visible_lines(one['diff'])}"
        for one in held
    )


command = admin_group("Changes made on the page that start a program, and wait for a yes on this machine.")


@command.command("list")
@click.pass_context
def list_command(ctx: click.Context) -> None:
    """Every change that waits, with what it makes of the file."""
    with reporting():
        found = ctx.obj["client"].get("/api/entries/held")
        tell(ctx, found, listing(found))


@command.command("accept")
@click.argument("change")
@click.pass_context
def accept_command(ctx: click.Context, change: str) -> None:
    """Write a change into the file and use it."""
    with reporting():
        said = ctx.obj["client"].request("POST", f"/api/entries/held/{segment(change)}")
        tell(ctx, said, f"{said['accepted']} is in {said['file']} and counts from now on.")
