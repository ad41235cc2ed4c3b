"""Servers found in other clients' files, written into our own configuration with their secrets moved out."""

import os
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from agent_gate.config.clients.forms import rewrite
from agent_gate.config.clients.model import Entry, FoundServer, Place, Platform
from agent_gate.config.clients.registry import find, read, servers
from agent_gate.config.clients.secrets import move_secrets
from agent_gate.config.dotenv import add_variables
from agent_gate.config.edit import Edit, add_server, current, save
from agent_gate.core.ids import fold_namespace
from agent_gate.errors import ConfigError

REFERENCE = re.compile(r"\$\{[^}]*\}")


def this_place() -> Place:
    """Where this command runs."""
    platform = sys.platform if sys.platform in ("darwin", "win32") else "linux"
    return Place(Path.home(), Path.cwd(), cast(Platform, platform), os.environ)


def found_servers(place: Place, clients: Sequence[str] = ()) -> tuple[list[FoundServer], list[str]]:
    """Every server in every file, and what could not be read."""
    found: list[FoundServer] = []
    problems: list[str] = []
    for file in find(place, clients) if clients else find(place):
        try:
            found += servers(file, read(file.path), place)
        except ConfigError as error:
            problems.append(error.message)
    return found, problems


def servers_file(config: Path) -> Path:
    """The file that holds our servers: the configuration itself, or the one it names."""
    _, plain = current(config)
    named = plain.get("servers")
    return config.parent / named if isinstance(named, str) else config


def our_servers(file: Path) -> dict[str, Any]:
    _, plain = current(file)
    blocks = [plain.get(name) for name in ("mcpServers", "servers")]
    return {key: value for block in blocks if isinstance(block, dict) for key, value in block.items()}


def where_here(server: FoundServer, ours: Mapping[str, Any]) -> str:
    """The key under which this very server is in our configuration; empty where it is not."""
    for key, value in ours.items():
        if isinstance(value, Mapping) and identity(value) == identity(server.entry):
            return key
    return ""


def identity(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    """What makes two entries the same server, whatever its secrets are and however they are referred to."""
    args = [str(arg) for arg in entry.get("args") or ()]
    moved, _ = move_secrets("same", {"args": args, "url": str(entry.get("url", ""))})
    blank = rewrite(moved, REFERENCE, "$")
    return entry.get("command"), tuple(blank.get("args", ())), blank["url"]


@dataclass(frozen=True, slots=True)
class Import:
    """What an import will write; the values of `variables` go only into the file for them."""

    file: Path
    edit: Edit
    added: dict[str, FoundServer]
    variables: dict[str, str] = field(repr=False)


def plan_import(chosen: Iterable[FoundServer], config: Path, env: Mapping[str, str]) -> Import:
    """The new text of our file with the chosen servers in it. Nothing is written yet."""
    file = servers_file(config)
    added: dict[str, FoundServer] = {}
    variables: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / file.name
        if file.exists():
            copy.write_bytes(file.read_bytes())
        keys = list(our_servers(file))
        for server in chosen:
            key = free_key(server, keys)
            entry, moved = move_secrets(key, server.entry, {**env, **variables})
            save(copy, add_server(copy, key, our_form(server, entry)).text)
            keys.append(key)
            added[key] = server
            variables |= moved
        text = copy.read_text(encoding="utf-8") if copy.exists() else ""
    return Import(file, Edit(text, ""), added, variables)


def our_form(server: FoundServer, entry: Entry) -> Entry:
    ours = dict(entry)
    if cwd := ours.get("cwd"):
        ours["cwd"] = str(Path.cwd() / Path(cwd).expanduser())
    return ours if server.enabled else {**ours, "enabled": False}


def free_key(server: FoundServer, taken: Sequence[str]) -> str:
    """The server's name, or one with the client before it where two would share a namespace."""
    folded = {fold_namespace(key) for key in taken}
    wanted = [server.name, f"{server.client}-{server.name}"]
    wanted += [f"{server.client}-{server.name}-{n}" for n in range(2, len(taken) + 3)]
    return next(key for key in wanted if fold_namespace(key) not in folded)


def carry_out(plan: Import, env_file: Path) -> None:
    """Write the variables first, so that no file ever refers to one that is nowhere."""
    if plan.variables:
        add_variables(env_file, plan.variables)
    save(plan.file, plan.edit.text)
