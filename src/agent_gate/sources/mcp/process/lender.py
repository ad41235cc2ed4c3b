"""One child for several workers: whoever holds the children of stdio servers, and lends them over a Unix socket.

A worker says which program it wants and then speaks as to the child itself. Its requests get numbers of the child's
stream, its calls end with it, and the first that meets the server meets it for all: a child has one handshake.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from itertools import count
from pathlib import Path
from time import monotonic

import msgspec

from agent_gate.core.tool import Json
from agent_gate.mcp.errors import RpcError
from agent_gate.mcp.messages import (
    UNREADABLE,
    Message,
    decode_message,
    encode,
    error_response,
    notification,
    request,
    response,
)
from agent_gate.mcp.names import CANCELLED, LOG, PROGRESS
from agent_gate.net.server import bind_unix
from agent_gate.sources.mcp.process.child import LineReader
from agent_gate.sources.mcp.wire.borrowed import LOST, Loan
from agent_gate.sources.mcp.wire.frames import params_of, result_of, wants_reply
from agent_gate.sources.mcp.wire.order import Order
from agent_gate.sources.mcp.wire.problems import Broken
from agent_gate.sources.mcp.wire.stdio import StdioLink

MEETINGS = frozenset({"initialize", "server/discover"})
OF_CALLERS = frozenset({"tools/call", "prompts/get", "resources/read"})
GREETED = "notifications/initialized"
PATIENCE = 86_400.0
"""The worker keeps the deadline of a call, and takes the call back when it has passed."""


class RelayedOrder(Order, kw_only=True):
    """A worker's request as it came; only its progress token is the child's."""

    def numbered(self, number: int) -> Mapping[str, Json]:
        meta = self.params.get("_meta")
        if not isinstance(meta, dict) or "progressToken" not in meta:
            return self.params
        return {**self.params, "_meta": {**meta, "progressToken": number}}


class LentChild(StdioLink):
    """A child and those who borrow it; what it tells everybody, everybody hears."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.borrowers: set[Borrower] = set()
        self.met: dict[str, bytes] = {}
        self.meeting = asyncio.Lock()
        self.greeted = False

    def heard(self, message: Message) -> None:
        if message.method not in (PROGRESS, LOG, CANCELLED):
            for borrower in self.borrowers:
                borrower.send(notification(message.method, params_of(message)))
        super().heard(message)

    async def meet(self, order: Order) -> bytes:
        """What the server said of itself, asked once."""
        async with self.meeting:
            if order.method not in self.met:
                self.met[order.method] = await self.request(order)
            return self.met[order.method]


