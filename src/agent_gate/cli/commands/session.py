"""`agent-gate session start|stop|status`: a gateway per agent session, started and stopped by the agent's hooks."""

import json
import os
import select
import sys
from pathlib import Path
from typing import Any

import click

from agent_gate.cli.operator import reporting
from agent_gate.cli.output import PATH, json_option, print_json, put, say, table
from agent_gate.cli.sessions import Session, Sessions, exports

CONFIG = "agent-gate.yaml"
HOOK_SECONDS = 0.5
MOST_INPUT = 1024 * 1024


def hook_input() -> dict[str, Any]:
    """What a hook was given on stdin; empty where this is no hook."""
    if sys.stdin is None or sys.stdin.isatty() or not select.select([sys.stdin], [], [], HOOK_SECONDS)[0]:
        return {}
    try:
        found = json.loads(sys.stdin.read(MOST_INPUT))
    except (ValueError, OSError):
        return {}
    return found if isinstance(found, dict) else {}


def session_id(given: str | None, hook: dict[str, Any]) -> str:
    """`--session`, else the hook's own, else SESSION_ID."""
    return given or str(hook.get("session_id") or "") or os.environ.get("SESSION_ID") or "default"


def project(hook: dict[str, Any]) -> Path:
    return Path(os.environ.get("CLAUDE_PROJECT_DIR") or hook.get("cwd") or ".")


def serve_options(config: Path | None, permissions: Path | None, folder: Path) -> list[str]:
    """The files to serve: those named, else the project's own."""
    found = config or (folder / CONFIG if (folder / CONFIG).is_file() else None)
    options = ["--config", str(found.absolute())] if found else ["--no-config"]
    return [*options, "--permissions", str(permissions.absolute())] if permissions else options


def shown(session: Session) -> dict[str, Any]:
    pid, told = session.pid(), session.told()
    return {
        "session": session.id,
        "state": "running" if pid else "stopped",
        "pid": pid,
        "url": told.get("url") if pid else None,
        "socket": told.get("socket") if pid else None,
        "data": str(session.data),
    }


def tell(session: Session, away: list[str], as_json: bool) -> None:
    """Export the address where Claude Code collects variables, else print it for `eval`."""
    lines = exports(session, os.environ)
    collected = os.environ.get("CLAUDE_ENV_FILE")
    if collected:
        with Path(collected).open("a", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    if as_json:
        print_json({**shown(session), "not_connected": away})
        return
    if collected:
        url = session.told().get("url")
        say(f"agent-gate is at {url} for this session; its tools are typed at {url}/runtime/tools.ts")
    else:
        put("\n".join(lines))
    if away:
        say(f"Not connected yet: {', '.join(away)}", err=not collected)


@click.group()
def command() -> None:
    """A gateway for one agent session, with its own ports, socket and data folder."""


@command.command()
@click.option("--session", "given", help="The session's id; by default the hook's, else SESSION_ID.")
@click.option(
    "--config",
    type=PATH,
    help=f"Configuration; by default {CONFIG} of the project, if any.",
)
@click.option("--permissions", type=PATH, help="Rules file.")
@json_option
def start(given: str | None, config: Path | None, permissions: Path | None, as_json: bool) -> None:
    """Start this session's gateway in the background, on a free loopback port.

    In a Claude Code hook the address goes into CLAUDE_ENV_FILE; in a shell, use eval "$(agent-gate session start)".
    """
    hook = {} if given else hook_input()
    with reporting():
        options = serve_options(config, permissions, project(hook))
        sessions = Sessions(os.environ)
        session = sessions.start(session_id(given, hook), options)
        tell(session, sessions.learn(session), as_json)


@command.command()
@click.option("--session", "given", help="The session's id; by default the hook's, else SESSION_ID.")
@click.option("--all", "everything", is_flag=True, help="Stop every session's gateway.")
@json_option
def stop(given: str | None, everything: bool, as_json: bool) -> None:
    """Stop this session's gateway and remove what it left."""
    with reporting():
        sessions = Sessions(os.environ)
        idents = (
            [one.id for one in sessions.known()]
            if everything
            else [session_id(given, {} if given else hook_input())]
        )
        stopped = {ident: sessions.stop(ident) for ident in idents}
        if as_json:
            print_json([{"session": ident, "stopped": was} for ident, was in stopped.items()])
            return
        for ident, was in stopped.items():
            say(
                f"Stopped the gateway of session {ident}." if was else f"No gateway runs for session {ident}."
            )


@command.command()
@json_option
def status(as_json: bool) -> None:
    """The sessions that have a gateway; files of gateways that are gone are removed."""
    with reporting():
        sessions = Sessions(os.environ)
        sessions.clean()
        rows = [shown(session) for session in sessions.known()]
        if as_json:
            print_json(rows)
        elif rows:
            say(
                table(
                    ("session", "pid", "url", "data"),
                    [(r["session"], r["pid"], r["url"], r["data"]) for r in rows],
                )
            )
        else:
            say("No session has a gateway.")
