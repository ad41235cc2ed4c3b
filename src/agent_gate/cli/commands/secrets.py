"""`agent-gate secrets`: secrets in the vault, by the names under which a configuration refers to them."""

from typing import Any

import click

from agent_gate.cli.operator import add_listing, admin_group, read_secret, segment, tell
from agent_gate.cli.output import ago, table


def when(one: dict[str, Any]) -> str:
    return (
        ago(one["updated_at"])
        if one["updated_at"] is not None
        else f"not set; {', '.join(one['used_by'])} needs it"
    )


def listing(found: list[dict[str, Any]]) -> str:
    rows = [(one["name"], f"vault:{one['name']}", when(one)) for one in found]
    return table(("name", "write it as", "set"), rows, "The vault has no secrets.")


def used(said: dict[str, Any]) -> str:
    return f" {', '.join(said['used_by'])} will use it now." if said["used_by"] else ""


command = admin_group("Secrets that a configuration refers to as vault:NAME.")
add_listing(command, "/api/secrets", listing, "The names of the secrets; their values are shown nowhere.")


@command.command("set")
@click.argument("name")
@click.pass_context
def set_command(ctx: click.Context, name: str) -> None:
    """Keep a secret, read from a prompt or from standard input."""
    value = read_secret(f"Value of {name}")
    said = ctx.obj["client"].request("PUT", f"/api/secrets/{segment(name)}", {"value": value})
    tell(ctx, said, f"Kept {name}. Write it as vault:{name}.{used(said)}")


@command.command("remove")
@click.argument("name")
@click.pass_context
def remove_command(ctx: click.Context, name: str) -> None:
    """Forget a secret."""
    said = ctx.obj["client"].request("DELETE", f"/api/secrets/{segment(name)}")
    without = f" {', '.join(said['used_by'])} cannot connect without it." if said["used_by"] else ""
    tell(ctx, said, f"Removed {name}.{without}")
