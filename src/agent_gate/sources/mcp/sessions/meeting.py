"""Which revision a server speaks: `server/discover` first, `initialize` where that is not understood."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from agent_gate import __version__
from agent_gate.core.tool import Json
from agent_gate.mcp.errors import INTERNAL_ERROR, UNSUPPORTED_VERSION, RpcError
from agent_gate.mcp.names import (
    DISCOVER,
    INITIALIZE,
    INITIALIZED,
    META_CAPABILITIES,
    META_CLIENT,
    META_SERVER,
    META_VERSION,
)
from agent_gate.mcp.revisions import (
    NEWEST_WITH_SESSIONS,
    NEWEST_WITHOUT_SESSIONS,
    WITH_SESSIONS,
    WITHOUT_SESSIONS,
    Revision,
)
from agent_gate.sources.mcp.clean import clean
from agent_gate.sources.mcp.wire.frames import object_in
from agent_gate.sources.mcp.wire.link import ServerLink
from agent_gate.sources.mcp.wire.order import Order
from agent_gate.sources.mcp.wire.problems import TurnedAway

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

    revision: Revision
    capabilities: Mapping[str, Json] = field(default_factory=dict)
    info: Mapping[str, Json] = field(default_factory=dict)
    instructions: str = ""


def about(said: Welcome) -> str:
    """What a server says of itself, in one short line: who it is, then what it is for."""
    texts = (said.info.get("title") or said.info.get("name"), said.info.get("description"), said.instructions)
    return " ".join(" ".join(map(clean, texts)).split())[:LONGEST_ABOUT]


def said_each_time(revision: Revision, capabilities: Mapping[str, Json]) -> dict[str, Json]:
    """What each request says in its `_meta` where no session keeps it."""
    return {META_VERSION: revision.name, META_CAPABILITIES: capabilities, META_CLIENT: CLIENT}


def introduction(body: bytes) -> dict[str, Json]:
    found = object_in(body)
    if found is None:
        raise RpcError(INTERNAL_ERROR, "it introduced itself with something that is not an object")
    return found


def welcome(found: Mapping[str, Json], revision: Revision) -> Welcome:
    """A server without sessions has no member for who it is, and says so in `_meta`."""
    info = found.get("serverInfo") or mapping(found.get("_meta")).get(META_SERVER)
    instructions = found.get("instructions")
    return Welcome(
        revision=revision,
        capabilities=mapping(found.get("capabilities")),
        info=mapping(info),
        instructions=instructions if isinstance(instructions, str) else "",
    )


def mapping(value: Any) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


async def discover(
    link: ServerLink, deadline: float, revision: Revision = NEWEST_WITHOUT_SESSIONS
) -> Welcome | None:
    """Meet a server without sessions, in the newest revision both know; None where it shows that it is not one."""
    link.revision = revision
    own = said_each_time(revision, ALL_CAPABILITIES)
    try:
        found = introduction(
            await link.request(Order(method=DISCOVER, params={}, deadline=deadline, own=own))
        )
    except TurnedAway as refusal:
        if refusal.status in (401, 403):
            raise
        return None
    except RpcError as error:
        other = known_in(mapping(error.data).get("supported")) if error.code == UNSUPPORTED_VERSION else None
        if other is None or other is revision or revision is not NEWEST_WITHOUT_SESSIONS:
            return None
        return await discover(link, deadline, other)
    both = known_in(found.get("supportedVersions"))
    if both is None:
        return None
    link.revision = both
    return welcome(found, both)


def known_in(names: Json) -> Revision | None:
    """The newest revision without sessions of those that a server names."""
    named = names if isinstance(names, list) else []
    known = [revision for name, revision in WITHOUT_SESSIONS.items() if name in named]
    return known[-1] if known else None


async def initialize(link: ServerLink, capabilities: Mapping[str, Json], deadline: float) -> Welcome:
    """Meet a server with sessions, at the newest revision both know."""
    if link.revision is not None and not link.revision.has_sessions:
        link.revision = None
    params = {
        "protocolVersion": NEWEST_WITH_SESSIONS.name,
        "capabilities": capabilities,
        "clientInfo": CLIENT,
    }
    found = introduction(await link.request(Order(method=INITIALIZE, params=params, deadline=deadline)))
    said = found.get("protocolVersion")
    revision = WITH_SESSIONS.get(said) if isinstance(said, str) else None
    if revision is None:
        raise RpcError(
            UNSUPPORTED_VERSION, f"it speaks protocol revision {said!r:.40}, which is not known here"
        )
    link.revision = revision
    await link.notify(INITIALIZED)
    return welcome(found, revision)


async def negotiate(
    link: ServerLink, capabilities: Mapping[str, Json], known: Revision | None, deadline: float
) -> Welcome:
    """Meet the server in the newest revision it speaks. `known` is the one it spoke before."""
    if known is not None and known.has_sessions:
        return await initialize(link, capabilities, deadline)
    probe = asyncio.create_task(discover(link, deadline))
    try:
        await asyncio.wait([probe], timeout=None if known else min(PROBE_SECONDS, deadline - monotonic()))
        if probe.done():
            return probe.result() or await initialize(link, capabilities, deadline)
        return await await_first_answer(probe, link, capabilities, deadline)
    finally:
        probe.cancel()


async def await_first_answer(
    probe: "asyncio.Task[Welcome | None]", link: ServerLink, capabilities: Mapping[str, Json], deadline: float
) -> Welcome:
    """Offer the handshake to a server that has not answered yet: it may be old and silent, or new and slow."""
    handshake = asyncio.create_task(initialize(link, capabilities, deadline))
    try:
        await asyncio.wait([probe, handshake], return_when=asyncio.FIRST_COMPLETED)
        if probe.done() and not probe.exception() and (found := probe.result()):
            link.revision = found.revision
            return found
        try:
            return await handshake
        except RpcError:
            found = await probe
            if found is None:
                raise
            link.revision = found.revision
            return found
    finally:
        handshake.cancel()
