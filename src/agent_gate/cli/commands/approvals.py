"""`agent-gate approvals`: see what waits for a person, and answer it."""

import sys
import time
from pathlib import Path
from typing import Any

import click

from agent_gate.approval.render import card_of, lines, visible
from agent_gate.cli.operator import AdminClient, OperatorGroup, admin_options, client_of, segment, tell
from agent_gate.cli.output import paint, print_json, say, span, table
from agent_gate.cli.suggest import complete_approval
from agent_gate.cli.watching import NUMBER_PROMPT, QuestionDesk
from agent_gate.errors import InvalidArgs, by_code

LIFETIMES = ("once", "session", "hour", "always")


def listing(found: list[dict[str, Any]]) -> str:
    now = time.time()
    rows = [
        (
            a["id"][-8:],
            a["state"],
            a["agent"],
            span(a["expires_at"] - now) if a["state"] == "pending" else "",
            a["signature"],
        )
        for a in found
    ]
    return table(("id", "state", "agent", "left", "signature"), rows, "Nothing waits for you.")


def card(a: dict[str, Any]) -> str:
    """One question with everything that is needed to judge it, and what each answer would mean."""
    shown = card_of(a)
    first, *rest = lines(shown, time.time())
    out = [f"{shown.short}  {paint(shown.state)}  {first}", *rest]
    if shown.folds():
        out.append("  some values are folded; `approvals show --json` prints them whole")
    if shown.open:
        out.append("  your answer can mean:")
        out += [f"    --for {name:8} {visible(text)}" for name, text in a["choices"].items()]
    return "\n".join(out)


def choose_question(client: AdminClient, approval_id: str | None, last: bool, verdict: str) -> str | None:
    """The question to answer; None where a person who saw it does not want to approve it after all.

    What is open may have changed since they looked, so a yes without an id is shown what it is for.
    """
    if approval_id is not None:
        return approval_id
    open_now = client.get("/api/approvals")
    if not open_now:
        raise InvalidArgs("Nothing waits for you.")
    if verdict == "approve" and not sys.stdin.isatty():
        raise InvalidArgs(
            "Name the question by its id, so that what you approve is what you saw. Open is:\n"
            + listing(open_now)
        )
    if len(open_now) > 1 and not last:
        raise InvalidArgs(
            "More than one question is open. Name one by its id, or take the newest with --last:\n"
            + listing(open_now)
        )
    found = open_now[-1]
    if verdict == "approve":
        say(card(found), err=True)
        if not click.confirm("Let it run?", err=True):
            return None
    return str(found["id"])


def wants_number(client: AdminClient, chosen: str) -> bool:
    """Whether somebody is here who can say the number that this question wants."""
    return sys.stdin.isatty() and bool(client.get(f"/api/approvals/{segment(chosen)}")["wants_number"])


def answer(ctx: click.Context, approval_id: str | None, last: bool, body: dict[str, Any]) -> None:
    """Send one answer, and end as its call did where it failed; a passphrase is asked for where the gateway wants one."""
    client: AdminClient = ctx.obj["client"]
    chosen = choose_question(client, approval_id, last, body["verdict"])
    if chosen is None:
        say("Nothing was answered.", err=True)
        sys.exit(1)
    if body["verdict"] == "approve" and not body["number"] and wants_number(client, chosen):
        body["number"] = click.prompt(NUMBER_PROMPT, err=True)
    if ctx.obj["passphrase"]:
        body["passphrase"] = click.prompt("Passphrase", hide_input=True, err=True)
    resolved = client.request("POST", f"/api/approvals/{segment(chosen)}", body)
    became = f". {visible(resolved['became']['text'])}" if body["verdict"] == "approve" else ""
    tell(ctx, resolved, f"{resolved['state']}: {visible(resolved['signature'])}{became}")
    if failed := by_code().get(resolved["became"].get("code")):
        sys.exit(failed.exit)


