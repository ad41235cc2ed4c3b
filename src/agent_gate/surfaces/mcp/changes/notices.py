"""Change notices: what a source or the catalog announces, told to each client that can see a difference."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from agent_gate.core.call import Caller
from agent_gate.core.catalog import Catalog, Shelf
from agent_gate.core.ports import ContextSource
from agent_gate.core.tool import Json
from agent_gate.mcp.names import PROMPTS_CHANGED, RESOURCE_UPDATED, RESOURCES_CHANGED, TOOLS_CHANGED
from agent_gate.mcp.revisions import Revision
from agent_gate.surfaces.mcp.context.contexts import Contexts, ContextSources
from agent_gate.surfaces.mcp.tools.lists import ToolLists

LISTS = (TOOLS_CHANGED, PROMPTS_CHANGED, RESOURCES_CHANGED)


class Listener(Protocol):
    """A client that hears of changes: a session, or an open `subscriptions/listen`.

    `proof` is the digest of the token that opened it; empty on a pipe, which has none.
    """

    caller: Caller
    proof: bytes
    mode: str
    revision: Revision

    def wants(self, method: str, uri: str | None) -> bool: ...
    def hear(self, method: str, params: Mapping[str, Json]) -> None: ...


SeenBy = Callable[[Listener], object]
ListKey = tuple[str, str, str, Revision]


class Notices:
    """Remembers what each kind of listener last saw, so that only visible changes are told."""

    def __init__(
        self,
        lists: ToolLists,
        contexts: Contexts,
        sources: ContextSources,
        shelf: Shelf,
        returned: Callable[[str], None],
    ) -> None:
        self._contexts, self._sources, self._returned = contexts, sources, returned
        self._listeners: set[Listener] = set()
        self._known: dict[ListKey, object] = {}
        self._undo: dict[str, tuple[ContextSource, Callable[[], None]]] = {}
        self._seen: dict[str, SeenBy] = {
            TOOLS_CHANGED: lambda who: hash(tuple(lists.pages(who.caller, who.mode, who.revision))),
            PROMPTS_CHANGED: lambda who: hash(contexts.list_prompts(who.caller, who.revision)),
            RESOURCES_CHANGED: lambda who: hash(
                contexts.list_resources(who.caller, who.revision)
                + contexts.list_templates(who.caller, who.revision)
            ),
        }
        self._stop: Callable[[], None] | None = shelf.subscribe(self._on_swap)

    def __len__(self) -> int:
        return len(self._listeners)

    def join(self, listener: Listener) -> None:
        self._attach()
        for method in LISTS:
            key = key_of(method, listener)
            if key not in self._known:
                self._known[key] = self._seen[method](listener)
        self._listeners.add(listener)

    def leave(self, listener: Listener) -> None:
        self._listeners.discard(listener)
        mine = (listener.caller.name, listener.mode, listener.revision)
        if not any((one.caller.name, one.mode, one.revision) == mine for one in self._listeners):
            for method in LISTS:
                self._known.pop(key_of(method, listener), None)

    def __contains__(self, listener: Listener) -> bool:
        return listener in self._listeners

    def __iter__(self) -> Iterator[Listener]:
        return iter(tuple(self._listeners))

    def listening(self, caller: Caller) -> int:
        """How many `subscriptions/listen` of this caller are open; sessions have a bound of their own."""
        return sum(
            1 for one in self._listeners if one.revision.listens_by_request and one.caller.name == caller.name
        )

    def close(self) -> None:
        stop, self._stop = self._stop, None
        if stop is not None:
            stop()
        for _, undo in self._undo.values():
            undo()
        self._undo.clear()

    def _on_swap(self, before: Catalog, now: Catalog) -> None:
        self.swapped()
        for key, listing in now.listings.items():
            old = before.listings.get(key)
            if old is not None and listing.available and not old.available:
                self._returned(key)

    def swapped(self) -> None:
        """A new catalog: sources may have come or gone, and with them anything they offer."""
        self._attach()
        for method in LISTS:
            self.changed(method)

    def _attach(self) -> None:
        """Listen to each source once; a source that was replaced is listened to anew."""
        sources = self._sources()
        for key in [key for key, (source, _) in self._undo.items() if sources.get(key) is not source]:
            self._undo.pop(key)[1]()
        for key, source in sources.items():
            if key not in self._undo:
                self._undo[key] = (source, source.listen(self._hearing(source)))

    def _hearing(self, source: ContextSource) -> Callable[[str, Mapping[str, Json]], None]:
        def hear(method: str, params: Mapping[str, Json]) -> None:
            if method == RESOURCE_UPDATED:
                self.updated(source, params)
            elif method in (PROMPTS_CHANGED, RESOURCES_CHANGED):
                asyncio.get_running_loop().call_soon(self.changed, method)

        return hear

    def changed(self, method: str) -> None:
        """Tell everybody whose view of this list is another than before."""
        fresh: dict[ListKey, bool] = {}
        for listener in tuple(self._listeners):
            key = key_of(method, listener)
            if key not in fresh:
                now = self._seen[method](listener)
                fresh[key] = now != self._known.get(key)
                self._known[key] = now
            if fresh[key] and listener.wants(method, None):
                listener.hear(method, {})

    def updated(self, source: ContextSource, params: Mapping[str, Json]) -> None:
        """A resource changed: told to those who subscribed to it, if it is this source's and no rule denies it to them."""
        uri = params.get("uri")
        if not isinstance(uri, str):
            return
        for listener in tuple(self._listeners):
            caller = listener.caller
            if (
                listener.wants(RESOURCE_UPDATED, uri)
                and source in self._contexts.seen(caller)
                and not self._contexts.hides(caller, source, uri)
            ):
                listener.hear(RESOURCE_UPDATED, {"uri": uri})


def key_of(method: str, listener: Listener) -> ListKey:
    return (method, listener.caller.name, listener.mode, listener.revision)
