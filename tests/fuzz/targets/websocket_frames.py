"""Frames from a stranger: whole messages or a close with its reason, the same however they arrive."""

import asyncio
from types import SimpleNamespace

from tests.fuzz.fuzzing import Target
from tests.fuzz.targets.http_reader import cut
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from agent_gate.net.limits import Limits
from agent_gate.net.websocket import WebSocket, frames_log

LIMITS = Limits(message_bytes=4096, buffer_bytes=4096)


class Sink(asyncio.Transport):
    """A client that reads everything at once."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.ended = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.ended
        self.written += data

    def write_eof(self) -> None:
        self.ended = True

    def can_write_eof(self) -> bool:
        return True

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0


class Heard:
    def __init__(self) -> None:
        self.messages: list[str | bytes] = []
        self.closes: list[int] = []

    def opened(self, ws: WebSocket) -> None: ...

    def message(self, ws: WebSocket, data: str | bytes) -> None:
        assert not self.closes
        assert len(data) <= LIMITS.message_bytes
        self.messages.append(data)

    def closed(self, ws: WebSocket, code: int, reason: str) -> None:
        self.closes.append(code)


def hear(pieces: list[bytes]) -> Heard:
    server = SimpleNamespace(limits=LIMITS, now=0.0, connections=set())
    heard, frames = Heard(), ServerProtocol(state=OPEN, max_size=LIMITS.message_bytes, logger=frames_log)
    ws = WebSocket(server, Sink(), frames, heard, "")  # type: ignore[arg-type]
    for piece in pieces:
        if piece:
            ws.data_received(piece)
    ws.connection_lost(None)
    assert len(heard.closes) == 1
    return heard


def run(data: bytes) -> None:
    whole, split = hear([data]), hear(cut(data))
    assert whole.messages == split.messages
    assert whole.closes == split.closes


def frame(opcode: int, payload: bytes, *, fin: bool = True) -> bytes:
    """A client's frame under the mask of zeros."""
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
    return bytes([(0x80 if fin else 0) | opcode]) + length + bytes(4) + payload


TARGET = Target(
    "websocket_frames",
    run,
    words=(
        frame(1, b"{}"), frame(2, b"\0"), frame(8, b"\x03\xe8"), frame(8, b""), frame(9, b"ping"), frame(10, b""),
        frame(1, b"a", fin=False), frame(0, b"b", fin=False), frame(0, b"c"), b"\x81\xff", b"\x81\xfe\xff\xff", b"\xc1",
    ),
)  # fmt: skip
