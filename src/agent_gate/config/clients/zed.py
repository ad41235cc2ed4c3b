"""Zed: `context_servers` in `settings.json`; those that an extension brings are no servers of the user's."""

from collections.abc import Mapping
from typing import Any

from agent_gate.config.clients.forms import child, standard
from agent_gate.config.clients.model import ClientEntry, ClientFile, ClientProgram, GatewayEntry, Surroundings
from agent_gate.config.files.jsonedit import Jsonc


def files(place: Surroundings) -> list[ClientFile]:
    folder = place.applications / "Zed" if place.platform == "win32" else place.config / "zed"
    return [
        ClientFile("zed", folder / "settings.json", "user", ("context_servers",)),
        ClientFile("zed", place.cwd / ".zed" / "settings.json", "project", ("context_servers",)),
    ]


def read(raw: Mapping[str, Any]) -> ClientEntry:
    nested = raw.get("command")
    if isinstance(nested, Mapping):
        return child(nested.get("path", ""), nested.get("args"), nested.get("env"))
    return standard(raw)


def write(gateway: GatewayEntry) -> ClientEntry:
    return {"source": "custom", **gateway.as_program(), "env": {}}


CLIENT = ClientProgram(name="zed", title="Zed", files=files, syntax=Jsonc(), read=read, write=write)
