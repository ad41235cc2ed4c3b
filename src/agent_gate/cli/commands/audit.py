"""`agent-gate audit`: the record of every call, and the proof that nobody changed it."""

import sys
from typing import Any

import click

from agent_gate.approval.render import visible
from agent_gate.cli.operator import admin_group, reporting, segment, tell
from agent_gate.cli.output import clock, paint, print_json, put_bytes, say, table


def line(row: dict[str, Any]) -> tuple[object, ...]:
    body = row["body"]
    what = body.get("signature") or (body.get("error") or {}).get("message") or body.get("by") or ""
    return (
        clock(row["at"]),
        row["call"][-8:],
        row["caller"],
        row["state"],
        row["tool"].partition("#")[0],
        what,
    )


def whole(row: dict[str, Any]) -> str:
    """A row and everything in it."""
    head = f"{clock(row['at'])}  {paint(row['state'])}  (row {row['seq']} of {row['chain']})"
    return "\n".join([head, *(f"    {name}: {visible(str(value))}" for name, value in row["body"].items())])


command = admin_group("Read, verify and export the record.", "tail")


@command.command("tail")
@click.option("-n", "count", default=20, show_default=True, help="How many rows.")
@click.option("--agent", help="Only this agent's calls.")
@click.option("--state", help="Only rows with this state.")
@click.option("--text", help="Only rows that hold this text.")
@click.pass_context
def tail_command(
    ctx: click.Context,
    count: int = 20,
    agent: str | None = None,
    state: str | None = None,
    text: str | None = None,
) -> None:
    """The newest rows, oldest of them first."""
    chosen = {"caller": agent, "state": state, "text": text}
    query = "".join(f"&{name}={segment(value)}" for name, value in chosen.items() if value)
    with reporting():
        rows = ctx.obj["client"].get(f"/api/calls?limit={count}{query}")["rows"][::-1]
        headers = ("time", "call", "agent", "state", "tool", "what")
        tell(ctx, rows, table(headers, [line(row) for row in rows], "The record is empty."))


@command.command("show")
@click.argument("call_id")
@click.pass_context
def show_command(ctx: click.Context, call_id: str) -> None:
    """Every row of one call (its id, or the last characters of it)."""
    with reporting():
        rows = ctx.obj["client"].get(f"/api/calls/{segment(call_id)}")
        tell(ctx, rows, "\n".join(whole(row) for row in rows))


@command.command("verify")
@click.pass_context
def verify_command(ctx: click.Context) -> None:
    """Check that no row was changed, removed or reordered."""
    with reporting():
        # A record of years takes minutes; a gateway that dies meanwhile ends the wait.
        report = ctx.obj["client"].get("/api/audit/verify", timeout=None)
    if ctx.obj["json"]:
        print_json(report)
    elif report["ok"]:
        say(
            f"The record is whole: {report['rows']} rows, {report['seals']} seals, {report['unsealed']} rows since the last seal."
        )
    else:
        for problem in report["problems"]:
            say(f"{problem['chain']} {problem['seq']}: {problem['text']}", err=True)
    if not report["ok"]:
        sys.exit(1)


@command.command("export")
@click.option("--format", "kind", type=click.Choice(["jsonl", "csv"]), default="jsonl", show_default=True)
@click.pass_context
def export_command(ctx: click.Context, kind: str) -> None:
    """The whole record on standard output."""
    with reporting():
        for portion in ctx.obj["client"].portions(f"/api/audit/export?format={kind}"):
            put_bytes(portion)
