"""Which era a server speaks: `server/discover` first, `initialize` where that is not understood."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from agent_gate import __version__
from agent_gate.core.tool import Json
from agent_gate.sources.mcp.clean import clean
from agent_gate.sources.mcp.link import Link, Order
from agent_gate.sources.mcp.wire import (
    HANDSHAKE_ERAS,
    INTERNAL_ERROR,
    META_CAPABILITIES,
    META_CLIENT,
    META_SERVER,
    META_VERSION,
    MODERN,
    NEWEST_HANDSHAKE,
    UNSUPPORTED_VERSION,
    Refused,
    RpcError,
    is_modern,
    object_in,
)

PROBE_SECONDS = 3.0
LONGEST_ABOUT = 300
CLIENT = {"name": "agent-gate", "version": __version__}
ALL_CAPABILITIES: Mapping[str, Json] = {
    "sampling": {},
    "elicitation": {"form": {}, "url": {}},
    "roots": {"listChanged": False},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """What a server said about itself when it was met."""

    era: str
    capabilities: Mapping[str, Json] = field(default_factory=dict)
    info: Mapping[str, Json] = field(default_factory=dict)
    instructions: str = ""


def about(said: Welcome) -> str:
    """What a server says of itself, in one short line: who it is, then what it is for."""
    texts = (said.info.get("title") or said.info.get("name"), said.info.get("description"), said.instructions)
    return " ".join(" ".join(map(clean, texts)).split())[:LONGEST_ABOUT]


def modern_meta(capabilities: Mapping[str, Json]) -> dict[str, Json]:
    return {META_VERSION: MODERN, META_CAPABILITIES: capabilities, META_CLIENT: CLIENT}


def introduction(body: bytes) -> dict[str, Json]:
    found = object_in(body)
    if found is None:
        raise RpcError(INTERNAL_ERROR, "it introduced itself with something that is not an object")
    return found


def welcome(found: Mapping[str, Json], era: str) -> Welcome:
    """A server of the modern era has no member for who it is, and says so in `_meta`."""
    info = found.get("serverInfo") or mapping(found.get("_meta")).get(META_SERVER)
    instructions = found.get("instructions")
    return Welcome(
        era=era,
        capabilities=mapping(found.get("capabilities")),
        info=mapping(info),
        instructions=instructions if isinstance(instructions, str) else "",
    )


def mapping(value: Any) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


async def discover(link: Link, deadline: float) -> Welcome | None:
    """Meet a server of the modern era; None where it shows that it is not one."""
    link.era = MODERN
    params = {"_meta": modern_meta(ALL_CAPABILITIES)}
    try:
        body = await link.request(Order(method="server/discover", params=params, deadline=deadline))
        found = introduction(body)
    except Refused as refusal:
        if refusal.status in (401, 403):
            raise
        return None
    except RpcError:
        return None
    versions = found.get("supportedVersions")
    return welcome(found, MODERN) if isinstance(versions, list) and MODERN in versions else None


async def initialize(link: Link, capabilities: Mapping[str, Json], deadline: float) -> Welcome:
    """Meet a server of a handshake era, at the newest revision both know."""
    if is_modern(link.era):
        link.era = ""
    params = {"protocolVersion": NEWEST_HANDSHAKE, "capabilities": capabilities, "clientInfo": CLIENT}
    found = introduction(await link.request(Order(method="initialize", params=params, deadline=deadline)))
    era = found.get("protocolVersion")
    if era not in HANDSHAKE_ERAS:
        raise RpcError(
            UNSUPPORTED_VERSION, f"it speaks protocol revision {era!r:.40}, which is not known here"
        )
    link.era = era
    await link.notify("notifications/initialized")
    return welcome(found, era)


async def negotiate(link: Link, capabilities: Mapping[str, Json], known: str, deadline: float) -> Welcome:
    """Meet the server in the newest era it speaks. `known` is the era it spoke before, or empty."""
    if known and not is_modern(known):
        return await initialize(link, capabilities, deadline)
    probe = asyncio.create_task(discover(link, deadline))
    try:
        await asyncio.wait([probe], timeout=None if known else min(PROBE_SECONDS, deadline - monotonic()))
        if probe.done():
            return probe.result() or await initialize(link, capabilities, deadline)
        return await first_answer(probe, link, capabilities, deadline)
    finally:
        probe.cancel()


async def first_answer(
    probe: "asyncio.Task[Welcome | None]", link: Link, capabilities: Mapping[str, Json], deadline: float
) -> Welcome:
    """Offer the handshake to a server that has not answered yet: it may be old and silent, or modern and slow."""
    handshake = asyncio.create_task(initialize(link, capabilities, deadline))
    try:
        await asyncio.wait([probe, handshake], return_when=asyncio.FIRST_COMPLETED)
        if probe.done() and not probe.exception() and (modern := probe.result()):
            link.era = MODERN
            return modern
        try:
            return await handshake
        except RpcError:
            modern = await probe
            if modern is None:
                raise
            link.era = MODERN
            return modern
    finally:
        handshake.cancel()
