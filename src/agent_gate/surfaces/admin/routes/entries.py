"""Servers and services as the files have them: added, changed, paused and removed, with the difference shown first.

The page edits files and has no second truth. Only the operator's files start programs: a change that does waits for a
yes on the terminal, or needs the passphrase.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from agent_gate.config.clients.forms import argv
from agent_gate.config.files import jsonentry, yamledit, yamlentry
from agent_gate.config.files.edit import Edit
from agent_gate.config.files.yamlfile import read_text
from agent_gate.config.servers.clientfile import servers_of
from agent_gate.config.servers.section import YAML_SUFFIXES
from agent_gate.errors import ConfigError, InvalidArgs, Unauthorized, ViewFailed
from agent_gate.net.http import json_response
from agent_gate.surfaces.admin.admin import Admin
from agent_gate.surfaces.admin.routing import (
    FLAG,
    OBJECT,
    TERMINAL,
    TEXT,
    TEXTS,
    OperatorRequest,
    Route,
    RouteAnswer,
)
from agent_gate.surfaces.admin.trust import is_off, needs_trust, secrets_in

log = logging.getLogger("agent_gate.admin")
KINDS = ("servers", "mcpServers", "services")
CLIENT_KINDS = ("mcpServers", "servers")
"""The blocks of clients' files that say a server in our words: those of Claude and its like, and of VS Code."""
JSON_SUFFIXES = (".json", ".jsonc")
SHOWN = (
    "url",
    "command",
    "args",
    "enabled",
    "disabled",
    "title",
    "description",
    "transport",
    "tools",
    "handler",
)
MOST_HELD = 20
WAITS = "It decides what runs on the gateway's machine or what it tells others, so it waits for a yes there:"
ELSEWHERE = (
    "{file} is written by another program, in words of its own. Change the entry there; it is read again by itself. "
    "To change it on this page, move it to mcpServers: in config.yaml."
)


class Editor(NamedTuple):
    """How the entries of a file are read and changed, in the syntax that its name says."""

    current: Callable[[Path], tuple[str, dict[str, Any]]]
    put: Callable[[Path, str, str, Mapping[str, Any], Sequence[str]], Edit]
    drop: Callable[[Path, str, str], Edit]


YAML = Editor(yamledit.current, yamlentry.put_entry, yamlentry.drop_entry)
JSON = Editor(jsonentry.current, jsonentry.put_entry, jsonentry.drop_entry)


def editor_of(path: Path) -> Editor | None:
    """None for a file in which entries can only be read."""
    return YAML if path.suffix in YAML_SUFFIXES else JSON if path.suffix in JSON_SUFFIXES else None


class EntryPlace(NamedTuple):
    """Where an entry stands, or where a new one goes."""

    file: Path
    block: str
    key: str
    editor: Editor

    def entry(self) -> object:
        """What stands there now."""
        block = self.editor.current(self.file)[1].get(self.block)
        return block.get(self.key) if isinstance(block, dict) else None


@dataclass(frozen=True, slots=True)
class Held:
    """A change that starts a program, until somebody says yes on the terminal."""

    kind: str
    key: str
    person: str
    file: Path
    base: str
    edit: Edit


def digest(edit: Edit) -> str:
    return sha256(edit.text.encode()).hexdigest()[:16]


