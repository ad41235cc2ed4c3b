"""A stdio server whose child another process holds: the same stream of messages, over a Unix socket."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import msgspec

from agent_gate.mcp.messages import Message, encode
from agent_gate.net.unixpath import check_owner, reachable
from agent_gate.sources.mcp.wire.frames import params_of
from agent_gate.sources.mcp.wire.problems import Broken
from agent_gate.sources.mcp.wire.stdio import StdioLink

LOST = "agent-gate/lost"


class Loan(msgspec.Struct, frozen=True):
    """What child is wanted; two workers that want the same get the same."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None = None
    session: str = ""


class BorrowedLink(StdioLink):
    """The stream of a child that is lent. When the lender or the child goes, what was sent has an unknown outcome."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._transport: asyncio.WriteTransport | None = None

    @property
    def stdin(self) -> asyncio.WriteTransport | None:
        return self._transport

    async def borrow(self, path: Path, loan: Loan) -> None:
        try:
            check_owner(path)
            with reachable(path) as name:
                transport, _ = await self.loop.create_unix_connection(lambda: self.lines, name)
        except OSError as error:
            reason = f"the process that holds the servers' programs does not answer ({error.strerror})"
            raise Broken(reason, sent=False) from None
        self._transport = transport
        self.name = loan.name
        transport.write(encode(loan) + b"\n")

    def heard(self, message: Message) -> None:
        if message.method == LOST:
            self.fail(str(params_of(message).get("reason", "it is gone")))
            return
        super().heard(message)

    def overflow(self) -> None:
        self.fail(f"it sent a line of more than {self.lines.limit} bytes")

    async def close(self) -> None:
        self.flush()
        self.fail("it was closed")
        await self.stop()
        if self._transport is not None:
            self._transport.close()
