"""An MCP server as a child process: one line of JSON is one message."""

import asyncio
import logging
from collections.abc import Mapping

from agent_gate.net.outbox import Outbox
from agent_gate.sources.mcp.clean import clean
from agent_gate.sources.mcp.process.child import Child, LineReader, start_child
from agent_gate.sources.mcp.wire.frames import MAX_MESSAGE
from agent_gate.sources.mcp.wire.mux import Mux
from agent_gate.sources.mcp.wire.problems import Broken, InputClosed

log = logging.getLogger("agent_gate.sources.mcp")

MAX_UNREAD = 8 * 1024 * 1024
EXIT_SECONDS = 1.0
WORDS_SECONDS = 0.02
TOLD = frozenset(10**power for power in range(12))
SHOWN = 120


class StdioLink(Mux):
    """The stream of one child. A line on its output that is no message is counted and skipped; the first, tenth,
    hundredth and so on are told of, so that whoever wrote the server can find its stray print.
    """

    def __init__(self, limit: int = MAX_MESSAGE) -> None:
        super().__init__(self.write)
        self.lines = LineReader(self.feed, self.ended, self.overflow, limit)
        self.child: Child | None = None
        self.name = ""
        self.unsent: list[bytes] = []
        self.outbox = Outbox(self.loop)

    async def start(self, name: str, argv: list[str], env: Mapping[str, str], cwd: str | None) -> None:
        self.name = name
        try:
            self.child = await start_child(name, argv, env, cwd, self.lines)
        except OSError as error:
            raise Broken(f"{argv[0]} cannot be started: {error.strerror}", sent=False) from None
        self.child.exited.add_done_callback(self.exited)

    @property
    def stdin(self) -> asyncio.WriteTransport | None:
        """Where its messages are written."""
        return self.child.stdin if self.child is not None else None

    def write(self, data: bytes) -> None:
        stdin = self.stdin
        if stdin is None or stdin.is_closing() or self.lost.done():
            raise InputClosed
        if stdin.get_write_buffer_size() > MAX_UNREAD:
            raise Broken("it does not read its input", sent=False)
        if not self.unsent:
            self.outbox.add(self)
        self.unsent.append(data)

    def flush(self) -> None:
        """Write the messages of this turn at once, so that the child is woken once for them."""
        unsent, self.unsent = self.unsent, []
        stdin = self.stdin
        if unsent and stdin is not None and not stdin.is_closing():
            stdin.write(b"\n".join(unsent) + b"\n")

    def skip(self, data: bytes) -> None:
        super().skip(data)
        if self.noise in TOLD:
            text = clean(data[: 4 * SHOWN].decode("utf-8", "replace"), SHOWN)
            fields = {"source": self.name, "lines": self.noise, "last": text}
            log.info("What a server printed on its output is no message and was skipped", extra=fields)

    def ended(self) -> None:
        """Its output is closed; its exit, where that is the cause, is the better reason."""
        self.loop.call_later(EXIT_SECONDS, self.fail, "it closed its output")

    def overflow(self) -> None:
        """Where the next message would begin is lost, so the child is of no more use."""
        if self.child is not None:
            self.child.kill()
        self.fail(f"it sent a line of more than {self.lines.limit} bytes")

    def exited(self, code: "asyncio.Future[int]") -> None:
        """Its last words may still be in the pipe."""
        self.loop.call_later(WORDS_SECONDS, self.fail, f"it exited with code {code.result()}")

    def fail(self, reason: str) -> None:
        words = self.child.tail.text() if self.child is not None else ""
        super().fail(f"{reason}\nIts last words were:\n{words}" if words else reason)

    async def close(self) -> None:
        self.flush()
        self.fail("it was closed")
        await self.stop()
        if self.child is not None:
            await self.child.stop()
