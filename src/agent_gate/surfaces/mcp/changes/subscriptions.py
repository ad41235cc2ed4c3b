"""Who is subscribed to what: `subscriptions/listen`, and `resources/subscribe` where there are sessions."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from agent_gate.core.ports import Clock
from agent_gate.core.tool import Json
from agent_gate.errors import GatewayError
from agent_gate.mcp.errors import INVALID_PARAMS, INVALID_REQUEST, RpcError
from agent_gate.mcp.messages import encode, response
from agent_gate.mcp.names import (
    ACKNOWLEDGED,
    META_SUBSCRIPTION,
    PROMPTS_CHANGED,
    RESOURCES_CHANGED,
    TOOLS_CHANGED,
)
from agent_gate.surfaces.mcp.changes.notices import Listener
from agent_gate.surfaces.mcp.context.contexts import SECONDS, Contexts
from agent_gate.surfaces.mcp.context.reads import denied
from agent_gate.surfaces.mcp.visit import Visit

log = logging.getLogger("agent_gate.surfaces.mcp")
FLAGS = {
    "toolsListChanged": TOOLS_CHANGED,
    "promptsListChanged": PROMPTS_CHANGED,
    "resourcesListChanged": RESOURCES_CHANGED,
}
WatchedSpot = tuple[str, str]
"""A source's key, and the URI of one of its resources."""
MOST_URIS = 1_000
LONGEST_URI = 8 * 1024


class Listen:
    """One open `subscriptions/listen`: hears only what it asked for, each message stamped with its id."""

    def __init__(self, visit: Visit, wanted: Json, emit: Callable[[bytes], None]) -> None:
        if not isinstance(wanted, dict):
            raise RpcError(INVALID_PARAMS, "Invalid params: notifications must say what to listen to")
        uris = wanted.get("resourceSubscriptions") or []
        if not isinstance(uris, list) or len(uris) > MOST_URIS or not all(isinstance(u, str) for u in uris):
            raise RpcError(
                INVALID_PARAMS, f"Invalid params: resourceSubscriptions takes up to {MOST_URIS} URIs"
            )
        for uri in uris:
            check_length(uri)
        self.caller, self.revision, self.mode = visit.caller, visit.revision, visit.mode
        self.number, self._emit = visit.id, emit
        self.proof = b""
        self.uris = frozenset(uris)
        self._methods = frozenset(method for flag, method in FLAGS.items() if wanted.get(flag) is True)

    @property
    def _stamp(self) -> bytes:
        return b'"_meta":{"%b":%b}' % (META_SUBSCRIPTION.encode(), self.number)

    def acknowledge(self) -> None:
        honoured: dict[str, Json] = {flag: True for flag, method in FLAGS.items() if method in self._methods}
        if self.uris:
            honoured["resourceSubscriptions"] = sorted(self.uris)
        self.hear(ACKNOWLEDGED, {"notifications": honoured})

    def wants(self, method: str, uri: str | None) -> bool:
        return uri in self.uris if uri is not None else method in self._methods

    def hear(self, method: str, params: Mapping[str, Json]) -> None:
        inner = encode(params)[1:-1]
        joined = inner + b"," + self._stamp if inner else self._stamp
        self._emit(b'{"jsonrpc":"2.0","method":%b,"params":{%b}}' % (encode(method), joined))

    def goodbye(self) -> bytes:
        """The answer that ends the stream on purpose."""
        return response(self.number, b'{"resultType":"complete",%b}' % self._stamp)


def check_length(uri: str) -> None:
    """A template fits URIs of any length, and what is watched is kept."""
    if len(uri) > LONGEST_URI:
        raise RpcError(
            INVALID_PARAMS,
            f"Invalid params: a URI that is subscribed to has at most {LONGEST_URI} characters",
        )


