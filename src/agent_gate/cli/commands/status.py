"""`agent-gate status`: the running gateway at a glance, and what to do next."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from agent_gate.cli.operator import admin_options, client_of, reaching, reporting, typed_options
from agent_gate.cli.output import USUAL_CONFIG, one_line, print_json, say, table

LESS_THAN_READY = ("failed", "needs_auth", "degraded")


def next_step(status: dict[str, Any], where: Sequence[str] = (), config: Path | None = None) -> str:
    """The next command, with the options `where` that reach this gateway from here; `config` is its file."""

    def command(*words: str) -> str:
        return shlex.join(["agent-gate", *words])

    if status["store_fault"]:
        return "The record cannot be written: free some space or look at the disk, then `agent-gate doctor`"
    if status["reload_fault"]:
        return f"The changed configuration is not used: {status['reload_fault']}. See `agent-gate doctor`"
    if status["pending_approvals"]:
        return command("approvals", *where)
    if any(source["state"] in LESS_THAN_READY for source in status["sources"]):
        return command("doctor", *where)
    if status["tools"]:
        return command("connect", *(["--config", str(config)] if config else ["--url", status["url"]]))
    return command("import", "--config", str(config)) if config else command("init")


def gateway_lines(gateways: Sequence[Mapping[str, Any]]) -> list[str]:
    """The gateways that share the store, where there are several."""
    if len(gateways) < 2:
        return []
    rows = [
        (
            f"{one['id']}{' (this)' if one['this'] else ''}",
            one["state"],
            one["version"],
            f"{one['host']}, pid {one['pid']}",
            one["running"],
            ", ".join(f"{count} {state}" for state, count in sorted(one["sources"].items())),
            f"{one['lag']:g} s",
            ", ".join(one["holds"]),
        )
        for one in gateways
    ]
    return [
        table(("gateway", "state", "version", "where", "running", "sources", "lag", "alone does"), rows, "")
    ]


def summary(status: dict[str, Any], where: Sequence[str] = (), config: Path | None = None) -> str:
    rows = [(s["key"], s["state"], s["tools"], one_line(s["reason"])) for s in status["sources"]]
    parts = [
        f"agent-gate {status['version']} at {status['url']} (pid {status['pid']})",
        f"{status['tools']} tools, {len(status['agents'])} agent{'' if len(status['agents']) == 1 else 's'}, {status['pending_approvals']} waiting for a person, {status['running_calls']} running",
        table(("source", "state", "tools", "reason"), rows, "No sources are configured."),
        *gateway_lines(status.get("gateways", [])),
        *(f"Questions do not get through to {name}: {why}" for name, why in status["channel_faults"].items()),
        *(f"Warning: {warning}" for warning in status["warnings"]),
        f"Next: {next_step(status, where, config)}",
    ]
    return "\n".join(parts)


@click.command()
@admin_options
def command(admin_socket: Path | None, config: Path | None, as_json: bool) -> None:
    """The running gateway at a glance."""
    with reporting():
        status = client_of(admin_socket, config).get("/api/status")
        own = config or (USUAL_CONFIG if admin_socket is None and USUAL_CONFIG.is_file() else None)
        print_json(status) if as_json else say(reaching(summary(status, typed_options(), own)))
