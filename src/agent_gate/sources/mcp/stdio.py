"""An MCP server as a child process: one line of JSON is one message."""

from collections.abc import Mapping

from agent_gate.sources.mcp.child import Child, Lines, start_child
from agent_gate.sources.mcp.mux import Mux
from agent_gate.sources.mcp.wire import MAX_MESSAGE, Broken

MAX_UNREAD = 8 * 1024 * 1024
EXIT_SECONDS = 0.2


class StdioLink(Mux):
    """The stream of one child. A line on its output that is no message is counted and skipped."""

    def __init__(self, limit: int = MAX_MESSAGE) -> None:
        super().__init__(self.write)
        self.lines = Lines(self.feed, self.ended, limit)
        self.child: Child | None = None

    async def start(self, name: str, argv: list[str], env: Mapping[str, str], cwd: str | None) -> None:
        try:
            self.child = await start_child(name, argv, env, cwd, self.lines)
        except OSError as error:
            raise Broken(f"{argv[0]} cannot be started: {error.strerror}", sent=False) from None
        self.child.exited.add_done_callback(lambda code: self.fail(f"it exited with code {code.result()}"))

    async def write(self, data: bytes) -> None:
        stdin = self.child.stdin if self.child is not None else None
        if stdin is None or stdin.is_closing() or self.lost.done():
            raise Broken("its input is closed", sent=False)
        if stdin.get_write_buffer_size() > MAX_UNREAD:
            raise Broken("it does not read its input", sent=False)
        stdin.write(data + b"\n")

    def ended(self, reason: str) -> None:
        """Its output is of no more use; its exit, where that is the cause, is the better reason."""
        self.loop.call_later(EXIT_SECONDS, self.fail, reason)

    def last_words(self) -> str:
        return self.child.tail.text() if self.child is not None else ""

    async def close(self) -> None:
        self.fail("it was closed")
        await self.stop()
        if self.child is not None:
            await self.child.stop()
