"""Server-sent events read from a stream: chunks cut anywhere into events, each bounded in size."""

import re
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass

from agent_gate.mcp.errors import Unanswered

LINE_END = re.compile(rb"\r\n|\n|\r")
MAX_RETRY = 60_000


@dataclass(slots=True)
class Event:
    """One event. `id` and `retry` are what a broken stream is resumed with."""

    data: bytes = b""
    kind: bytes = b"message"
    id: bytes | None = None
    retry: float | None = None


class EventParser:
    """Feed it chunks cut anywhere; it returns the events that are complete.

    A carriage return at the end of a chunk is `held`: the next one may begin with its line feed.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.parts: list[bytes] = []
        self.lines: list[bytes] = []
        self.size = 0
        self.held = False

    def feed(self, chunk: bytes) -> list[Event]:
        self.size += len(chunk)
        if self.size > self.limit:
            raise Unanswered(f"it sent an event of more than {self.limit} bytes")
        self.parts.append(chunk)
        if not self.held and b"\n" not in chunk and b"\r" not in chunk:
            return []
        text = b"".join(self.parts)
        self.held = text.endswith(b"\r")
        *lines, rest = LINE_END.split(text[:-1] if self.held else text)
        self.parts = [rest + b"\r"] if self.held else [rest] if rest else []
        return self.take(lines)

    def take(self, lines: list[bytes]) -> list[Event]:
        events = []
        for line in lines:
            if line:
                self.lines.append(line)
            elif self.lines:
                events.append(event_of(self.lines))
                self.lines = []
        if events:
            self.size = sum(map(len, self.parts)) + sum(map(len, self.lines))
        return events


def event_of(lines: list[bytes]) -> Event:
    event, data = Event(), []
    for line in lines:
        name, _, value = line.removeprefix(b"\xef\xbb\xbf").partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"event":
            event.kind = value
        elif name == b"id" and b"\0" not in value:
            event.id = value
        elif name == b"retry" and value.isdigit():
            event.retry = min(int(value[:9]), MAX_RETRY) / 1000
    event.data = b"\n".join(data)
    return event


async def read_events(chunks: AsyncIterable[bytes], limit: int) -> AsyncIterator[Event]:
    parser = EventParser(limit)
    async for chunk in chunks:
        for event in parser.feed(chunk):
            yield event