@click.group(cls=OperatorGroup, invoke_without_command=True)
@admin_options
@click.option(
    "--watch", is_flag=True, help="Stay, show questions as they come and go, and answer them by a key."
)
@click.option("--passphrase", is_flag=True, help="Ask for the approver's passphrase before answering.")
@click.pass_context
def command(
    ctx: click.Context,
    admin_socket: Path | None,
    config: Path | None,
    as_json: bool,
    watch: bool,
    passphrase: bool,
) -> None:
    """See and answer what waits for a person."""
    ctx.obj = {"client": client_of(admin_socket, config), "json": as_json, "passphrase": passphrase}
    if watch and not as_json and sys.stdin.isatty() and sys.stdout.isatty():
        QuestionDesk(ctx.obj["client"], card, ask_passphrase=passphrase).run()
    elif watch:
        watch_approvals(ctx.obj["client"], as_json)
    elif ctx.invoked_subcommand is None:
        ctx.invoke(list_command)


@command.command("list")
@click.option("--all", "everything", is_flag=True, help="Past ones too.")
@click.pass_context
def list_command(ctx: click.Context, everything: bool = False) -> None:
    """What is open now."""
    found = ctx.obj["client"].get("/api/approvals" + ("?state=all" if everything else ""))
    tell(ctx, found, listing(found))


@command.command("show")
@click.argument("approval_id", shell_complete=complete_approval)
@click.pass_context
def show_command(ctx: click.Context, approval_id: str) -> None:
    """One question, whole."""
    found = ctx.obj["client"].get(f"/api/approvals/{segment(approval_id)}")
    tell(ctx, found, card(found))


@command.command("approve")
@click.argument("approval_id", required=False, shell_complete=complete_approval)
@click.option("--last", is_flag=True, help="The newest open question, shown before you confirm it.")
@click.option(
    "--for",
    "lifetime",
    type=click.Choice(LIFETIMES),
    default="once",
    show_default=True,
    help="What the yes covers from now on.",
)
@click.option("--reason", default="", help="Why, for the record.")
@click.option("--number", default="", help="Of a sign-in: the number that the browser shows.")
@click.option("--agent", default="", help="Of a sign-in: the agent's name, such as claude/ada.")
@click.option("--namespace", "namespaces", multiple=True, help="Of a sign-in: a source it sees; repeatable.")
@click.option(
    "--mode", type=click.Choice(["full", "proxy", "gateway"]), help="Of a sign-in: what /mcp shows."
)
@click.option("--days", type=int, help="Of a sign-in: for how many days.")
@click.pass_context
def approve_command(
    ctx: click.Context,
    /,
    approval_id: str | None,
    last: bool,
    lifetime: str,
    reason: str,
    number: str,
    **terms: Any,
) -> None:
    """Let a call run.

    Where the call ends within two seconds, this ends with its exit code: 0 it ran, 5 the tool failed, 9 the outcome is
    unknown. While it waits or is under way, 0 says that your answer is recorded.
    """
    narrowed = {
        name: list(value) if name == "namespaces" else value for name, value in terms.items() if value
    }
    body = {"verdict": "approve", "lifetime": lifetime, "reason": reason, "number": number}
    answer(ctx, approval_id, last, body | ({"terms": narrowed} if narrowed else {}))


@command.command("deny")
@click.argument("approval_id", required=False, shell_complete=complete_approval)
@click.option("--last", is_flag=True, help="The newest open question.")
@click.option("--reason", default="", help="Why; the agent is told.")
@click.pass_context
def deny_command(ctx: click.Context, approval_id: str | None, last: bool, reason: str) -> None:
    """Keep a call from running."""
    answer(ctx, approval_id, last, {"verdict": "deny", "reason": reason})


def watch_approvals(client: AdminClient, as_json: bool) -> None:
    """Every open question, then each change, until interrupted."""
    try:
        told = client.events("/api/events")
        for found in client.get("/api/approvals"):
            show_event(found, as_json)
        for kind, found in told:
            if kind == "approval":
                show_event(found, as_json)
    except KeyboardInterrupt:
        sys.exit(0)


def show_event(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        say(card(found) + "\n")
    sys.stdout.flush()
