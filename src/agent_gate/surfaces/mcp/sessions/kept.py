"""Ended streams that clients can come back for, and what is said where they are no longer kept."""

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from agent_gate.mcp.errors import INTERNAL_ERROR, RpcError
from agent_gate.mcp.messages import error_response
from agent_gate.surfaces.mcp.sessions.streams import Stream

if TYPE_CHECKING:
    from agent_gate.surfaces.mcp.sessions.sessions import McpSession

MOST_STREAMS = 256
MOST_KEPT = 16 * 1024 * 1024
EMPTY_STREAM = 1024
"""Bytes that a stream takes beside its events."""
MOST_GONE = 4096
LONGEST_ID = 128
GONE = (
    "The answer to this request is no longer kept: too much else was answered before its client came back. "
    "It may have run: check before you make it again"
)


class StreamedRequest(NamedTuple):
    """What a stream was opened for: the request's id, and the call it made."""

    id: bytes
    call: str

    def gone(self) -> bytes:
        """Its answer where the stream is no longer kept."""
        data = {"call": self.call} if self.call else None
        return error_response(self.id, RpcError(INTERNAL_ERROR, GONE, data))


class EndedStreams:
    """The ended streams of one caller, the oldest first: some of each session, and so many bytes of all together."""

    def __init__(self) -> None:
        self._streams: OrderedDict[Stream, tuple[McpSession, StreamedRequest]] = OrderedDict()
        self._size = 0
        self._gone: OrderedDict[tuple[McpSession, str], StreamedRequest] = OrderedDict()

    def __len__(self) -> int:
        return len(self._streams) + len(self._gone)

    def add(self, session: "McpSession", stream: Stream, request: StreamedRequest) -> None:
        self._streams[stream] = (session, request)
        session.ended.append(stream)
        self._size += stream.size + EMPTY_STREAM
        # Those still open count for nothing: what just ended may be an answer whose client is on its way back.
        if len(session.ended) > MOST_STREAMS:
            self._drop(session.ended[0])
        while self._size > MOST_KEPT and len(self._streams) > 1:
            self._drop(next(iter(self._streams)))

    def gone(self, session: "McpSession", name: str) -> bytes | None:
        request = self._gone.get((session, name))
        return request.gone() if request is not None else None

    def forget(self, session: "McpSession") -> None:
        while session.ended:
            self._take(session.ended[0])
        for key in [key for key in self._gone if key[0] is session]:
            del self._gone[key]

    def _drop(self, stream: Stream) -> None:
        """Of a request whose stream goes, so much stays as its client must hear."""
        session, request = self._take(stream)
        if len(request.id) <= LONGEST_ID:
            self._gone[session, stream.name.decode()] = request
        if len(self._gone) > MOST_GONE:
            self._gone.popitem(last=False)

    def _take(self, stream: Stream) -> "tuple[McpSession, StreamedRequest]":
        """Take the oldest stream of a session away; the oldest of all is one."""
        session, request = self._streams.pop(stream)
        self._size -= stream.size + EMPTY_STREAM
        session.ended.popleft()
        del session.streams[stream.name.decode()]
        return session, request
