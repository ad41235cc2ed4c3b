"""Which method does what, per revision: the one table that every transport answers from."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import Raw

from agent_gate.core.call import Caller
from agent_gate.core.ports import ContextSource
from agent_gate.core.tool import Json
from agent_gate.mcp.errors import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from agent_gate.mcp.messages import encode
from agent_gate.mcp.names import META_SERVER, SELF
from agent_gate.mcp.revisions import WITHOUT_SESSIONS, agreed
from agent_gate.surfaces.mcp.changes.subscriptions import Watches
from agent_gate.surfaces.mcp.context.contexts import Contexts
from agent_gate.surfaces.mcp.incoming.params import read_object
from agent_gate.surfaces.mcp.sessions.sessions import McpSession
from agent_gate.surfaces.mcp.tools.lists import ToolLists
from agent_gate.surfaces.mcp.visit import LEVELS, RANKS, Visit

log = logging.getLogger("agent_gate.surfaces.mcp")

TTL_MS = 60_000
LONGEST_GREETING = 64 * 1024
CAPABILITIES: dict[str, Json] = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
}
FAULT = RpcError(INTERNAL_ERROR, "Something went wrong inside the gateway; its log says what")
Quick = Callable[[Visit, dict[str, Any]], bytes]
Slow = Callable[[Visit, dict[str, Any]], Awaitable[bytes]]


class McpMethods:
    """All but `tools/call`: `quick` answers from memory; `slow` may reach a source, take long, and send messages meanwhile."""

    def __init__(self, lists: ToolLists, contexts: Contexts, watches: Watches) -> None:
        self._lists, self._contexts = lists, contexts
        self._loudest: WeakKeyDictionary[ContextSource, int] = WeakKeyDictionary()
        quick: dict[str, Quick] = {
            "tools/list": self._tools,
            "prompts/list": lambda visit, _: contexts.list_prompts(visit.caller, visit.revision),
            "resources/list": lambda visit, _: contexts.list_resources(visit.caller, visit.revision),
            "resources/templates/list": lambda visit, _: contexts.list_templates(
                visit.caller, visit.revision
            ),
        }
        slow: dict[str, Slow] = {
            "resources/read": contexts.read,
            "prompts/get": contexts.get_prompt,
            "completion/complete": contexts.complete,
        }
        # By whether the revision has sessions.
        self._quick = {True: {**quick, "ping": ping}, False: {**quick, "server/discover": self._discover}}
        self._slow = {
            False: slow,
            True: {
                **slow,
                "resources/subscribe": watches.subscribe,
                "resources/unsubscribe": watches.unsubscribe,
                "logging/setLevel": self._set_level,
            },
        }

    def quick(self, visit: Visit, method: str, params: dict[str, Any]) -> bytes | None:
        """The result of a method that needs nothing but memory; None if the method is another."""
        handler = self._quick[visit.revision.has_sessions].get(method)
        return handler(visit, params) if handler is not None else None

    def slow(self, visit: Visit, method: str, params: dict[str, Any]) -> Awaitable[bytes]:
        """The result of any other request; `RpcError` is for the client, anything else a `FAULT`."""
        handler = self._slow[visit.revision.has_sessions].get(method)
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method[:120]}")
        return handler(visit, params)

    def _tools(self, visit: Visit, params: Mapping[str, Json]) -> bytes:
        return self._lists.page(visit.caller, visit.mode, visit.revision, params.get("cursor"))

    def _discover(self, visit: Visit, params: Mapping[str, Json]) -> bytes:
        del visit, params
        return encode(
            {
                "resultType": "complete",
                "supportedVersions": list(WITHOUT_SESSIONS),
                "capabilities": CAPABILITIES,
                "ttlMs": TTL_MS,
                "cacheScope": "private",
                "_meta": {META_SERVER: SELF},
            }
        )

    def initialize(self, caller: Caller, mode: str, raw: Raw) -> tuple[McpSession, bytes]:
        """Settle on a revision: the one that was asked for, or else the newest that has a handshake."""
        if len(bytes(raw)) > LONGEST_GREETING:
            raise RpcError(
                INVALID_PARAMS,
                f"Invalid params: those of initialize have at most {LONGEST_GREETING} bytes; declare less",
            )
        params = read_object(raw)
        wanted, capabilities = params.get("protocolVersion"), params.get("capabilities")
        if not isinstance(wanted, str):
            raise RpcError(INVALID_PARAMS, "Invalid params: protocolVersion must be a string")
        revision = agreed(wanted)
        session = McpSession(caller, revision, mode, capabilities if isinstance(capabilities, dict) else {})
        welcome = {"protocolVersion": revision.name, "capabilities": CAPABILITIES, "serverInfo": SELF}
        return session, encode(welcome)

    async def _set_level(self, visit: Visit, params: dict[str, Any]) -> bytes:
        """Keep the session's level; sources are asked for the most that anybody wants."""
        level = params.get("level")
        if not isinstance(level, str) or level not in RANKS:
            raise RpcError(INVALID_PARAMS, f"Invalid params: level must be one of {', '.join(LEVELS)}")
        if visit.session is not None:
            visit.session.level = level
        for source in self._contexts.seen(visit.caller):
            louder = RANKS[level] < self._loudest.get(source, RANKS["info"])
            if louder and "logging" in source.capabilities():
                await self._ask_for(visit, source, level)
        return b"{}"

    async def _ask_for(self, visit: Visit, source: ContextSource, level: str) -> None:
        try:
            await self._contexts.forward(visit, source, "logging/setLevel", {"level": level})
        except RpcError as error:
            log.info("%s keeps its log level: %s", source.key, error.message)
        else:
            self._loudest[source] = RANKS[level]


def ping(visit: Visit, params: Mapping[str, Json]) -> bytes:
    del visit, params
    return b"{}"
