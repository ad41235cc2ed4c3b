"""What happens as it happens: approvals, the catalog, running calls and the record's growth as Server-Sent Events."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from agent_gate.access.answering import verdicts_of
from agent_gate.calls.events import Cursor, as_sse
from agent_gate.core.approval import Approval
from agent_gate.core.catalog import Catalog
from agent_gate.net.http import HttpAnswer, StreamResponse
from agent_gate.surfaces.admin import shown
from agent_gate.surfaces.admin.admin import Admin
from agent_gate.surfaces.admin.risks import Risks
from agent_gate.surfaces.admin.routing import FLAG, TEXT, OperatorRequest, Route

TICK = 1.0
SILENT_TICKS = 15
MOST_QUEUED = 5000


def event(kind: str, value: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode(value))


class Live:
    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._risks = Risks(admin.record.store, admin.clock)

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET",
                "/api/events",
                self._stream_changes,
                "What happens, as Server-Sent Events: approval, catalog, calls, missed",
                query={"brief": FLAG},
            ),
            Route(
                "GET",
                "/api/events/published",
                self._stream_events,
                "The events that subscribers hear, after a cursor, as Server-Sent Events",
                query={"after": TEXT, "once": FLAG},
            ),
        ]

    async def _stream_events(self, ask: OperatorRequest) -> HttpAnswer:
        feed, given = self._admin.feed, ask.param("after")
        after = Cursor.read(given) if given else feed.here()
        return StreamResponse(200, self._tell_events(after, once=bool(ask.param("once"))))

    async def _tell_events(self, after: Cursor, *, once: bool) -> AsyncIterator[bytes]:
        yield f"id: {after}\n: connected\n\n".encode()
        async for told in self._admin.feed.follow(after, lambda _one: True, once=once):
            yield as_sse(told)

    async def _stream_changes(self, ask: OperatorRequest) -> HttpAnswer:
        return StreamResponse(200, self._stream(ask))

    async def _stream(self, ask: OperatorRequest) -> AsyncIterator[bytes]:
        """Events until the client leaves, and a comment now and then so that silence is never a broken line."""
        queue: asyncio.Queue[bytes | Approval] = asyncio.Queue()
        undo = self._subscribe(queue)
        silent, seen = 0, self._glance()
        try:
            yield b": connected\n\n"
            while True:
                try:
                    async with asyncio.timeout(TICK):
                        message = await queue.get()
                except TimeoutError:
                    silent += 1
                else:
                    yield message if isinstance(message, bytes) else await self._tell(message, ask)
                    continue
                now = self._glance()
                if now != seen:
                    seen, silent = now, 0
                    yield event("calls", {"running": now[1], "seq": now[0]})
                elif silent >= SILENT_TICKS:
                    silent = 0
                    yield b": still here\n\n"
        finally:
            for forget in undo:
                forget()

    def _glance(self) -> tuple[int, int]:
        """How far the record is and how much runs: when neither moved, there is nothing to tell."""
        return self._admin.record.store.head.seq, len(self._admin.calls.running())

    async def _tell(self, approval: Approval, ask: OperatorRequest) -> bytes:
        tool = self._admin.shelf.catalog.find(approval.tool_id)
        told = (shown.approval_row if ask.param("brief") else shown.approval)(approval, tool)
        open_to = {"you_may": verdicts_of(approval, ask.person, ask.rights)}
        return event("approval", told | open_to | {"risks": await self._risks.find(approval, tool)})

    def _subscribe(self, queue: asyncio.Queue[bytes | Approval]) -> list[Callable[[], None]]:
        def push(message: bytes | Approval) -> None:
            if queue.qsize() < MOST_QUEUED:
                queue.put_nowait(message)
            elif queue.qsize() == MOST_QUEUED:
                queue.put_nowait(event("missed", {}))

        def changed(_before: Catalog, now: Catalog) -> None:
            push(event("catalog", {"digest": now.digest, "tools": len(now.tools)}))

        return [
            self._admin.calls.inbox.subscribe(push),
            self._admin.shelf.subscribe(changed),
        ]