class Borrower:
    """One worker's connection. It is the way back to the caller for the requests that came over it."""

    def __init__(self, lender: "Lender") -> None:
        self._lender = lender
        self.lines = LineReader(self.take, self.end, self.end, lender.limit)
        self.transport: asyncio.WriteTransport | None = None
        self._child: LentChild | None = None
        self._loan: Loan | None = None
        self._early: list[bytes] = []
        self._running: dict[bytes, asyncio.Task[None]] = {}
        self._asked: dict[bytes, asyncio.Future[Json]] = {}
        self._numbers = count(1)

    def send(self, data: bytes) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data + b"\n")

    def take(self, line: bytes) -> None:
        try:
            if self._loan is None:
                self._loan = msgspec.json.decode(line, type=Loan)
                self._start(b"", self._borrow(self._loan))
            elif self._child is None:
                self._early.append(line)
            else:
                self._dispatch(decode_message(line), self._child)
        except UNREADABLE:
            self.end()

    async def _borrow(self, loan: Loan) -> None:
        try:
            child = await self._lender.find_or_start(loan)
        except Broken as broken:
            self.lose(broken.reason)
            return
        child.borrowers.add(self)
        self._child = child
        for line in self._early:
            self.take(line)

    def _dispatch(self, message: Message, child: LentChild) -> None:
        if not message.method:
            self._answer(message)
        elif wants_reply(message):
            number = bytes(message.id)
            self._start(number, self._relay(number, message, child))
        elif message.method == CANCELLED:
            if (task := self._running.get(encode(params_of(message).get("requestId")))) is not None:
                task.cancel()
        elif message.method != GREETED or not child.greeted:
            child.greeted = child.greeted or message.method == GREETED
            self._start(b"", child.notify(message.method, params_of(message)))

    def _start(self, number: bytes, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        key = number or b"-%d" % next(self._numbers)
        self._running[key] = task
        task.add_done_callback(lambda _: self._running.pop(key, None))

    async def _relay(self, number: bytes, message: Message, child: LentChild) -> None:
        params = params_of(message)
        meta = params.get("_meta")
        order = RelayedOrder(
            method=message.method,
            params=params,
            deadline=monotonic() + PATIENCE,
            meta=meta if isinstance(meta, dict) else {},
            talk=self if message.method in OF_CALLERS else None,
        )
        try:
            meets = message.method in MEETINGS
            self.send(response(number, await (child.meet(order) if meets else child.request(order))))
        except RpcError as error:
            self.send(error_response(number, error))
        except Broken as broken:
            self.lose(broken.reason)

    async def notify(self, method: str, params: Mapping[str, Json]) -> None:
        self.send(notification(method, params))

    async def ask(self, method: str, params: Mapping[str, Json]) -> Json:
        """Put a question of the server to the worker whose call it belongs to."""
        name = f"q{next(self._numbers)}"
        waiting = self._asked[encode(name)] = asyncio.get_running_loop().create_future()
        self.send(request(name, method, params))
        try:
            return await waiting
        except asyncio.CancelledError:
            self.send(notification(CANCELLED, {"requestId": name, "reason": "not awaited"}))
            raise
        finally:
            del self._asked[encode(name)]

    def _answer(self, message: Message) -> None:
        waiting = self._asked.get(bytes(message.id))
        if waiting is None or waiting.done():
            return
        try:
            waiting.set_result(msgspec.json.decode(result_of(message)))
        except RpcError as error:
            waiting.set_exception(error)

    def lose(self, reason: str) -> None:
        """The child is gone, or could not be started."""
        self.send(notification(LOST, {"reason": reason}))
        if self.transport is not None:
            self.transport.close()

    def end(self) -> None:
        """The worker is gone: its calls are taken back, and a child that nobody else has is ended."""
        for task in tuple(self._running.values()):
            task.cancel()
        for waiting in self._asked.values():
            waiting.cancel()
        if self.transport is not None:
            self.transport.close()
        if self._child is not None:
            child, self._child = self._child, None
            self._lender.give_back(child, self)


class Lender:
    """The children by what they were started with; each lives as long as somebody has it."""

    def __init__(self, path: Path, limit: int = 64 << 20) -> None:
        self.path, self.limit = path, limit
        self._children: dict[bytes, asyncio.Task[LentChild]] = {}
        self._borrowers: set[Borrower] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(self._accept, sock=bind_unix(self.path))

    def _accept(self) -> asyncio.Protocol:
        borrower = Borrower(self)
        self._borrowers.add(borrower)

        def made(transport: asyncio.BaseTransport) -> None:
            borrower.transport = transport  # type: ignore[assignment]

        borrower.lines.connection_made = made  # type: ignore[method-assign]
        return borrower.lines

    async def find_or_start(self, loan: Loan) -> LentChild:
        key = encode(loan)
        starting = self._children.get(key)
        if starting is None:
            starting = self._children[key] = asyncio.ensure_future(self._start(loan, key))
        return await asyncio.shield(starting)

    async def _start(self, loan: Loan, key: bytes) -> LentChild:
        child = LentChild(self.limit)
        try:
            await child.start(loan.name, list(loan.argv), loan.env, loan.cwd)
        except BaseException:
            self._children.pop(key, None)
            raise
        child.lost.add_done_callback(lambda lost: self._lose(key, child, lost.result()))
        return child

    def _lose(self, key: bytes, child: LentChild, reason: str) -> None:
        self._children.pop(key, None)
        for borrower in tuple(child.borrowers):
            borrower.lose(reason)
        self._close(child)

    def give_back(self, child: LentChild, borrower: Borrower) -> None:
        self._borrowers.discard(borrower)
        child.borrowers.discard(borrower)
        if not child.borrowers and not child.lost.done():
            child.fail("nobody needs it any more")

    def _close(self, child: LentChild) -> None:
        task = asyncio.ensure_future(child.close())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for borrower in tuple(self._borrowers):
            borrower.end()
        await asyncio.gather(*self._ending, return_exceptions=True)
        self.path.unlink(missing_ok=True)
