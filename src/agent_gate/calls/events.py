"""What happened, as events for those who subscribed: the record, told row by row.

The record is durable, ordered and never rewritten, so it is the queue: whoever was away goes on after the last event
that reached it, and nothing is kept per subscriber. Without one, a commit costs one comparison.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from agent_gate.audit.record import SELECT, Row, row
from agent_gate.core.call import State
from agent_gate.core.ports import Clock
from agent_gate.core.tasks import ends_within
from agent_gate.errors import InvalidArgs
from agent_gate.observe.trace import trace_of
from agent_gate.peers.encoding import to_time
from agent_gate.peers.envelope import EventRouting, EventSource, PeerEvent
from agent_gate.peers.toolwire import VERSION
from agent_gate.store.statement import Conflict, Head, Store

PUBLISHED, PAIRED = "peers:publish", "peers:pair"
PAGE = 200
SILENCE = 15.0
ENDED = {
    State.COMPLETED: "tool.call.completed",
    State.FAILED: "tool.call.failed",
    State.UNKNOWN: "tool.call.failed",
    State.REFUSED: "tool.call.failed",
}
ASKED = {
    State.PENDING: "approval.requested",
    State.APPROVED: "approval.approved",
    State.DENIED: "approval.denied",
    State.EXPIRED: "approval.expired",
    State.WITHDRAWN: "approval.withdrawn",
}
PAIRING = {
    State.DISPATCHING: "pairing.started",
    State.COMPLETED: "pairing.completed",
    State.FAILED: "pairing.failed",
    State.REFUSED: "pairing.failed",
}


class Cursor(NamedTuple):
    """A place in the record: after event `part` of row `seq`."""

    seq: int
    part: int = 1 << 16

    def __str__(self) -> str:
        return f"{self.seq}.{self.part}"

    @classmethod
    def read(cls, text: str) -> "Cursor":
        seq, _, part = text.partition(".")
        if not (seq.isascii() and seq.isdigit() and len(seq) < 19 and part.isascii() and part.isdigit()):
            raise InvalidArgs("This is no cursor of an event. Start without one, or with 0.0")
        return cls(int(seq), min(int(part), 1 << 16))


class Happening(NamedTuple):
    """One event and where it stands. `source` is where the tool comes from that it is about, if it is about one."""

    cursor: Cursor
    event: PeerEvent
    source: str = ""


class EventFeed:
    """Tells the record as events, and takes those in that components publish."""

    def __init__(self, store: Store, clock: Clock, *, tenant: str, gateway_id: str) -> None:
        self._store, self._clock, self._tenant = store, clock, tenant
        self._own = EventSource(component_type="gateway", component_id=gateway_id, transport="internal")
        self._waiting: set[asyncio.Event] = set()
        store.watch(self._grown)

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    def _grown(self, _head: Head, _rows: Sequence[tuple[Any, ...]]) -> None:
        """Called on the store's thread after each commit."""
        if self._waiting:
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        for waiting in self._waiting:
            waiting.set()

    def here(self) -> Cursor:
        """The end of what has happened so far."""
        return Cursor(self._store.head.seq)

    # -- events that components publish

    async def publish(self, event: PeerEvent, peer: str) -> bool:
        """Put a component's event on record, from where it is told. False where it was there before."""
        name = event.idempotency_key or event.event_id
        body = {"event": msgspec.to_builtins(event), "surface": "peers", "wire": PUBLISHED}
        entry = row(f"event:{peer}:{name}", State.COMPLETED, self._clock.now(), peer, PUBLISHED, body)
        try:
            await self._store.write(entry)
        except Conflict:
            return False
        return True

    async def is_of(self, call: str, sources: Sequence[str]) -> bool:
        """Whether a call was sent to one of these sources."""
        found = await self._store.read(
            "SELECT body FROM record WHERE call = ? ORDER BY step LIMIT 1", (call,)
        )
        return bool(found) and msgspec.json.decode(found[0][0]).get("source") in sources

    # -- events as they are told

    async def follow(
        self, after: Cursor, wants: Callable[[Happening], bool], *, once: bool = False
    ) -> AsyncIterator[Happening | Cursor]:
        """Events after a place, for ever or (`once`) as far as there are some. A bare cursor now and then says how far the record was looked through."""
        _ = self._loop
        news = asyncio.Event()
        self._waiting.add(news)
        try:
            while True:
                news.clear()
                found, reached = await self._read_page(after)
                for happening in found:
                    if wants(happening):
                        yield happening
                after = max(after, reached)
                if once and not found:
                    return
                if not found and not await ends_within(SILENCE, news.wait()):
                    yield after
        finally:
            self._waiting.discard(news)

    async def _read_page(self, after: Cursor) -> tuple[list[Happening], Cursor]:
        """The next events, and how far that was looked; no events where there are none yet."""
        found = await self._store.read(
            f"{SELECT} WHERE chain = ? AND seq >= ? ORDER BY seq LIMIT {PAGE}",
            (self._store.chain, after.seq),
        )
        rows = [Row(*one) for one in found]
        first = await self._read_first(rows)
        told = [one for each in rows for one in self._told(each, first.get(each.call, {}))]
        return [one for one in told if one.cursor > after], Cursor(rows[-1].seq) if rows else after

    async def _read_first(self, rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
        """What was decided of each call, which only its first row says."""
        found = {one.call: body for one in rows if "wire" in (body := msgspec.json.decode(one.body))}
        missing = sorted({one.call for one in rows} - found.keys())
        for at in range(0, len(missing), PAGE):
            some = tuple(missing[at : at + PAGE])
            marks = ", ".join("?" * len(some))
            for call, body in await self._store.read(
                f"SELECT call, body FROM record WHERE call IN ({marks}) ORDER BY step DESC", some
            ):
                found[call] = msgspec.json.decode(body)
        return found

    def _told(self, entry: Row, first: dict[str, Any]) -> list[Happening]:
        """The events that one row tells."""
        state, body = State(entry.state), msgspec.json.decode(entry.body)
        if entry.tool == PUBLISHED:
            event = msgspec.convert(body["event"], PeerEvent)
            return [Happening(Cursor(entry.seq, 0), event)]
        source = str(first.get("source", ""))
        if entry.tool == PAIRED:
            kinds = [PAIRING[state]] if state in PAIRING else []
        elif state in ASKED:
            kinds = [ASKED[state]]
        elif state is State.DISPATCHING:
            kinds = ["tool.call.requested"]
        else:
            whole = "wire" in body or state is State.REFUSED
            kinds = ["tool.call.requested", ENDED[state]] if whole else [ENDED[state]]
        return [
            Happening(Cursor(entry.seq, part), self._event(kind, entry, body, first), source)
            for part, kind in enumerate(kinds)
        ]

    def _event(self, kind: str, entry: Row, body: dict[str, Any], first: dict[str, Any]) -> PeerEvent:
        return PeerEvent(
            version=VERSION,
            event_id=f"{entry.call}-{entry.step}-{kind.rpartition('.')[2]}",
            trace_id=trace_of(entry.call, first.get("trace")).trace_id,
            occurred_at=to_time(entry.at),
            event_type=kind,
            tenant_id=self._tenant,
            source=self._own,
            routing=EventRouting(
                agent_id=entry.caller,
                session_id=str(first.get("session") or entry.call),
                target=str(first.get("source") or "") or msgspec.UNSET,
            ),
            payload=payload_of(kind, entry, body, first),
        )


def payload_of(kind: str, entry: Row, body: dict[str, Any], first: dict[str, Any]) -> dict[str, Any]:
    """What an event says. Arguments are as people see them; of a result only its size is told."""
    said: dict[str, Any] = {"call_id": entry.call}
    if entry.tool == PAIRED:
        said = {"pairing_id": entry.call, **body.get("arguments", {})}
    else:
        said |= {"tool_name": first.get("wire", body.get("asked", "")), "tool_id": entry.tool}
    if kind == "tool.call.requested":
        return said | {"args": first.get("arguments", {}), "signature": first.get("signature", "")}
    if kind.startswith("approval."):
        said |= {"signature": first.get("signature", "")}
        told = ("approval", "expires_at", "by", "channel", "reason")
        return said | {name: body[name] for name in told if body.get(name)}
    if "error" in body:
        return said | {"outcome": entry.state, "error": body["error"]}
    if kind == "tool.call.completed":
        began = body.get("marks", {}).get("received", entry.at)
        return said | {"duration_ms": round((entry.at - began) * 1000), "result_bytes": body.get("size", 0)}
    return said


def as_sse(told: Happening | Cursor) -> bytes:
    """One event as Server-Sent Events write it; a bare cursor only moves the place to come back to."""
    if isinstance(told, Cursor):
        return f"id: {told}\n: still here\n\n".encode()
    head = f"id: {told.cursor}\nevent: {told.event.event_type}\ndata: ".encode()
    return head + msgspec.json.encode(told.event) + b"\n\n"
