"""`agent-gate import`: take over the MCP servers that other clients on this machine already have."""

import difflib
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from agent_gate.cli.importing import (
    Import,
    carry_out,
    find_servers,
    our_servers,
    plan_import,
    still_unset,
    this_place,
    where_here,
)
from agent_gate.cli.operator import reporting
from agent_gate.cli.output import PATH, USUAL_CONFIG, config_option, json_option, print_json, put, say, table
from agent_gate.config.clients.model import FoundServer
from agent_gate.config.clients.registry import CLIENTS
from agent_gate.config.files.dotenv import known_variables
from agent_gate.config.files.yamledit import current


def shown(found: Sequence[FoundServer], here: Sequence[str]) -> list[tuple[object, ...]]:
    """One row per server: the number to pick it by, where it stands, how it is reached, and whether we have it."""
    home = str(Path.home())
    return [
        (
            number,
            CLIENTS[server.client].title,
            str(server.file).replace(home, "~", 1),
            server.name if server.enabled else f"{server.name} (off)",
            server.transport,
            f"yes, as {key}" if key else "no",
        )
        for number, (server, key) in enumerate(zip(found, here, strict=True), 1)
    ]


def as_dicts(found: Sequence[FoundServer], here: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            "client": server.client,
            "file": str(server.file),
            "server": server.name,
            "transport": server.transport,
            "enabled": server.enabled,
            "here": key or None,
        }
        for server, key in zip(found, here, strict=True)
    ]


def pick(
    found: Sequence[FoundServer], here: Sequence[str], names: Sequence[str], everything: bool
) -> list[FoundServer]:
    """The servers to import: those named, all that are new, or what the person at the terminal says."""
    fresh = [server for server, key in zip(found, here, strict=True) if not key]
    if names:
        unknown = set(names) - {server.name for server in found}
        if unknown:
            raise click.UsageError(f"No server is named {', '.join(sorted(unknown))}")
        return [server for server in fresh if server.name in names]
    if everything or not fresh:
        return fresh
    if not sys.stdin.isatty():
        say("Nothing is imported yet: pass --all, or --pick NAME for each server.", err=True)
        return []
    answer = click.prompt("Import which? (numbers separated by commas, all, none)", default="all", err=True)
    return fresh if answer.strip() == "all" else numbered(answer, found, fresh)


def numbered(answer: str, found: Sequence[FoundServer], fresh: Sequence[FoundServer]) -> list[FoundServer]:
    numbers = {int(part) for part in answer.replace(",", " ").split() if part.isdecimal()}
    return [server for number, server in enumerate(found, 1) if number in numbers and server in fresh]


def next_step(config: Path, is_new: bool) -> str:
    """What to do with the servers, as it can be typed here."""
    named = "" if config == USUAL_CONFIG else f" --config {shlex.quote(str(config))}"
    if is_new:
        return f"{config} is new. Next: agent-gate serve{named}"
    return (
        f"Next: agent-gate connect CLIENT --replace{named}, so that the client uses them through the gateway"
    )


def report(plan: Import, env_file: Path, dry_run: bool, step: str) -> None:
    verb = "Would add" if dry_run else "Added"
    for key, server in plan.added.items():
        say(f"{verb} {key} ({server.transport}, from {CLIENTS[server.client].title}) to {plan.file}")
    if plan.variables:
        names = ", ".join(sorted(plan.variables))
        say(f"{'Would move' if dry_run else 'Moved'} secrets into {env_file}: {names}")
    if needed := still_unset(plan, env_file):
        say(needed)
    if dry_run and plan.added:
        old, _ = current(plan.file)
        new, name = plan.edit.text.splitlines(keepends=True), str(plan.file)
        put("".join(difflib.unified_diff(old.splitlines(keepends=True), new, name, name)), nl=False)
    elif plan.added:
        say(step)


@click.command("import")
@click.argument("clients", nargs=-1, type=click.Choice(list(CLIENTS)))
@config_option(help="Our configuration file.")
@click.option(
    "--env-file",
    type=PATH,
    help="File for the secrets; by default .env beside the configuration.",
)
@click.option("--pick", "names", multiple=True, metavar="SERVER", help="Import this server; may be repeated.")
@click.option("--all", "everything", is_flag=True, help="Import every server that is not here yet.")
@click.option("--dry-run", is_flag=True, help="Show what would change and change nothing.")
@json_option
def command(
    clients: tuple[str, ...],
    config: Path,
    env_file: Path | None,
    names: tuple[str, ...],
    everything: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Import MCP servers from other clients' files.

    Looks into the files of CLIENTS (all, by default), shows what is there, and adds what you pick to the
    configuration. Literal secrets become references to variables, kept in a file of their own.
    """
    with reporting():
        found, problems = find_servers(this_place(), clients)
        ours = our_servers(config)
        secrets = env_file or config.parent / ".env"
        env = {**known_variables(secrets), **os.environ}
        here = [where_here(server, ours, env) for server in found]
        for problem in problems:
            say(f"Warning: {problem}", err=True)
        if not as_json:
            say(table(("#", "client", "file", "server", "transport", "here"), shown(found, here)))
        chosen = pick(found, here, names, everything)
        plan, step = plan_import(chosen, config, env), next_step(config, is_new=not config.exists())
        if plan.added and not dry_run:
            carry_out(plan, secrets)
        if as_json:
            print_json(
                {
                    "servers": as_dicts(found, here),
                    "added": list(plan.added),
                    "variables": sorted(plan.variables),
                    "unset": list(plan.unset),
                    "config": str(plan.file),
                    "env_file": str(secrets),
                    "written": bool(plan.added) and not dry_run,
                }
            )
        else:
            report(plan, secrets, dry_run, step)
