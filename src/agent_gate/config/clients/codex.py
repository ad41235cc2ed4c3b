"""Codex: tables `[mcp_servers.NAME]` in `~/.codex/config.toml`, which name variables instead of expanding them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_gate.config.clients.forms import child, patience, remote, texts, words
from agent_gate.config.clients.model import ClientEntry, ClientFile, ClientProgram, GatewayEntry, Surroundings
from agent_gate.config.files.tomledit import Toml


def files(place: Surroundings) -> list[ClientFile]:
    folder = Path(place.env.get("CODEX_HOME") or place.home / ".codex")
    return [
        ClientFile("codex", folder / "config.toml", "user", ("mcp_servers",)),
        ClientFile("codex", place.cwd / ".codex" / "config.toml", "project", ("mcp_servers",)),
    ]


def read(raw: Mapping[str, Any]) -> ClientEntry:
    if isinstance(raw.get("command"), str):
        passed = {name: f"${{{name}}}" for name in words(raw.get("env_vars"))}
        env = {**passed, **texts(raw.get("env"))}
        return child(raw["command"], raw.get("args"), env, raw.get("cwd")) | time_of(raw)
    if not isinstance(raw.get("url"), str):
        return {}
    headers = texts(raw.get("http_headers"))
    headers |= {name: f"${{{env}}}" for name, env in texts(raw.get("env_http_headers")).items()}
    if token := raw.get("bearer_token_env_var"):
        headers["Authorization"] = f"Bearer ${{{token}}}"
    return remote(raw["url"], headers) | time_of(raw)


def time_of(raw: Mapping[str, Any]) -> ClientEntry:
    return patience(raw.get("tool_timeout_sec"))


def write(gateway: GatewayEntry) -> ClientEntry:
    if gateway.needs_bridge:
        return gateway.as_program() | ({} if gateway.token_file else {"env_vars": ["AGENT_TOKEN"]})
    return {"url": gateway.endpoint, "bearer_token_env_var": "AGENT_TOKEN"}


CLIENT = ClientProgram(name="codex", title="Codex", files=files, syntax=Toml(), read=read, write=write)
