"""Servers found in other clients' files, written into our own configuration with their secrets moved out."""

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Any, cast

from agent_gate.config.clients.forms import argv, rewrite, texts
from agent_gate.config.clients.model import ClientEntry, FoundServer, Platform, Surroundings
from agent_gate.config.clients.registry import find, read, servers
from agent_gate.config.clients.secrets import move_secrets
from agent_gate.config.decode import Reading, beside
from agent_gate.config.files.dotenv import add_variables, environment, known_variables
from agent_gate.config.files.edit import Edit
from agent_gate.config.files.nodes import Mark
from agent_gate.config.files.variables import FORM, VARIABLE, Variables
from agent_gate.config.files.yamledit import add_server, current, save
from agent_gate.config.load import shared_namespace
from agent_gate.config.servers.clientfile import BLOCKS, in_our_words, read_any, server_block
from agent_gate.config.servers.section import YAML_SUFFIXES, names_meet
from agent_gate.errors import ConfigError


def this_place() -> Surroundings:
    """Where this command runs."""
    platform = sys.platform if sys.platform in ("darwin", "win32") else "linux"
    try:
        home = Path.home()
    except RuntimeError:
        raise ConfigError(
            "Your home folder is not known, and clients keep their files there; set HOME"
        ) from None
    return Surroundings(home, Path.cwd(), cast(Platform, platform), os.environ)


def find_servers(place: Surroundings, clients: Sequence[str] = ()) -> tuple[list[FoundServer], list[str]]:
    """Every server in every file, and what could not be read."""
    found: list[FoundServer] = []
    problems: list[str] = []
    for file in find(place, clients) if clients else find(place):
        try:
            found += servers(file, read(file.path), place)
        except ConfigError as error:
            problems.append(error.message)
    return found, problems


def named_file(config: Path) -> Path | None:
    """The file that `servers:` of our configuration names, if it names one."""
    named = current(config)[1].get("servers")
    if not isinstance(named, str):
        return None
    env, _ = environment(config, os.environ, [])
    mark = Mark(str(config))
    return beside(mark, Path(Variables(env).text(named, mark, "servers", off=False)))


def servers_file(config: Path) -> Path:
    """The file to add servers to: the one that the configuration names, unless that is a client's, else itself."""
    named = named_file(config)
    return named if named is not None and named.suffix in YAML_SUFFIXES else config


def our_servers(config: Path) -> dict[str, Any]:
    """Every server that our configuration has, in whichever file."""
    named = named_file(config)
    places = [current(config)[1]]
    if named is not None and named.is_file():
        places.append(plain_file(named))
    blocks = [place.get(name) for place in places for name in BLOCKS]
    return {key: value for block in blocks if isinstance(block, dict) for key, value in block.items()}


def plain_file(file: Path) -> dict[str, Any]:
    """What a file of servers says, a client's in our words."""
    root = read_any(file)
    name, block = server_block(root)
    if file.suffix in YAML_SUFFIXES or block is None:
        return root.plain() or {}
    return {BLOCKS[0]: in_our_words(block, name, Reading(Variables({}))).plain()}


def others(config: Path) -> list[str]:
    """The keys of everything else that has a namespace."""
    _, plain = current(config)
    blocks = [plain.get(name) for name in ("services", "hosts")]
    return [key for block in blocks if isinstance(block, dict) for key in block]


def where_here(server: FoundServer, ours: Mapping[str, Any], env: Mapping[str, str]) -> str:
    """The key under which this very server is in our configuration; empty where it is not."""
    wanted = filled(server.entry, env)
    for key, value in ours.items():
        if isinstance(value, Mapping) and same_server(filled(value, env), wanted):
            return key
    return ""


def same_server(ours: ClientEntry, found: ClientEntry) -> bool:
    """Whether ours does all that the other does, for the same account: what we have beside it may be our own."""
    alike = all(ours[name] == found[name] for name in ("command", "args", "url", "cwd"))
    return alike and all(found[name].items() <= ours[name].items() for name in ("env", "headers"))