def blocks(path: Path, plain: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The kinds of entries that a file holds itself; of a client's file the one that counts, if it is in our words."""
    own = path.suffix in YAML_SUFFIXES
    found = {
        kind: plain[kind] for kind in (KINDS if own else CLIENT_KINDS) if isinstance(plain.get(kind), dict)
    }
    return found if own else dict([*found.items()][:1])


def servers_file_of(main: Path, plain: Mapping[str, Any]) -> Path | None:
    """The file that `servers:` names, where it names one."""
    named = plain.get("servers")
    return main.parent / named if isinstance(named, str) else None


class EntryRoutes:
    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._held: dict[str, Held] = {}

    def routes(self) -> list[Route]:
        change = {
            "set": OBJECT,
            "unset": TEXTS,
            "remove": FLAG,
            "apply": FLAG,
            "digest": TEXT,
            "passphrase": TEXT,
            "known": OBJECT,
        }
        path = "/api/entries/{kind}/{key}"
        return [
            Route(
                "GET",
                "/api/entries",
                self._list,
                "Servers and services as the configuration has them",
                role="operator",  # an argument of a command may hold a secret that nothing marks as one
            ),
            Route(
                "GET",
                "/api/entries/held",
                self._list_held,
                "Changes that wait for a yes on the terminal",
                role="operator",
            ),
            Route(
                "POST",
                "/api/entries/held/{id}",
                self._accept,
                "Let a change start its program; on the terminal alone",
            ),
            Route(
                "POST",
                path,
                self._change,
                "Change an entry: the difference first, then with `apply` the file",
                body=change,
            ),
        ]

    def _file(self) -> Path:
        path = self._admin.setup.configuration.options.config
        if path is None:
            raise InvalidArgs(
                "There is no configuration file to write to. Start the gateway with --config FILE"
            )
        return path

    def _place(self, kind: str, key: str) -> EntryPlace:
        """Where an entry stands, or where a new one goes: into the file that `servers:` names, if it names one of ours
        or of our words; else beside it, under `mcpServers:`."""
        main = self._file()
        _, plain = YAML.current(main)
        other = servers_file_of(main, plain)
        if other is None or kind == "services" or key in blocks(main, plain).get(kind, {}):
            return EntryPlace(main, kind, key, YAML)
        editor = editor_of(other)
        if editor is YAML:
            return EntryPlace(other, kind, key, YAML)
        own = blocks(other, editor.current(other)[1]) if editor is not None else {}
        if editor is not None and own:
            return EntryPlace(other, next(iter(own)), key, editor)
        if key not in servers_of(other):
            return EntryPlace(main, "mcpServers", key, YAML)
        raise InvalidArgs(f"{other} is another program's file. Change it there; it is read again by itself")

    async def _list(self, _ask: OperatorRequest) -> RouteAnswer:
        main = self._file()
        _, plain = YAML.current(main)
        other = servers_file_of(main, plain)
        found = [*self._entries(main, blocks(main, plain))]
        if other is not None:
            editor = editor_of(other)
            own = blocks(other, editor.current(other)[1]) if editor is not None else {}
            found += self._entries(other, own or {"servers": servers_of(other)}, fixed=not own)
        return found

    def _entries(
        self, file: Path, kinds: Mapping[str, Mapping[str, Any]], *, fixed: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Those of a file; what stands there in words that are not ours is `fixed`: it is changed by its own program."""
        for kind, block in kinds.items():
            for key, entry in block.items():
                if isinstance(entry, dict):
                    yield {
                        "kind": kind,
                        "key": key,
                        "file": str(file),
                        "entry": self._masked(entry),
                        "off": is_off(entry),
                        "secrets": sorted(secrets_in(entry)),
                        "fixed": fixed,
                        "says": ELSEWHERE.format(file=file.name) if fixed else "",
                    }

    def _masked(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """What is no secret of an entry; of the others only that they are there."""
        mask, shown = self._admin.secrets.mask, dict(entry)
        if isinstance(entry.get("command"), list):
            shown["command"], shown["args"] = argv(entry)
        told = {
            name: mask(shown[name]) if isinstance(shown[name], str) else shown[name]
            for name in SHOWN
            if name in shown
        }
        return told | {"more": [name for name in entry if name not in SHOWN]}

    async def _change(self, ask: OperatorRequest) -> RouteAnswer:
        kind, key, body = ask.values["kind"], ask.values["key"], ask.body()
        if kind not in KINDS:
            raise InvalidArgs(f"An entry is one of {', '.join(KINDS)}")
        place = self._place(kind, key)
        path = place.file
        before, after, edit = self._edit(place, body)
        shown = {
            "file": str(path),
            "diff": self._admin.secrets.mask(edit.diff),
            "digest": digest(edit),
            "applied": False,
            "held": None,
        }
        risky = needs_trust(
            before,
            after,
            await self._find_known(body.get("known")),
            has_account=self._admin.secrets.has_account(key),
        )
        if not body.get("apply"):
            return shown | {"needs_trust": risky}
        if body.get("digest") != digest(edit):
            raise InvalidArgs("The file is not what was shown. Look at the difference again")
        if risky and not self._is_trusted(ask, body.get("passphrase")):
            return json_response(
                202,
                shown
                | {
                    "held": self._hold(Held(kind, key, ask.person, path, read_text(path), edit)),
                    "says": WAITS,
                },
            )
        await self._admin.setup.write(path, edit, "Nothing was changed")
        log.info(
            "An entry of the configuration was changed",
            extra={"person": ask.person, "entry": f"{kind}.{key}"},
        )
        return shown | {"applied": True}

    async def _find_known(self, known: object) -> set[str]:
        """The secrets of the vault that whoever asks shows to know: those they may send wherever they like."""
        secrets = self._admin.secrets.custody.secrets
        said = known.items() if isinstance(known, dict) else ()
        return {
            name for name, value in said if isinstance(value, str) and await secrets.is_value(name, value)
        }

    def _edit(self, place: EntryPlace, body: Mapping[str, Any]) -> tuple[object, object, Edit]:
        set_, unset = body.get("set") or {}, body.get("unset") or []
        if not isinstance(set_, dict) or not isinstance(unset, list):
            raise InvalidArgs('Send {"set": {FIELD: VALUE}, "unset": [FIELD]} or {"remove": true}')
        file, block, key, editor = place
        try:
            before = place.entry()
            if body.get("remove"):
                return before, None, editor.drop(file, block, key)
            was = before if isinstance(before, dict) else {}
            after = {name: value for name, value in {**was, **set_}.items() if name not in unset}
            return before, after, editor.put(file, block, key, set_, [str(name) for name in unset])
        except ConfigError as error:
            raise InvalidArgs(error.message) from None

    def _is_trusted(self, ask: OperatorRequest, passphrase: object) -> bool:
        """The terminal of this machine, or somebody who knows a passphrase that there is."""
        if ask.channel == TERMINAL:
            return True
        check = self._admin.who.passphrases.check
        if not isinstance(passphrase, str) or check(ask.person, None):
            return False
        if not check(ask.person, passphrase):
            raise Unauthorized("That is not the approver's passphrase, so nothing was written")
        return True

    def _hold(self, held: Held) -> str:
        name = digest(held.edit)
        self._held.pop(name, None)
        while len(self._held) >= MOST_HELD:
            self._held.pop(next(iter(self._held)))
        self._held[name] = held
        return name

    async def _list_held(self, _ask: OperatorRequest) -> RouteAnswer:
        mask = self._admin.secrets.mask
        return [
            {
                "id": name,
                "entry": f"{one.kind}.{one.key}",
                "person": one.person,
                "file": str(one.file),
                "diff": mask(one.edit.diff),
            }
            for name, one in self._held.items()
        ]

    async def _accept(self, ask: OperatorRequest) -> RouteAnswer:
        if ask.channel != TERMINAL:
            raise InvalidArgs(
                "What starts a program is accepted on the gateway's own terminal: agent-gate entries accept ID"
            )
        held = self._held.get(ask.values["id"])
        if held is None:
            raise ViewFailed("No such change waits. See `agent-gate entries list`")
        if read_text(held.file) != held.base:
            raise InvalidArgs("The file was changed since. Make the change again on the page")
        await self._admin.setup.write(held.file, held.edit, "Nothing was changed")
        del self._held[ask.values["id"]]
        log.info(
            "A change that starts a program was accepted", extra={"person": ask.person, "by": held.person}
        )
        return {"accepted": f"{held.kind}.{held.key}", "file": str(held.file)}
