"""MCP servers from servers.yaml, `mcpServers` JSON, VS Code's `servers` and Codex' TOML into `ServerSettings`."""

import re
import shutil
from pathlib import Path
from typing import Any

from agent_gate.config.decode import SECRET_NAME, Reading, convert, decode, relative_to, require_address
from agent_gate.config.doubts import warn_of_loaded_code, warn_of_plain_http
from agent_gate.config.files.nodes import Mark, Node, entries, fail, join, read_named
from agent_gate.config.files.variables import is_off
from agent_gate.config.servers.fetched import moving
from agent_gate.config.servers.settings import ServerAuth, ServerSettings, Transport
from agent_gate.config.shape import keys
from agent_gate.config.signin import check_accounts, check_sign_in

TRANSPORTS: dict[str, Transport] = {
    "stdio-mcp": "stdio",
    "remote-mcp": "auto",
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "remote": "auto",
    "streamable-http": "http",
    "streamablehttp": "http",
    "streamable_http": "http",
    "sse": "sse",
    "auto": "auto",
}
SAME = {
    "httpUrl": "url",
    "serverUrl": "url",
    "http_headers": "headers",
    "environment": "env",
    "title": "name",
    "includeTools": "include",
    "enabled_tools": "include",
    "excludeTools": "exclude",
    "disabled_tools": "exclude",
    "disabledTools": "exclude",
}
LONGEST_LIKELY = 3600.0


def read_servers(
    node: Node, path: str, reading: Reading, *, lenient: bool, strict_supply_chain: bool
) -> dict[str, ServerSettings]:
    """Every server of a mapping. `lenient` only warns of unknown keys, for files that clients own."""

    def read(key: str, item: Node) -> ServerSettings:
        where = join(path, key)
        server = read_server(item, key, node.key_mark(key), where, reading, lenient=lenient)
        check_package(server, item, where, reading, strict=strict_supply_chain)
        return server

    return read_named(node, path, read)


def read_server(
    node: Node, key: str, mark: Mark, path: str, reading: Reading, *, lenient: bool
) -> ServerSettings:
    plain = rename_keys(split_command(drop_unknown(node, path, reading)) if lenient else node)
    given: dict[str, Any] = {
        "key": key,
        "where": str(mark),
        "transport": read_transport(plain, path),
        "auth": read_auth(plain, path, reading),
    }
    if (disabled := plain.get("disabled")) is not None:
        given["enabled"] = not convert(disabled, bool, join(path, "disabled"), reading)
    if (cwd := plain.get("cwd")) is not None:
        given["cwd"] = str(relative_to(cwd.mark, Path(convert(cwd, str, join(path, "cwd"), reading))))
    server = decode(plain, ServerSettings, path, reading, **given)
    check_server(server, plain, path)
    doubt_server(server, plain, path, reading)
    if lenient and (server.timeout or 0) > LONGEST_LIKELY:
        mark = (plain.get("timeout") or plain).mark
        reading.warn(mark, join(path, "timeout"), "is in seconds here; some clients count milliseconds")
    return server


def drop_unknown(node: Node, path: str, reading: Reading) -> Node:
    """The mapping without the keys we do not know, each of them a warning."""
    known = keys(ServerSettings)
    found = entries(node, path)
    for key in found:
        if key not in known:
            reading.warn(node.key_mark(key), join(path, key), "unknown key, ignored")
    return Node({key: item for key, item in found.items() if key in known}, node.mark, node.keys)


def split_command(node: Node) -> Node:
    """The mapping with the program and its arguments apart, where its command is a list of both, as OpenCode has it."""
    listed = node.get("command")
    if (
        listed is None
        or not isinstance(listed.value, list)
        or not listed.value
        or node.get("args") is not None
    ):
        return node
    first, *rest = listed.value
    return Node(
        {**entries(node, ""), "command": first, "args": Node(rest, listed.mark)}, node.mark, node.keys
    )


def rename_keys(node: Node) -> Node:
    """The mapping with other clients' words for our keys replaced, unless ours is there too."""
    if not isinstance(node.value, dict):
        return node
    renamed = {
        (SAME.get(key, key) if SAME.get(key) not in node.value else key): item
        for key, item in node.value.items()
    }
    marks = {SAME.get(key, key): mark for key, mark in node.keys.items()}
    return Node(renamed, node.mark, marks)


def read_transport(node: Node, path: str) -> Transport:
    for key in "transport", "type":
        found = node.get(key)
        if found is not None:
            transport = TRANSPORTS.get(str(found.value).lower())
            if transport is None:
                fail(found.mark, join(path, key), "expected stdio, http, sse, stdio-mcp or remote-mcp")
            return transport
    return "stdio" if node.get("command") is not None else "auto"


def read_auth(node: Node, path: str, reading: Reading) -> ServerAuth:
    """The credential. One that is in the environment is used from there, and is known now so that it is redacted."""
    found = node.get("auth")
    if found is None:
        return ServerAuth()
    auth = decode(found, ServerAuth, join(path, "auth"), reading)
    check_sign_in(auth, auth.type, found, join(path, "auth"))
    if node.get("command") is not None and auth.type != "none" and not auth.env and not is_off(node):
        fail(found.mark, join(path, "auth"), 'a program needs "env", the variable in which it gets its key')
    if not auth.env or auth.token:
        return auth
    token = reading.variables.env.get(auth.env, "")
    reading.variables.remember(token)
    if not token and not is_off(node):
        reading.warn(found.mark, join(path, "auth.env"), f"the environment variable {auth.env} is not set")
    return auth


def check_server(server: ServerSettings, node: Node, path: str) -> None:
    placed = node.get("credentials") or node
    check_accounts(server.credentials, server.auth.type, server.auth.token, placed, join(path, "credentials"))
    if server.command and server.url:
        fail(node.mark, path, "has a command and a url; it is one or the other")
    if not server.command and not server.url:
        fail(node.mark, path, 'needs a "command" to start or a "url" to connect to')
    if server.command and server.transport != "stdio":
        fail(node.mark, path, f"a command speaks stdio, not {server.transport}")
    if server.url and server.transport == "stdio":
        fail(node.mark, path, "a stdio server needs a command, not a url")
    if re.search(r"\s", server.command) and shutil.which(server.command) is None:
        fail(
            (node.get("command") or node).mark,
            join(path, "command"),
            "is one program without a shell; put its arguments into args",
        )
    if server.url and not re.match(r"https?://[^/]", server.url) and server.enabled:
        fail((node.get("url") or node).mark, join(path, "url"), "must start with http:// or https://")
    if server.url and server.enabled:
        require_address(node.get("url") or node, join(path, "url"))


def doubt_server(server: ServerSettings, node: Node, path: str, reading: Reading) -> None:
    warn_of_loaded_code(node.get("env"), join(path, "env"), reading)
    if server.url and server.enabled and (server.auth.token or any(map(SECRET_NAME.search, server.headers))):
        warn_of_plain_http(node.get("url") or node, join(path, "url"), reading)


def check_package(server: ServerSettings, node: Node, path: str, reading: Reading, *, strict: bool) -> None:
    """Say when starting a server fetches whatever version is newest at the time."""
    found = moving(server.command, server.args)
    if found is None:
        return
    message = f"{found.program} fetches {found.what} without a fixed version; write {found.write}"
    mark = (node.get("args") or node).mark
    if strict and server.enabled:
        fail(mark, join(path, "args"), f"{message} (strict_supply_chain)")
    reading.warn(mark, join(path, "args"), message)
