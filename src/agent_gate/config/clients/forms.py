"""The forms of a server that several clients share, turned into ours."""

import re
from collections.abc import Mapping
from typing import Any

from agent_gate.config.clients.model import ClientEntry
from agent_gate.config.servers.read import SAME

ADDRESSES = ("url", "httpUrl", "serverUrl", "uri")
HTTP_WORDS = frozenset({"http", "streamable-http", "streamablehttp", "streamable_http", "remote"})
INPUT = re.compile(r"\$\{input:([^}]+)\}")


def texts(value: object) -> dict[str, str]:
    return {str(key): text(item) for key, item in value.items()} if isinstance(value, Mapping) else {}


def text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def words(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def child(command: object, args: object = (), env: object = None, cwd: object = None) -> ClientEntry:
    """A server that is started; what is empty is left out."""
    entry: ClientEntry = {"command": str(command), "args": words(args), "env": texts(env), "cwd": cwd}
    return {key: value for key, value in entry.items() if value}


def remote(url: object, headers: object = None, kind: object = None) -> ClientEntry:
    """A server that is connected to; `type` only where the client says it."""
    word = str(kind or "").lower()
    entry: ClientEntry = {
        "type": "sse" if word == "sse" else "http" if word in HTTP_WORDS else "",
        "url": str(url),
        "headers": texts(headers),
    }
    return {key: value for key, value in entry.items() if value}


def argv(raw: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The program and its arguments; a list, as OpenCode has it, is both."""
    command, args = raw.get("command"), words(raw.get("args"))
    listed = [] if args else words(command)
    return (listed[0], listed[1:]) if listed else (command if isinstance(command, str) else "", args)


def standard(raw: Mapping[str, Any]) -> ClientEntry:
    """The form of Claude, Cursor, Windsurf, VS Code and Cline; empty where it is no server."""
    command, args = argv(raw)
    if command:
        named = {"envFile": raw["envFile"]} if isinstance(raw.get("envFile"), str) else {}
        return child(command, args, raw.get("env") or raw.get("environment"), raw.get("cwd")) | named
    for key in ADDRESSES:
        if isinstance(raw.get(key), str):
            return remote(raw[key], raw.get("headers"), raw.get("type") or raw.get("transport"))
    return {}


def chosen_tools(raw: Mapping[str, Any]) -> ClientEntry:
    """Which tools of a server its user wants, which may be none, and which not; in our words."""
    lists = {SAME[key]: words(value) for key, value in raw.items() if key in SAME and isinstance(value, list)}
    return {key: names for key, names in lists.items() if key == "include" or (key == "exclude" and names)}


def patience(seconds: object) -> ClientEntry:
    """How long a call may run, where the client says a number that can be one."""
    usable = isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds > 0
    return {"timeout": seconds} if usable else {}


def rewrite(value: Any, pattern: re.Pattern[str], replacement: Any) -> Any:
    """`value` with `pattern` replaced in every text inside it."""
    if isinstance(value, str):
        return pattern.sub(replacement, value)
    if isinstance(value, Mapping):
        return {key: rewrite(item, pattern, replacement) for key, item in value.items()}
    return [rewrite(item, pattern, replacement) for item in value] if isinstance(value, list) else value
