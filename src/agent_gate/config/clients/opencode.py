"""OpenCode: `mcp` in `opencode.json` or `.jsonc`, with `local` and `remote` servers and `{env:NAME}`."""

import re
from collections.abc import Mapping
from typing import Any

from agent_gate.config.clients.forms import argv, child, remote, rewrite
from agent_gate.config.clients.model import ClientEntry, ClientFile, ClientProgram, GatewayEntry, Surroundings
from agent_gate.config.files.jsonedit import Jsonc

REFERENCE = re.compile(r"\{env:([A-Za-z_][A-Za-z0-9_]*)\}")


def files(place: Surroundings) -> list[ClientFile]:
    user = place.config / "opencode"
    return [
        *(ClientFile("opencode", user / name, "user", ("mcp",)) for name in ("opencode.json", "opencode.jsonc")),
        *(ClientFile("opencode", place.cwd / name, "project", ("mcp",)) for name in ("opencode.json", "opencode.jsonc")),
    ]  # fmt: skip


def read(raw: Mapping[str, Any]) -> ClientEntry:
    command, args = argv(raw)
    if command:
        entry = child(command, args, raw.get("environment"))
    else:
        entry = remote(raw["url"], raw.get("headers")) if isinstance(raw.get("url"), str) else {}
    expanded: ClientEntry = rewrite(entry, REFERENCE, r"${\1}")
    return expanded


def write(gateway: GatewayEntry) -> ClientEntry:
    if gateway.needs_bridge:
        return {"type": "local", "command": [gateway.command, *gateway.bridge], "enabled": True}
    headers = {"Authorization": "Bearer {env:AGENT_TOKEN}"}
    return {"type": "remote", "url": gateway.endpoint, "headers": headers, "enabled": True}


CLIENT = ClientProgram(name="opencode", title="OpenCode", files=files, syntax=Jsonc(), read=read, write=write)