def filled(entry: Mapping[str, Any], env: Mapping[str, str]) -> ClientEntry:
    """What an entry comes to with its variables filled; one that nobody knows stands for itself."""
    command, args = argv(entry)
    form: ClientEntry = {
        "command": command,
        "args": args,
        "url": str(entry.get("url") or ""),
        "cwd": absolute(entry["cwd"]) if entry.get("cwd") else "",
        "env": texts(entry.get("env") or entry.get("environment")),
        "headers": texts(entry.get("headers")),
    }
    return cast(ClientEntry, rewrite(form, VARIABLE, lambda found: value_of(found, env)))


def value_of(found: re.Match[str], env: Mapping[str, str]) -> str:
    form = FORM.fullmatch(found[1])
    if form is None:
        return found[0]
    name, default = form.groups()
    return env.get(name) or default or f"${{{name}}}"


def absolute(folder: str) -> str:
    return str(Path.cwd() / Path(folder).expanduser())


@dataclass(frozen=True, slots=True)
class Import:
    """What an import will write; the values of `variables` go only into the file for them.

    `unset` are the variables that the servers need besides, without which the configuration does not load.
    """

    file: Path
    edit: Edit
    added: dict[str, FoundServer]
    variables: dict[str, str] = field(repr=False)
    unset: tuple[str, ...] = ()


def plan_import(chosen: Iterable[FoundServer], config: Path, env: Mapping[str, str]) -> Import:
    """The new text of our file with the chosen servers in it. Nothing is written yet."""
    file = servers_file(config)
    added: dict[str, FoundServer] = {}
    variables: dict[str, str] = {}
    needed: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / file.name
        if file.exists():
            copy.write_bytes(file.read_bytes())
        keys, namespaces = list(our_servers(config)), others(config)
        for server in chosen:
            key = free_key(server, keys, namespaces)
            entry, moved = move_secrets(key, with_env_file(server.entry), {**env, **variables})
            save(copy, add_server(copy, key, our_form(server, entry)).text)
            keys.append(key)
            added[key] = server
            variables |= moved
            needed |= references(entry) if server.enabled else set()
        text = copy.read_text(encoding="utf-8") if copy.exists() else ""
    unset = sorted(needed - env.keys() - variables.keys())
    return Import(file, Edit(text, ""), added, variables, tuple(unset))


def still_unset(plan: Import, env_file: Path) -> str:
    """What a person has to do before the configuration loads; empty where there is nothing."""
    names = ", ".join(plan.unset)
    return f"Set before the gateway starts, in {env_file} or the environment: {names}" if names else ""


def references(entry: ClientEntry) -> set[str]:
    """The variables that an entry cannot do without."""
    forms = [FORM.fullmatch(inside) for inside in VARIABLE.findall(json.dumps(entry))]
    return {form[1] for form in forms if form is not None and form[2] is None}


def with_env_file(entry: ClientEntry) -> ClientEntry:
    """The entry with the variables of the file that it names, which its client would give to the server."""
    ours = dict(entry)
    named = ours.pop("envFile", None)
    kept = known_variables(Path(absolute(named))) if named else {}
    return {**ours, "env": {**kept, **texts(ours.get("env"))}} if kept else ours


def our_form(server: FoundServer, entry: ClientEntry) -> ClientEntry:
    ours = dict(entry)
    if cwd := ours.get("cwd"):
        ours["cwd"] = absolute(cwd)
    return ours if server.enabled else {**ours, "enabled": False}


def free_key(server: FoundServer, servers: Sequence[str], others: Sequence[str]) -> str:
    """The server's name, or one with the client before it where it would share a namespace or names of tools."""
    taken = {shared_namespace(key) for key in (*servers, *others)}
    # The number stands in front, where no prefix of another server can meet every one of them.
    numbered = (f"{server.client}-{n}-{server.name}" for n in count(2))
    return next(
        key
        for key in chain([server.name, f"{server.client}-{server.name}"], numbered)
        if shared_namespace(key) not in taken
        and not any(names_meet(key, other) or names_meet(other, key) for other in servers)
    )


def carry_out(plan: Import, env_file: Path) -> None:
    """Write the variables first, so that no file ever refers to one that is nowhere."""
    if plan.variables:
        add_variables(env_file, plan.variables)
    save(plan.file, plan.edit.text)
