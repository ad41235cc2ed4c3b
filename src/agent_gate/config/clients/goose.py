"""Goose: `extensions` in `config.yaml`; those of type `builtin` and `platform` are no MCP servers."""

from collections.abc import Mapping
from typing import Any

from agent_gate.config.clients.forms import child, patience, remote, texts, words
from agent_gate.config.clients.model import ClientEntry, ClientFile, ClientProgram, GatewayEntry, Surroundings
from agent_gate.config.files.yamledit import Yaml


def files(place: Surroundings) -> list[ClientFile]:
    if place.platform == "win32":
        path = place.applications / "Block" / "goose" / "config" / "config.yaml"
    else:
        path = place.config / "goose" / "config.yaml"
    return [ClientFile("goose", path, "user", ("extensions",))]


def read(raw: Mapping[str, Any]) -> ClientEntry:
    kept = {name: f"${{{name}}}" for name in words(raw.get("env_keys"))}
    if raw.get("type") == "stdio" and isinstance(raw.get("cmd"), str):
        entry = child(raw["cmd"], raw.get("args"), {**kept, **texts(raw.get("envs"))})
    elif raw.get("type") in ("sse", "streamable_http") and isinstance(raw.get("uri"), str):
        entry = remote(raw["uri"], raw.get("headers"), raw["type"])
    else:
        return {}
    only = words(raw.get("available_tools"))
    return entry | ({"include": only} if only else {}) | patience(raw.get("timeout"))


def write(gateway: GatewayEntry) -> ClientEntry:
    return {
        "enabled": True,
        "type": "stdio",
        "name": "agent-gate",
        "description": "Tools behind agent-gate",
        "cmd": gateway.command,
        "args": gateway.bridge,
        "envs": {},
        "env_keys": [] if gateway.token_file else ["AGENT_TOKEN"],
        "timeout": 300,
    }


CLIENT = ClientProgram(name="goose", title="Goose", files=files, syntax=Yaml(), read=read, write=write)
