"""Gemini CLI: `mcpServers` in `settings.json`, where `httpUrl` is HTTP, `url` is SSE, `$NAME` is expanded and times are in
milliseconds."""

import re
from collections.abc import Mapping
from typing import Any

from agent_gate.config.clients.forms import patience, remote, rewrite, standard
from agent_gate.config.clients.model import ClientEntry, ClientFile, ClientProgram, GatewayEntry, Surroundings
from agent_gate.config.files.jsonedit import Jsonc

BARE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")


def files(place: Surroundings) -> list[ClientFile]:
    return [
        ClientFile("gemini", place.home / ".gemini" / "settings.json", "user", ("mcpServers",)),
        ClientFile("gemini", place.cwd / ".gemini" / "settings.json", "project", ("mcpServers",)),
    ]


def read(raw: Mapping[str, Any]) -> ClientEntry:
    if isinstance(raw.get("httpUrl"), str):
        entry = remote(raw["httpUrl"], raw.get("headers"), "http")
    elif isinstance(raw.get("url"), str) and "command" not in raw:
        entry = remote(raw["url"], raw.get("headers"), raw.get("type") or "sse")
    else:
        entry = standard(raw)
    expanded: ClientEntry = rewrite(entry, BARE, r"${\1}")
    return expanded | patience(seconds(raw.get("timeout"))) if expanded else {}


def seconds(milliseconds: object) -> float | None:
    return milliseconds / 1000 if isinstance(milliseconds, int | float) else None


def write(gateway: GatewayEntry) -> ClientEntry:
    if gateway.needs_bridge:
        # Variables that look like secrets reach a server only where its entry names them.
        env = {} if gateway.token_file else {"env": {"AGENT_TOKEN": "${AGENT_TOKEN}"}}
        return {**gateway.as_program(), **env}
    return {"httpUrl": gateway.endpoint, "headers": {"Authorization": "Bearer ${AGENT_TOKEN}"}}


CLIENT = ClientProgram(name="gemini", title="Gemini CLI", files=files, syntax=Jsonc(), read=read, write=write)
