"""`agent-gate audit`: the record of every call, and the proof that nobody changed it."""

import sys
import time
from itertools import chain
from typing import Any

import click

from agent_gate.approval.render import named, visible
from agent_gate.approval.render import whole as shown_whole
from agent_gate.cli.commands.policy import seconds_of
from agent_gate.cli.operator import AdminClient, admin_group, segment, tell
from agent_gate.cli.output import clock, paint, print_json, put_bytes, say, table

LATELY = 1e9
"""A number with a fraction beyond this is a moment: seconds since 1970."""
HEADERS = ("time", "call", "agent", "state", "tool", "what")
MOST_AT_ONCE = 1000


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
    return "\n".join([head, *(line for name, value in row["body"].items() for line in lines_of(name, value))])


def lines_of(name: str, value: Any, depth: int = 1) -> list[str]:
    """One member in our own form: what is nested is indented, what is empty is left out."""
    indent = "    " * depth
    if value in (None, "", [], {}):
        return []
    if isinstance(value, dict):
        inner = [line for key, one in value.items() for line in lines_of(key, one, depth + 1)]
        return [f"{indent}{named(name)}:", *inner]
    return [f"{indent}{named(name)}: {in_words(name, value)}"]


def in_words(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and (value > LATELY or name.endswith("_at")):
        return clock(value)
    if isinstance(value, list) and not any(isinstance(one, dict | list) for one in value):
        return ", ".join(in_words(name, one) for one in value)
    return visible(value) if isinstance(value, str) else shown_whole(value)


command = admin_group("Read, verify and export the record.", "tail")


@command.command("tail")
@click.option("-n", "count", type=click.IntRange(1, MOST_AT_ONCE), help="How many rows; 20 by default.")
@click.option("--agent", help="Only this agent's calls.")
@click.option("--state", help="Only rows with this state.")
@click.option("--text", help="Only rows that hold this text.")
@click.option(
    "--since", help="Only rows of that time, with all of them unless -n is given: 30m, 12h, 7d, 2w."
)
@click.option("-f", "--follow", is_flag=True, help="Stay and show rows as they come.")
@click.pass_context
def tail_command(
    ctx: click.Context,
    count: int | None = None,
    agent: str | None = None,
    state: str | None = None,
    text: str | None = None,
    since: str | None = None,
    follow: bool = False,
) -> None:
    """The newest rows, oldest of them first."""
    chosen = {"caller": agent, "state": state, "text": text}
    query = "".join(f"&{name}={segment(value)}" for name, value in chosen.items() if value)
    client: AdminClient = ctx.obj["client"]
    began = f"&since={time.time() - seconds_of(since)}" if since else ""
    most = count or (MOST_AT_ONCE if since else 20)
    rows = look_back(client, f"{query}{began}", most)[::-1]
    tell(ctx, rows, table(HEADERS, [line(row) for row in rows], "" if follow else "There are no rows."))
    if follow:
        follow_rows(ctx, client, query, rows)


def look_back(client: AdminClient, query: str, most: int) -> list[dict[str, Any]]:
    """The newest rows that fit. A long record is looked through in steps, and each says how far back it came."""
    rows: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = client.get(f"/api/calls?limit={most - len(rows)}{query}{cursor}")
        rows += page["rows"]
        if page.get("back_to") is None or len(rows) >= most:
            return rows
        say(
            f"Looked back to {clock(page['back_to'])}; going on. Ctrl-C ends it, --since bounds it.", err=True
        )
        cursor = f"&cursor={page['next']}"


def follow_rows(ctx: click.Context, client: AdminClient, query: str, shown: list[dict[str, Any]]) -> None:
    """Each row once, as it comes, until interrupted."""
    sys.stdout.flush()
    at = shown[-1]["at"] if shown else time.time()
    seen = {(row["chain"], row["seq"]) for row in shown}
    try:
        told = client.events("/api/events")
        for kind in chain(["calls"], (kind for kind, _ in told)):
            if kind != "calls":
                continue
            found = client.get(f"/api/calls?limit={MOST_AT_ONCE}{query}&since={at}")["rows"][::-1]
            fresh = [row for row in found if (row["chain"], row["seq"]) not in seen]
            for row in fresh:
                tell(ctx, row, "  ".join(map(str, line(row))))
            sys.stdout.flush()
            at = max([at, *(row["at"] for row in fresh)])
            seen = {(row["chain"], row["seq"]) for row in found}
    except KeyboardInterrupt:
        sys.exit(0)


@command.command("show")
@click.argument("call_id")
@click.pass_context
def show_command(ctx: click.Context, call_id: str) -> None:
    """Every row of one call (its id, or the last characters of it)."""
    rows = ctx.obj["client"].get(f"/api/calls/{segment(call_id)}")
    tell(ctx, rows, "\n".join(whole(row) for row in rows))


@command.command("verify")
@click.pass_context
def verify_command(ctx: click.Context) -> None:
    """Check that no row was changed, removed or reordered."""
    # A record of years takes minutes; a gateway that dies meanwhile ends the wait.
    report = ctx.obj["client"].get("/api/audit/verify", timeout=None)
    if ctx.obj["json"]:
        print_json(report)
    elif report["ok"]:
        say(
            f"The record is whole: {report['rows']} rows, {report['seals']} seals, {report['unsealed']} rows since the last seal."
        )
        for cut in report.get("cuts", []):
            say(
                f"It begins after row {cut['seq']} of {cut['chain']}: what was before was cut away by {cut['made_by']} on {clock(cut['at'])}."
            )
        if report["elsewhere"]:
            say(
                f"The seals of {', '.join(report['elsewhere'])} were made with keys that are not here: "
                "run this on those gateways too."
            )
    else:
        for problem in report["problems"]:
            say(f"{problem['chain']} {problem['seq']}: {problem['text']}", err=True)
    if not report["ok"]:
        sys.exit(1)


@command.command("cut")
@click.option(
    "--older-than",
    required=True,
    metavar="SPAN",
    help="How old what goes is at least: 90d, 12w. Calls that have not ended stay.",
)
@click.option("--yes", is_flag=True, help="Do not ask before.")
@click.pass_context
def cut_command(ctx: click.Context, older_than: str, yes: bool) -> None:
    """Take the oldest calls away for good; the cut is sealed, so that the rest can still be verified."""
    days = seconds_of(older_than) / 86_400
    if not yes and not click.confirm(
        f"Everything that ended more than {older_than} ago goes for good. Go on?", err=True
    ):
        sys.exit(1)
    gone = ctx.obj["client"].request("POST", "/api/audit/cut", {"days": days}, timeout=None)
    tell(ctx, gone, f"{gone['rows']} rows were cut away." if gone["rows"] else "Nothing is that old.")


@command.command("export")
@click.option("--format", "kind", type=click.Choice(["jsonl", "csv"]), default="jsonl", show_default=True)
@click.pass_context
def export_command(ctx: click.Context, kind: str) -> None:
    """The whole record on standard output."""
    for portion in ctx.obj["client"].portions(f"/api/audit/export?format={kind}"):
        put_bytes(portion)
