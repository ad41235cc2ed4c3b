"""Sessions of the handshake revisions: what a client said at the start, and the streams back to it."""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agent_gate.core.call import Caller
from agent_gate.core.ports import Clock
from agent_gate.core.tool import Json
from agent_gate.errors import InvalidArgs
from agent_gate.mcp.errors import RpcError
from agent_gate.mcp.messages import Message, notification
from agent_gate.mcp.revisions import Revision
from agent_gate.surfaces.mcp.incoming.params import read_answer
from agent_gate.surfaces.mcp.sessions.kept import EndedStreams, StreamedRequest
from agent_gate.surfaces.mcp.sessions.streams import Stream

if TYPE_CHECKING:
    from agent_gate.surfaces.mcp.visit import Visit

IDLE_SECONDS = 30 * 60.0
MOST_SESSIONS = 10_000
MOST_PER_CALLER = 1_000
MOST_NOTICES = 64
LONGEST_NUMBER = 18
LONGEST_START = 48
"""Bits; a client may read a number as a floating-point one, which is exact up to 53."""
STANDALONE = "0"
ENDED = "The client ended its session"


class McpSession:
    """One client of one caller, from `initialize` to `DELETE` or idleness."""

    def __init__(
        self, caller: Caller, revision: Revision, mode: str, capabilities: Mapping[str, Json]
    ) -> None:
        self.id = secrets.token_hex(16)
        self.caller = caller
        self.proof = b""
        self.revision = revision
        self.mode = mode
        self.capabilities = capabilities
        self.level = "debug"
        self.used = 0.0
        self.asked: dict[int, asyncio.Future[Json]] = {}
        self.visits: dict[bytes, Visit] = {}
        self.watching: set[str] = set()
        self.streams: dict[str, Stream] = {}
        self.ended: deque[Stream] = deque()
        self.standalone = Stream(STANDALONE, prime=revision.primes_streams, most=MOST_NOTICES)
        self._numbers = 0
        self._ended = False

    def set_apart(self) -> None:
        """Number questions and streams as no other gateway that has this session does: an answer, and an event that a
        client goes on after, belong to one of them."""
        self._numbers = secrets.randbits(LONGEST_START)
        name = f"{STANDALONE}{self._numbers}"
        self.standalone = Stream(name, prime=self.revision.primes_streams, most=MOST_NOTICES)

    @property
    def busy(self) -> bool:
        return bool(self.visits) or self.standalone.watched

    def ask(self) -> tuple[int, asyncio.Future[Json]]:
        """A number for a question to the client, and the future of its answer."""
        if self._ended:
            raise InvalidArgs(ENDED)
        self._numbers += 1
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self.asked[self._numbers] = answer
        return self._numbers, answer

    def answered(self, message: Message) -> bool:
        """Take the client's answer to one of our questions; false where it is to none of them."""
        number = bytes(message.id)
        future = self.asked.get(int(number)) if len(number) <= LONGEST_NUMBER and number.isdigit() else None
        if future is None or future.done():
            return future is not None
        try:
            if message.result:
                future.set_result(read_answer(message.result))
            else:
                future.set_exception(InvalidArgs(refusal(message)))
        except RpcError as error:
            future.set_exception(InvalidArgs(f"The client's answer cannot be read: {error.message}"))
        return True

    def open_stream(self) -> Stream:
        """A stream for one request, kept after its end so that its client can come back for it."""
        self._numbers += 1
        name = f"s{self._numbers}"
        stream = self.streams[name] = Stream(name, prime=self.revision.primes_streams)
        return stream

    def resume(self, last: str) -> tuple[Stream, int] | None:
        """The stream of an event id, and the number after which to go on."""
        name, _, number = last.rpartition("-")
        own = name.encode() == self.standalone.name
        stream = self.standalone if own else self.streams.get(name)
        if stream is None or not number.isascii() or not number.isdigit() or len(number) > LONGEST_NUMBER:
            return None
        return (stream, int(number)) if int(number) <= stream.sequence else None

    def wants(self, method: str, uri: str | None) -> bool:
        """The handshake revisions hear of every list; of resources only those they subscribed to."""
        del method
        return uri is None or uri in self.watching

    def hear(self, method: str, params: Mapping[str, Json]) -> None:
        self.standalone.put(notification(method, params))

    def close(self) -> None:
        self._ended = True
        for stream in (*self.streams.values(), self.standalone):
            stream.end()
        for future in self.asked.values():
            if not future.done():
                future.set_exception(InvalidArgs(ENDED))


def refusal(message: Message) -> str:
    """What the client said instead of an answer."""
    said: Any = read_answer(message.error) if message.error else None
    text = said.get("message") if isinstance(said, dict) else None
    return f"The client did not answer: {str(text or 'no reason given')[:500]}"


class McpSessions:
    """All sessions by id, bounded in number per caller and altogether; the idle ones go first."""

    def __init__(
        self, clock: Clock, joined: Callable[[McpSession], None], left: Callable[[McpSession], None]
    ) -> None:
        self._clock, self._joined, self._left = clock, joined, left
        self._all: dict[str, McpSession] = {}
        self._kept: dict[str, EndedStreams] = {}

    def __iter__(self) -> Iterator[McpSession]:
        return iter(self._all.values())

    def __len__(self) -> int:
        return len(self._all)

    def add(self, session: McpSession) -> None:
        session.used = self._clock.monotonic()
        if len(self._all) >= MOST_PER_CALLER:
            self._make_room(session.caller.name)
        self._all[session.id] = session
        self._joined(session)

    def _make_room(self, caller: str) -> None:
        own = [one for one in self._all.values() if one.caller.name == caller]
        if len(own) >= MOST_PER_CALLER:
            self.end(least_used(own))
        elif len(self._all) >= MOST_SESSIONS:
            self.end(least_used(list(self._all.values())))

    def get(self, ident: str) -> McpSession | None:
        return self._all.get(ident)

    def find(self, ident: str, caller: Caller) -> McpSession | None:
        """The session, if it is this caller's; somebody else's does not exist."""
        session = self._all.get(ident)
        if session is None or session.caller.name != caller.name:
            return None
        now = self._clock.monotonic()
        if now - session.used > IDLE_SECONDS and not session.busy:
            self.end(session)
            return None
        session.used = now
        session.caller = caller
        return session

    def keep(self, session: McpSession, stream: Stream, request: bytes, call: str) -> None:
        """A request's stream has ended: its client can come back for it for a while."""
        if session.id in self._all:
            self._kept.setdefault(session.caller.name, EndedStreams()).add(
                session, stream, StreamedRequest(request, call)
            )

    def gone(self, session: McpSession, last: str) -> bytes | None:
        """The answer to the request of an event id, where it had one that is no longer kept."""
        kept = self._kept.get(session.caller.name)
        return kept.gone(session, last.rpartition("-")[0]) if kept is not None else None

    def end(self, session: McpSession) -> None:
        if self._all.pop(session.id, None) is not None:
            kept = self._kept.get(session.caller.name)
            if kept is not None:
                kept.forget(session)
                if not kept:
                    del self._kept[session.caller.name]
            session.close()
            self._left(session)

    def expire(self) -> None:
        """End what was idle for too long."""
        limit = self._clock.monotonic() - IDLE_SECONDS
        for session in [one for one in self._all.values() if one.used < limit and not one.busy]:
            self.end(session)


def least_used(sessions: list[McpSession]) -> McpSession:
    return min(sessions, key=lambda one: (one.busy, one.used))
