"""`agent-gate vault`: the key under which the gateway keeps secrets and accounts."""

from pathlib import Path
from typing import Any

import click

from agent_gate.cli.operator import OperatorGroup, admin_options, client_of, reporting, tell


def described(found: dict[str, Any]) -> str:
    if not found["open"]:
        return f"{found['fault']}\n{found['values']} values cannot be read."
    return (
        f"{found['values']} values, sealed with the key {found['key']}.\n"
        f"That key is wrapped by {found['master']}, from {found['where']}."
    )


@click.group(cls=OperatorGroup, invoke_without_command=True)
@admin_options
@click.pass_context
def command(ctx: click.Context, admin_socket: Path | None, config: Path | None, as_json: bool) -> None:
    """The vault and its key."""
    with reporting():
        client = client_of(admin_socket, config)
        ctx.obj = {"client": client, "json": as_json}
        if ctx.invoked_subcommand is None:
            show(ctx)


def show(ctx: click.Context) -> None:
    found = ctx.obj["client"].get("/api/vault")
    tell(ctx, found, described(found))


@command.command("status")
@click.pass_context
def status_command(ctx: click.Context) -> None:
    """Where the key comes from, and how much it seals."""
    with reporting():
        show(ctx)


@command.command("rotate")
@click.pass_context
def rotate_command(ctx: click.Context) -> None:
    """Seal everything with a new key; a key file is replaced too."""
    with reporting():
        said = ctx.obj["client"].request("POST", "/api/vault/rotate")
        tell(ctx, said, f"Sealed {said['values']} values with the new key {said['key']}.")


@command.command("forget")
@click.confirmation_option(prompt="Everything in the vault is lost. Go on?")
@click.pass_context
def forget_command(ctx: click.Context) -> None:
    """Empty a vault whose key is lost, and begin anew."""
    with reporting():
        said = ctx.obj["client"].request("POST", "/api/vault/forget")
        tell(ctx, said, f"Gave up {said['forgotten']} values. The vault is empty and open.")
