"""Who is subscribed to what: `subscriptions/listen` of 2026-07-28, and `resources/subscribe` before it."""

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from agent_gate.core.call import Caller
from agent_gate.core.ports import Clock, ContextSource
from agent_gate.core.tool import Json
from agent_gate.errors import GatewayError
from agent_gate.surfaces.mcp.contexts import SECONDS, Contexts
from agent_gate.surfaces.mcp.visit import Visit
from agent_gate.surfaces.mcp.wire import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    META_SUBSCRIPTION,
    PROMPTS_CHANGED,
    RESOURCE_NOT_FOUND,
    RESOURCES_CHANGED,
    TOOLS_CHANGED,
    RpcError,
    encode,
    response,
)

log = logging.getLogger("agent_gate.surfaces.mcp")
FLAGS = {
    "toolsListChanged": TOOLS_CHANGED,
    "promptsListChanged": PROMPTS_CHANGED,
    "resourcesListChanged": RESOURCES_CHANGED,
}
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
MOST_URIS = 1_000


class Listen:
    """One open `subscriptions/listen`: hears only what it asked for, each message stamped with its id."""

    modern = True

    def __init__(
        self, caller: Caller, mode: str, number: bytes, wanted: Json, emit: Callable[[bytes], None]
    ) -> None:
        if not isinstance(wanted, dict):
            raise RpcError(INVALID_PARAMS, "Invalid params: notifications must say what to listen to")
        uris = wanted.get("resourceSubscriptions") or []
        if not isinstance(uris, list) or len(uris) > MOST_URIS or not all(isinstance(u, str) for u in uris):
            raise RpcError(
                INVALID_PARAMS, f"Invalid params: resourceSubscriptions takes up to {MOST_URIS} URIs"
            )
        self.caller, self.mode, self.number, self._emit = caller, mode, number, emit
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


class Watches:
    """How many listeners watch each resource; its source is asked on the first and told on the last."""

    def __init__(self, contexts: Contexts, clock: Clock) -> None:
        self._contexts, self._clock = contexts, clock
        self._counts: Counter[str] = Counter()
        self._owners: dict[str, ContextSource] = {}

    async def watch(self, visit: Visit, uri: str) -> None:
        source = self._contexts.owner(visit.caller, uri)
        if source is None:
            code = INVALID_PARAMS if visit.modern else RESOURCE_NOT_FOUND
            raise RpcError(code, f"Resource not found: {uri[:200]}", {"uri": uri})
        self._counts[uri] += 1
        if self._counts[uri] == 1:
            try:
                await self._contexts.forward(visit, source, "resources/subscribe", {"uri": uri})
            except RpcError:
                self._counts[uri] -= 1
                raise
            self._owners[uri] = source

    async def unwatch(self, visit: Visit, uri: str) -> None:
        self._counts[uri] -= 1
        if self._counts[uri] > 0:
            return
        del self._counts[uri]
        source = self._owners.pop(uri, None)
        if source is not None:
            await self._contexts.forward(visit, source, "resources/unsubscribe", {"uri": uri})

    async def renew(self, key: str) -> None:
        """A source is back: it may have forgotten what it was asked to watch."""
        for uri, source in list(self._owners.items()):
            if source.key == key:
                deadline = self._clock.monotonic() + SECONDS
                try:
                    await source.forward("resources/subscribe", {"uri": uri}, None, deadline)
                except GatewayError as error:
                    log.info("%s no longer tells of a resource: %s", key, error.message)

    def forget(self, uris: frozenset[str] | set[str]) -> None:
        """A listener is gone; its sources are left subscribed, which costs them nothing but a notice."""
        for uri in uris:
            if self._counts[uri] > 1:
                self._counts[uri] -= 1

    async def subscribe(self, visit: Visit, params: dict[str, Any]) -> bytes:
        session, uri = visit.session, params.get("uri")
        if session is None or not isinstance(uri, str):
            raise RpcError(INVALID_REQUEST, "A subscription needs a session and a uri; send initialize first")
        if uri not in session.watching and len(session.watching) < MOST_URIS:
            await self.watch(visit, uri)
            session.watching.add(uri)
        return b"{}"

    async def unsubscribe(self, visit: Visit, params: dict[str, Any]) -> bytes:
        session, uri = visit.session, params.get("uri")
        if session is not None and isinstance(uri, str) and uri in session.watching:
            session.watching.discard(uri)
            await self.unwatch(visit, uri)
        return b"{}"
