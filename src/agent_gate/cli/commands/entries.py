"""`agent-gate entries`: changes of the configuration made on the page that wait for a yes here."""

from typing import Any

import click

from agent_gate.approval.render import visible, visible_lines
from agent_gate.cli.operator import add_listing, admin_group, segment, tell


def listing(held: list[dict[str, Any]]) -> str:
    """What waits, with nothing in it that a terminal would show as something else than it is."""
    if not held:
        return "No change waits for a yes."
    return "\n".join(
        f"{one['id']}  {visible(one['entry'])}, by {visible(one['person'])}\n{visible_lines(one['diff'])}"
        for one in held
    )


command = admin_group("Changes made on the page that start a program, and wait for a yes on this machine.")
add_listing(command, "/api/entries/held", listing, "Every change that waits, with what it makes of the file.")


@command.command("accept")
@click.argument("change")
@click.pass_context
def accept_command(ctx: click.Context, change: str) -> None:
    """Write a change into the file and use it."""
    said = ctx.obj["client"].request("POST", f"/api/entries/held/{segment(change)}")
    tell(ctx, said, f"{said['accepted']} is in {said['file']} and counts from now on.")
