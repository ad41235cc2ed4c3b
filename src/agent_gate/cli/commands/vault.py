"""`agent-gate vault`: the key under which the gateway keeps secrets and accounts."""

from typing import Any

import click

from agent_gate.cli.operator import add_listing, admin_group, tell


def described(found: dict[str, Any]) -> str:
    if not found["open"]:
        return f"{found['fault']}\n{found['values']} values cannot be read."
    return (
        f"{found['values']} values, sealed with the key {found['key']}.\n"
        f"That key is wrapped by {found['master']}, from {found['where']}."
    )


command = admin_group("The vault and its key.", first="status")
add_listing(
    command, "/api/vault", described, "Where the key comes from, and how much it seals.", name="status"
)


@command.command("rotate")
@click.pass_context
def rotate_command(ctx: click.Context) -> None:
    """Seal everything with a new key; a key file is replaced too."""
    said = ctx.obj["client"].request("POST", "/api/vault/rotate")
    tell(ctx, said, f"Sealed {said['values']} values with the new key {said['key']}.")


@command.command("forget")
@click.confirmation_option(prompt="Everything in the vault is lost. Go on?")
@click.pass_context
def forget_command(ctx: click.Context) -> None:
    """Empty a vault whose key is lost, and begin anew."""
    said = ctx.obj["client"].request("POST", "/api/vault/forget")
    tell(ctx, said, f"Gave up {said['forgotten']} values. The vault is empty and open.")
