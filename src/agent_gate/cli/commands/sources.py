"""`agent-gate sources`: where tools come from, how each source is, and what changed in its definitions."""

import shlex
from pathlib import Path
from typing import Any

import click

from agent_gate.approval.render import visible, visible_lines
from agent_gate.cli.operator import OperatorGroup, admin_options, client_of, segment, tell
from agent_gate.cli.output import ago, one_line, table


def listing(states: list[dict[str, Any]], changes: list[dict[str, Any]]) -> str:
    rows = [
        (s["key"], s["kind"], s["status"], ago(s["since"]), s["tools"], one_line(s["reason"])) for s in states
    ]
    headers = ("source", "kind", "state", "since", "tools", "reason")
    lines = [table(headers, rows, "No sources are configured.")]
    for change in changes:
        held = "held back until you accept it" if change["held"] else "served as it is now"
        lines += [
            "",
            visible(f"{change['source']}: {change['tool']} changed {ago(change['changed_at'])}; {held}"),
            visible_lines(change["diff"]),
        ]
        words = [
            "agent-gate",
            "sources",
            "accept",
            change["source"],
            change["tool"],
            "--pin",
            change["pin"][:12],
        ]
        lines.append(visible(f"Accept with: {shlex.join(words)}"))
    return "\n".join(lines)


@click.group(cls=OperatorGroup, invoke_without_command=True)
@admin_options
@click.pass_context
def command(ctx: click.Context, admin_socket: Path | None, config: Path | None, as_json: bool) -> None:
    """Sources, their state, and changed definitions."""
    client = client_of(admin_socket, config)
    ctx.obj = {"client": client, "json": as_json}
    if ctx.invoked_subcommand is None:
        states, changes = client.get("/api/sources"), client.get("/api/changes")
        tell(ctx, {"sources": states, "changes": changes}, listing(states, changes))


@command.command("reconnect")
@click.argument("source")
@click.pass_context
def reconnect_command(ctx: click.Context, source: str) -> None:
    """Try a source now instead of waiting for its next try, or take back one that was disconnected."""
    said = ctx.obj["client"].request("POST", f"/api/sources/{segment(source)}/connect")
    tell(ctx, said, f"Connecting {source}. See `agent-gate sources`.")


@command.command("disconnect")
@click.argument("source")
@click.pass_context
def disconnect_command(ctx: click.Context, source: str) -> None:
    """Close a source until `reconnect`, a change of its settings, or a restart."""
    said = ctx.obj["client"].request("POST", f"/api/sources/{segment(source)}/disconnect")
    back = f"agent-gate sources reconnect {shlex.quote(source)}"
    tell(ctx, said, f"Disconnected {source}. Take it back with `{back}`.")


@command.command("accept")
@click.argument("source")
@click.argument("tool")
@click.option("--pin", default="", help="Accept only the definition that was shown under this pin.")
@click.pass_context
def accept_command(ctx: click.Context, source: str, tool: str, pin: str) -> None:
    """Accept a changed definition as the one that is meant."""
    wanted = {"source": source, "tool": tool, "pin": pin}
    said = ctx.obj["client"].request("POST", "/api/changes/accept", wanted)
    tell(ctx, said, f"Accepted {tool}.")