class Watches:
    """Who watches each resource of each source; a source is asked for the first of them and told after the last."""

    def __init__(self, contexts: Contexts, clock: Clock) -> None:
        self._contexts, self._clock = contexts, clock
        self._watchers: dict[WatchedSpot, set[Listener]] = {}
        self._spots: dict[Listener, set[WatchedSpot]] = {}
        self._asked: set[WatchedSpot] = set()

    def __contains__(self, watcher: Listener) -> bool:
        return watcher in self._spots

    async def watch(self, visit: Visit, watcher: Listener, uri: str) -> None:
        source = self._contexts.owner(visit.caller, uri)
        if source is None:
            raise RpcError(visit.revision.not_found, f"Resource not found: {uri[:200]}", {"uri": uri[:200]})
        if (decision := self._contexts.hides(visit.caller, source, uri)) is not None:
            raise denied(decision, visit.revision)
        spot = source.key, uri
        self._watchers.setdefault(spot, set()).add(watcher)
        self._spots.setdefault(watcher, set()).add(spot)
        if spot in self._asked:
            return
        try:
            await self._contexts.forward(visit, source, "resources/subscribe", {"uri": uri})
        except BaseException:
            self._leave(watcher, spot)
            raise
        if spot in self._watchers:
            self._asked.add(spot)
        else:
            await self._tell("resources/unsubscribe", spot, self._clock.monotonic() + SECONDS)

    async def renew(self, key: str) -> None:
        """A source is back: it may have forgotten what it was asked to watch."""
        deadline = self._clock.monotonic() + SECONDS
        for spot in [spot for spot in self._watchers if spot[0] == key]:
            await self._tell("resources/subscribe", spot, deadline)

    async def forget(self, watcher: Listener, uri: str | None = None) -> None:
        """A listener is gone, or wants to hear no more of one resource."""
        spots = [spot for spot in self._spots.get(watcher, ()) if uri in (None, spot[1])]
        deadline = self._clock.monotonic() + SECONDS
        for spot in [spot for spot in spots if self._leave(watcher, spot)]:
            await self._tell("resources/unsubscribe", spot, deadline)
            if spot in self._watchers:  # somebody came meanwhile, whose request this one may have overtaken
                await self._tell("resources/subscribe", spot, deadline)

    def _leave(self, watcher: Listener, spot: WatchedSpot) -> bool:
        """Whether this was the last one that the source was asked for."""
        spots, watchers = self._spots.get(watcher, set()), self._watchers.get(spot, set())
        spots.discard(spot)
        watchers.discard(watcher)
        if not spots:
            self._spots.pop(watcher, None)
        if watchers:
            return False
        self._watchers.pop(spot, None)
        asked = spot in self._asked
        self._asked.discard(spot)
        return asked

    async def _tell(self, method: str, spot: WatchedSpot, deadline: float) -> None:
        key, uri = spot
        source = self._contexts.source(key)
        if source is None:
            return
        try:
            await source.forward(method, {"uri": uri}, None, deadline)
        except GatewayError as error:
            log.info("%s did not take %s: %s", key, method, error.message)

    async def subscribe(self, visit: Visit, params: dict[str, Any]) -> bytes:
        session, uri = visit.session, params.get("uri")
        if session is None or not isinstance(uri, str):
            raise RpcError(INVALID_REQUEST, "A subscription needs a session and a uri; send initialize first")
        if uri not in session.watching:
            check_length(uri)
            if len(session.watching) >= MOST_URIS:
                raise RpcError(
                    INVALID_PARAMS,
                    f"{MOST_URIS} resources are subscribed to already; unsubscribe from one first",
                )
            await self.watch(visit, session, uri)
            session.watching.add(uri)
        return b"{}"

    async def unsubscribe(self, visit: Visit, params: dict[str, Any]) -> bytes:
        session, uri = visit.session, params.get("uri")
        if session is not None and isinstance(uri, str) and uri in session.watching:
            session.watching.discard(uri)
            await self.forget(session, uri)
        return b"{}"
