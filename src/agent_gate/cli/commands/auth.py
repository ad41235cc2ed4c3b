"""`agent-gate auth`: the accounts of servers and services: sign in, paste a code, store a key, end."""

import shlex
import time
from typing import Any

import click

from agent_gate.approval.render import visible
from agent_gate.cli.operator import add_listing, admin_group, read_secret, segment, tell
from agent_gate.cli.output import ago, span, table

agent_option = click.option(
    "--agent", default="", help="The agent whose own account is meant, where each has one."
)


def standing(one: dict[str, Any]) -> str:
    if one["unconfirmed"]:
        return "to be confirmed"
    return "needs you" if one["needed"] else "connected" if one["connected"] else "not needed so far"


def listing(found: list[dict[str, Any]]) -> str:
    rows = [
        (
            f"{one['source']} for {one['agent']}" if one["agent"] else one["source"],
            standing(one),
            one["account"] or "",
            " ".join(one["scopes"]),
            span(one["expires_at"] - time.time()) if one["expires_at"] else "",
            ago(one["renewed_at"]) if one["renewed_at"] else "",
            one["reason"],
        )
        for one in found
    ]
    headers = ("source", "account", "as", "scopes", "ends", "refreshed", "reason")
    return table(headers, rows, "Every source has its credential in the configuration.")


def begun(source: str, said: dict[str, Any]) -> str:
    """What the person does next."""
    if said.get("connected"):
        return f"Connected {source}."
    if code := said.get("user_code"):
        return visible(
            f"Open {said['auth_url']} and enter the code {code}. {source} connects by itself then."
        )
    link, code = visible(said["auth_url"]), f"`agent-gate auth code {shlex.quote(source)}`"
    return f"Open this link and sign in:\n{link}\nIf the browser ends at an address that does not open, copy it: {code}"


command = admin_group("Accounts of servers and services.")

AS_IT_IS = {"ignore_unknown_options": True, "help_option_names": ["--help"]}
"""A code of somebody else's may begin with a dash, and no letter of it is an option."""


def act(ctx: click.Context, source: str, verb: str, body: dict[str, str] | None = None) -> Any:
    return ctx.obj["client"].request("POST", f"/servers/{segment(source)}/auth/{verb}", body)


add_listing(command, "/api/connections", listing, "Which are connected, and which need you.")


@command.command("start")
@click.argument("source")
@agent_option
@click.pass_context
def start_command(ctx: click.Context, source: str, agent: str) -> None:
    """Begin a sign-in: a link to click, or a code to type in."""
    said = act(ctx, source, "start", {"agent": agent})
    tell(ctx, said, begun(source, said))


@command.command("code", context_settings=AS_IT_IS)
@click.argument("source_or_code", required=False, default="")
@agent_option
@click.pass_context
def code_command(ctx: click.Context, source_or_code: str, agent: str) -> None:
    """Finish a sign-in with the code, or the address, that the browser ended with; by itself, or for SOURCE from a
    prompt or standard input."""
    client = ctx.obj["client"]
    if source_or_code in {one["key"] for one in client.get("/api/sources")}:
        body = {"code": read_secret("Code or address"), "agent": agent}
        said = act(ctx, source_or_code, "code", body)
    else:
        code = source_or_code or read_secret("Code or address")
        said = client.request("POST", "/api/connections/code", {"code": code})
    tell(ctx, said, visible(said["message"]))


@command.command("key")
@click.argument("source")
@agent_option
@click.pass_context
def key_command(ctx: click.Context, source: str, agent: str) -> None:
    """Store a key, read from a prompt or from standard input, and check it at once."""
    said = act(ctx, source, "key", {"key": read_secret(f"Key of {source}"), "agent": agent})
    tell(ctx, said, visible(said["message"]))


@command.command("end")
@click.argument("source")
@agent_option
@click.pass_context
def end_command(ctx: click.Context, source: str, agent: str) -> None:
    """Forget an account, and revoke its tokens where that is offered."""
    said = act(ctx, source, "end", {"agent": agent})
    tell(ctx, said, visible(f"Ended. {said['message']}"))
