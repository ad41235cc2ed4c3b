"""What servers answer over HTTP: bodies, streams and refusals, read for whoever sent the request."""

from collections.abc import Callable
from time import monotonic
from urllib.parse import urlsplit

from agent_gate.mcp import headers
from agent_gate.mcp.errors import RpcError
from agent_gate.mcp.events import Event
from agent_gate.mcp.messages import UNREADABLE, decode_message
from agent_gate.net.pool import BadReply, Lost, StreamReply, Target, WholeReply, retry_after
from agent_gate.sources.mcp.clean import clean
from agent_gate.sources.mcp.wire.frames import result_of
from agent_gate.sources.mcp.wire.problems import Broken, Moved, StaleSession, Throttled, TurnedAway

JSON, EVENTS = headers.JSON.encode(), headers.EVENT_STREAM.encode()
MAX_ERROR = 64 * 1024
DRAIN_SECONDS = 1.0
RETRY_SECONDS = 1.0
LEAST_RETRY = 0.05
DEFAULT_AFTER = 5.0
LONGEST_ADDRESS = 256


def split_url(url: str) -> tuple[Target, bytes]:
    """Where to connect, and what to ask for there: path and query exactly as written."""
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target.parse(f"{parts.scheme}://{parts.netloc}"), path.encode()


def media_type(reply: WholeReply | StreamReply) -> bytes:
    value = reply.header(b"content-type") or b""
    return value if value == JSON else value.partition(b";")[0].strip().lower()


async def read_whole(reply: WholeReply | StreamReply, limit: int) -> bytes:
    return reply.body if isinstance(reply, WholeReply) else await reply.read(limit)


class StreamPosition:
    """Where a stream was left, and how long to wait before asking for the rest.

    `quiet` counts the streams in a row on which nothing came.
    """

    def __init__(self) -> None:
        self.last = b""
        self.delay = RETRY_SECONDS
        self.quiet = 0

    def note(self, event: Event) -> None:
        self.last = event.id if event.id is not None else self.last
        self.delay = max(event.retry, LEAST_RETRY) if event.retry is not None else self.delay
        self.quiet = 0


async def read_refusal(
    reply: WholeReply | StreamReply, used: bytes, current: Callable[[], bool]
) -> Exception:
    """What a status says about the request: who refused it, and whether it can have run. `current` tells whether `used` is still the session.

    Many servers answer 400 where the protocol has 404 for a session they do not know.
    """
    try:
        text = await read_whole(reply, MAX_ERROR)
    except (Lost, BadReply):
        text = b""
    status = reply.status
    if 300 <= status < 400:
        return Moved(status, clean((reply.header(b"location") or b"").decode("latin-1"), LONGEST_ADDRESS))
    if used and (status == 404 or (status == 400 and b"session" in text.lower())):
        return StaleSession(current)
    if status == 429 or (status == 503 and reply.header(b"retry-after")):
        return Throttled(retry_after(reply, DEFAULT_AFTER))
    if status in (401, 403):
        return TurnedAway(status)
    try:
        result_of(decode_message(text))
    except RpcError as error:
        return error
    except UNREADABLE:
        pass
    return (
        Broken(f"it answered with HTTP status {status}", sent=True) if status >= 500 else TurnedAway(status)
    )


async def drain(reply: StreamReply) -> None:
    """Read the end of a stream, so that its connection can be used again."""
    reply.deadline = monotonic() + DRAIN_SECONDS
    try:
        async for _ in reply:
            pass
    except (Lost, BadReply):
        await reply.aclose()
