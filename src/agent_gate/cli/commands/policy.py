"""`agent-gate policy`: try changed rules on recorded calls, see which rules the past suggests, make one from a question."""

import re
import sys
import time
from pathlib import Path
from typing import Any

import click

from agent_gate.approval.render import visible
from agent_gate.cli.operator import AdminClient, admin_group, tell
from agent_gate.cli.output import paint, print_json, say
from agent_gate.config.files.yamledit import flow
from agent_gate.config.files.yamlfile import read_text
from agent_gate.errors import InvalidArgs

WRITTEN = "Written, and in force."
UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


def seconds_of(text: str) -> float:
    """`7d`, `12h`, `30m` or `2w` in seconds."""
    found = re.fullmatch(r"(\d{1,5})([mhdw])", text.strip())
    if found is None:
        raise InvalidArgs(f"{text[:20]!r} is no span of time. Write it as 7d, 12h, 30m or 2w")
    return int(found[1]) * UNITS[found[2]]


command = admin_group("Try changed rules, and let past answers suggest some.", first="")


def difference_lines(found: dict[str, Any]) -> list[str]:
    times = "" if found["count"] == 1 else f"  ({found['count']} calls)"
    lines = [
        f"{paint(found['before'])} → {paint(found['after'])}  {found['caller']}: {visible(found['signature'])}{times}",
        f"    now by {visible(found['rule']) or 'no rule'} ({visible(found['where']) or 'built in'}); call {found['calls'][0]}",
    ]
    return lines + [f"    note: {note}" for note in found["notes"]]


@command.command("simulate")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--last", default="7d", show_default=True, help="How far back: 30m, 12h, 7d, 2w.")
@click.pass_context
def simulate_command(ctx: click.Context, file: Path, last: str) -> None:
    """What would differ if the calls of the past met the rules in FILE. Exit code 1 when something would."""
    body = {"text": read_text(file), "name": str(file), "since": time.time() - seconds_of(last)}
    report = ctx.obj["client"].request("POST", "/api/policy/simulate", body, timeout=None)
    if ctx.obj["json"]:
        print_json(report)
    else:
        for found in report["differences"]:
            say("\n".join(difference_lines(found)))
        changed = report["tried"] - report["same"]
        say(f"{report['tried']} calls tried, {changed} would be decided differently.")
        if report["more"]:
            say("Only the newest calls were tried; the record of that time has more.", err=True)
    sys.exit(1 if report["differences"] else 0)


@command.command("suggest")
@click.option("--last", default="4w", show_default=True, help="How far back: 30m, 12h, 7d, 2w.")
@click.option("--apply", is_flag=True, help="Write them into the permissions file, each after you agreed.")
@click.option("--yes", is_flag=True, help="With --apply: do not ask before writing.")
@click.option("--passphrase", is_flag=True, help="With --apply: ask for the approver's passphrase.")
@click.pass_context
def suggest_command(ctx: click.Context, last: str, apply: bool, yes: bool, passphrase: bool) -> None:
    """Rules for what is asked often and answered alike. Nothing is changed without --apply."""
    found = ctx.obj["client"].get(f"/api/policy/suggest?since={time.time() - seconds_of(last)}", timeout=None)
    if ctx.obj["json"] and not apply:
        print_json(found)
        return
    for one in found["suggestions"]:
        say(f"{visible(one['text'])}\n  - {visible(flow(one['rule']))}")
        if apply and write_rule(ctx.obj["client"], {"rule": one["rule"]}, yes, passphrase) is not None:
            say(WRITTEN)
    if not found["suggestions"]:
        say(f"Nothing to suggest: {found['questions']} questions were answered in that time.")


def write_rule(
    client: AdminClient, body: dict[str, Any], yes: bool, passphrase: bool, as_json: bool = False
) -> dict[str, Any] | None:
    """Show the difference, and write it where that is wanted; what the gateway says then."""
    shown = client.request("POST", "/api/policy/rules", body)
    say(shown["diff"].rstrip(), err=as_json)
    if not yes and not click.confirm(f"Write this to {shown['file']}?", err=True):
        say("Nothing was changed.", err=True)
        return None
    body = body | {"apply": True, "digest": shown["digest"]}
    if passphrase:
        body["passphrase"] = click.prompt("Passphrase", hide_input=True, err=True)
    done: dict[str, Any] = client.request("POST", "/api/policy/rules", body)
    return done


@command.command("add-rule")
@click.option("--from", "approval", required=True, help="The question to make a rule from (its id).")
@click.option("--action", type=click.Choice(["allow", "ask", "deny"]), default="allow", show_default=True)
@click.option(
    "--scope",
    type=click.Choice(["exact", "tool"]),
    default="exact",
    show_default=True,
    help="These arguments, or every call of the tool.",
)
@click.option("--yes", is_flag=True, help="Do not ask before writing.")
@click.option("--passphrase", is_flag=True, help="Ask for the approver's passphrase.")
@click.pass_context
def add_rule_command(
    ctx: click.Context, approval: str, action: str, scope: str, yes: bool, passphrase: bool
) -> None:
    """Write a rule into the permissions file, after showing the difference; comments stay."""
    client: AdminClient = ctx.obj["client"]
    done = write_rule(
        client, {"approval": approval, "action": action, "scope": scope}, yes, passphrase, ctx.obj["json"]
    )
    if done is None:
        sys.exit(1)
    tell(ctx, done, WRITTEN)
