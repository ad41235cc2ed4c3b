"""What the shell may complete: tools and their arguments, from the gateway, remembered for a minute."""

import asyncio
import json
import os
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from agent_gate.approval.render import visible
from agent_gate.cli.agent import OWN_CERTIFICATES, is_own, own_address
from agent_gate.cli.operator import client_of
from agent_gate.cli.toolhelp import mapping, plain
from agent_gate.client.client import Client
from agent_gate.config.files.replace import replace_bytes
from agent_gate.errors import ConfigError, GatewayError
from agent_gate.net.tls.trust import made_authority

KEEP_SECONDS = 60.0
PATIENCE = 2.0


def cache_file(url: str, token: str) -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "agent-gate" / f"tools-{sha256(f'{url} {token}'.encode()).hexdigest()[:16]}.json"


def list_known_tools(params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tools of the named gateway; none where it cannot be asked, because completion must never complain."""
    token = params.get("token") or os.environ.get("AGENT_TOKEN")
    url = (params.get("url") or os.environ.get("AGENT_GATE_URL") or own_address()) if token else None
    if not url or not token:
        return []
    path = cache_file(url, token)
    try:
        if time.time() - path.stat().st_mtime < KEEP_SECONDS:
            kept: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
            return kept
    except (OSError, ValueError):
        pass
    try:
        found = asyncio.run(fetch(url, token, params))
    except (GatewayError, TimeoutError):
        return []
    remember(path, found)
    return found


async def fetch(url: str, token: str, params: Mapping[str, Any]) -> list[dict[str, Any]]:
    async with asyncio.timeout(PATIENCE):
        ca, fingerprint = params.get("ca"), params.get("fingerprint")
        if ca is None and fingerprint is None and is_own(url):
            ca = made_authority(OWN_CERTIFICATES)
        async with Client(url, token, ca=ca, fingerprint=fingerprint, reconnect=False) as client:
            return await client.tools()


def remember(path: Path, tools: list[dict[str, Any]]) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_bytes(path, json.dumps(tools).encode(), private=True)
    except (OSError, ConfigError):
        return


def complete_tool(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(tool["name"], help=visible(tool["description"].partition("\n")[0][:80]))
        for tool in list_known_tools(ctx.params)
        if tool["name"].startswith(incomplete) and is_word(tool["name"])
    ]


def complete_approval(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The ends of the open questions' ids, which are enough to name them."""
    given = ctx.parent.params if ctx.parent is not None else {}
    try:
        client = client_of(given.get("admin_socket"), given.get("config"))
        found = client.get("/api/approvals", timeout=PATIENCE)
    except GatewayError:
        return []
    return [
        CompletionItem(one["id"][-8:], help=visible(one["signature"][:80]))
        for one in found
        if one["id"][-8:].startswith(incomplete)
    ]


def is_word(text: str) -> bool:
    """Whether a shell may be given this as one word of a line: what a gateway says must not become two."""
    return text.isprintable() and visible(text) == text and not any(c.isspace() for c in text)


def complete_argument(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """`name=` for arguments not given yet, then their values where the schema lists them."""
    wanted = ctx.params.get("tool")
    tool = next((tool for tool in list_known_tools(ctx.params) if tool["name"] == wanted), None)
    if tool is None:
        return []
    properties = mapping(tool["input_schema"].get("properties"))
    name, found, start = incomplete.partition("=")
    if found:
        return [
            CompletionItem(f"{name}={value}")
            for value in values(properties.get(name))
            if value.startswith(start) and is_word(value)
        ]
    given = {str(item).partition("=")[0].rstrip(":") for item in ctx.params.get("arguments") or ()}
    return [
        CompletionItem(f"{key}=")
        for key in properties
        if key.startswith(incomplete) and key not in given and is_word(key)
    ]


def values(declared: Any) -> list[str]:
    declared = mapping(declared)
    if declared.get("type") == "boolean":
        return ["true", "false"]
    listed = declared.get("enum")
    return [plain(value) for value in listed] if isinstance(listed, list) else []
