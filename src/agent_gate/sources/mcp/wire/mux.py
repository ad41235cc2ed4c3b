"""Many requests over one two-way stream of messages: numbers, replies, notices and the server's questions.

A transport feeds it whole messages and lends it `deliver`; it is used by stdio and by the older SSE
transport, where nothing but the id ties a reply to its request.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from itertools import count
from typing import Any

from agent_gate.core.tasks import KeptTasks
from agent_gate.core.tool import Json
from agent_gate.mcp.errors import RpcError, Unanswered
from agent_gate.mcp.messages import UNREADABLE, Message, encode, notification, request
from agent_gate.mcp.names import CANCELLED, LOG, PING, PROGRESS
from agent_gate.mcp.revisions import Revision
from agent_gate.sources.mcp.wire.deadlines import Deadlines
from agent_gate.sources.mcp.wire.frames import (
    answered_by,
    number_of,
    params_of,
    read_frame,
    result_of,
    wants_reply,
)
from agent_gate.sources.mcp.wire.link import Notice, Renew, ignore, reply_to
from agent_gate.sources.mcp.wire.order import Order
from agent_gate.sources.mcp.wire.problems import Broken

log = logging.getLogger("agent_gate.sources.mcp")

MAX_NOTES = 1_000
MAX_QUESTIONS = 32
FAULT = "Something beside the requests to a server failed"


class Exchange:
    """One request in flight, with the notes its caller has not been told yet.

    `future` gives the raw result, or None where the server asks something first; `park` makes a new one then.
    """

    __slots__ = ("closed", "future", "notes", "order", "over", "parked", "pump", "replied", "reply")

    def __init__(self, order: Order, future: "asyncio.Future[bytes | None]") -> None:
        self.order = order
        self.future = future
        self.parked = False
        self.notes: deque[tuple[str, dict[str, Json]]] | None = None
        self.pump: asyncio.Task[None] | None = None
        self.reply: Message | None = None
        self.replied = False
        self.closed = False
        self.over: asyncio.Future[None] | None = None

    def watch_end(self) -> "asyncio.Future[None]":
        """Done when it is in flight no more."""
        if self.over is None:
            self.over = self.future.get_loop().create_future()
            if self.closed:
                self.over.set_result(None)
        return self.over

    def close(self) -> None:
        """Nobody waits any more: end what still talks to the caller."""
        self.closed = True
        if self.over is not None and not self.over.done():
            self.over.set_result(None)
        if self.pump is not None:
            self.pump.cancel()
        self.order.end()
        if not self.future.cancel() and not self.future.cancelled():
            self.future.exception()

    def expire(self) -> None:
        self.fail(TimeoutError())

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)

    def park(self) -> None:
        """Let whoever waits go on with the rest of the request, in which the caller can be asked."""
        if self.order.park is not None and not self.parked and not self.future.done():
            waiting, self.future = self.future, self.future.get_loop().create_future()
            self.parked = True
            waiting.set_result(None)

    def settle(self, message: Message) -> None:
        """Finish with `message`, after every note that came before it."""
        self.replied = True
        if self.pump is not None:
            self.reply = message
        elif not self.future.done():
            try:
                self.future.set_result(result_of(message))
            except RpcError as error:
                self.future.set_exception(error)

    def note(self, method: str, params: dict[str, Json], tasks: KeptTasks) -> None:
        if self.notes is None:
            self.notes = deque(maxlen=MAX_NOTES)
        self.notes.append((method, params))
        if self.pump is None:
            self.pump = tasks.start(self.tell())

    async def tell(self) -> None:
        talk, notes = self.order.talk, self.notes
        try:
            while notes and talk is not None:
                await talk.notify(*notes.popleft())
        finally:
            self.pump = None
            if self.reply is not None:
                self.settle(self.reply)


class Mux:
    """The requests in flight on one stream. `noise` counts what was no message; a reply that nobody waits for is dropped."""

    def __init__(self, deliver: Callable[[bytes], Awaitable[None] | None]) -> None:
        self.deliver = deliver
        self.notice: Notice = ignore
        self.renew: Renew | None = None
        self.revision: Revision | None = None
        self.loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[str] = self.loop.create_future()
        self.deadlines = Deadlines()
        self.pending: dict[object, Exchange] = {}
        self.questions: dict[bytes, asyncio.Task[None]] = {}
        self.tasks = KeptTasks(log, FAULT)
        self.numbers = count(1)
        self.noise = 0

    @property
    def in_flight(self) -> int:
        return len(self.pending)

    @property
    def parks(self) -> bool:
        return True

    async def request(self, order: Order) -> bytes:
        if self.lost.done():
            raise Broken(self.lost.result(), sent=False)
        number = next(self.numbers)
        future: asyncio.Future[bytes | None] = self.loop.create_future()
        exchange = self.pending[number] = Exchange(order, future)
        self.deadlines.add(number, order.until, exchange.expire)
        following: Coroutine[Any, Any, bytes] | None = None
        try:
            sending = self.deliver(request(number, order.method, order.numbered(number)))
            if sending is not None:
                await sending
            result = await future
            if result is not None:
                return result
            following = self.follow(number, exchange)
        except (asyncio.CancelledError, TimeoutError):
            self.give_up(number)
            raise
        finally:
            if following is None:
                self.close_exchange(number, exchange)
        return await (following if order.park is None else order.park(order, following))

    async def follow(self, number: int, exchange: Exchange) -> bytes:
        """The result of a request whose server asked something first."""
        self.deadlines.add(number, exchange.order.until, exchange.expire)
        try:
            result = await exchange.future
            assert result is not None
            return result
        except (asyncio.CancelledError, TimeoutError):
            self.give_up(number)
            raise
        finally:
            self.close_exchange(number, exchange)

    def close_exchange(self, number: int, exchange: Exchange) -> None:
        self.deadlines.drop(number)
        del self.pending[number]
        exchange.close()

    async def tell(self, data: bytes) -> None:
        """Send what has no answer."""
        sending = self.deliver(data)
        if sending is not None:
            await sending

    def give_up(self, number: int) -> None:
        """Tell the server that nobody waits any more."""
        if not self.lost.done():
            self.tasks.start(self.notify(CANCELLED, {"requestId": number, "reason": "not awaited"}))

    async def notify(self, method: str, params: Mapping[str, Json] | None = None) -> None:
        try:
            await self.tell(notification(method, params))
        except (Broken, RpcError) as error:
            log.debug("a %s notification was not sent: %s", method, error)

    def feed(self, data: bytes) -> None:
        """Take one frame from the server; what is no message is counted and dropped."""
        try:
            messages = read_frame(data)
        except UNREADABLE:
            exchange = self.pending.get(answered_by(data))
            if exchange is None:
                self.skip(data)
            else:
                exchange.fail(Unanswered("it sent a response that cannot be read", data))
            return
        for message in messages:
            self.dispatch(message)

    def skip(self, _data: bytes) -> None:
        self.noise += 1

    def dispatch(self, message: Message) -> None:
        if not message.method:
            exchange = self.pending.get(number_of(message))
            if exchange is not None and exchange.reply is None and not exchange.future.done():
                exchange.settle(message)
        elif wants_reply(message):
            self.asked(message)
        else:
            self.heard(message)

    def heard(self, message: Message) -> None:
        method, params = message.method, params_of(message)
        if method == PROGRESS:
            exchange = self.pending.get(hashable(params.get("progressToken")))
            if exchange is not None and exchange.order.progress is not None:
                exchange.note(method, exchange.order.told(params), self.tasks)
        elif method == LOG:
            if len(callers := self.of_callers()) == 1:
                callers[0].note(method, params, self.tasks)
        elif method == CANCELLED:
            if (question := self.questions.get(encode(params.get("requestId")))) is not None:
                question.cancel()
        else:
            self.notice(method, params)

    def of_callers(self) -> list[Exchange]:
        """The callers' requests in flight; with several, nothing says which of them the server means."""
        return [exchange for exchange in self.pending.values() if exchange.order.talk is not None]

    def asked(self, message: Message) -> None:
        callers = self.of_callers()
        if len(self.questions) >= MAX_QUESTIONS:
            callers = []
        if len(callers) == 1 and message.method != PING:
            callers[0].park()
        several = len(callers) > 1 and message.method != PING
        order = callers[0].order if len(callers) == 1 else None
        task = self.tasks.start(self.hold(message, callers) if several else self.respond(message, order))
        if order is not None:
            order.keep_question(task)
        number = bytes(message.id)
        self.questions[number] = task
        task.add_done_callback(lambda done: self.forget(number, done))

    def forget(self, number: bytes, task: "asyncio.Task[None]") -> None:
        if self.questions.get(number) is task:
            del self.questions[number]

    async def hold(self, message: Message, callers: list[Exchange]) -> None:
        """A question that came while several calls were in flight: it is put to one when the others have ended."""
        owner = await wait_for_remaining(callers)
        if owner is None:
            await self.respond(message, None)
            return
        owner.park()
        if (task := asyncio.current_task()) is not None:
            owner.order.keep_question(task)
        await asyncio.sleep(0)  # whoever waits for a request that was parked goes on first
        await self.respond(message, owner.order)

    async def respond(self, message: Message, order: Order | None) -> None:
        try:
            # Read here and not before: a request that was just parked has another talk by now.
            await self.tell(await reply_to(message, order.talk if order is not None else None))
        except (Broken, RpcError) as error:
            log.debug("the reply to %s was not sent: %s", message.method, error)

    def fail(self, reason: str) -> None:
        """The stream is gone: whatever was sent on it has an unknown outcome."""
        if not self.lost.done():
            self.lost.set_result(reason)
        for exchange in self.pending.values():
            exchange.fail(Broken(reason, sent=True))

    async def stop(self) -> None:
        """End the tasks this stream started."""
        self.deadlines.close()
        await self.tasks.cancel()


async def wait_for_remaining(callers: list[Exchange]) -> Exchange | None:
    """The call that a server's question must belong to, once each of the others has its reply.

    Waits only for calls whose callers are gone: two that can be asked might each wait for the other. A call that was
    given up may be asking still, and its question is nobody else's.
    """
    while len(callers) > 1:
        if sum(not exchange.order.left for exchange in callers) != 1:
            return None
        await asyncio.wait([each.watch_end() for each in callers], return_when=asyncio.FIRST_COMPLETED)
        if any(each.closed and not each.replied for each in callers):
            return None
        callers = [each for each in callers if not each.closed]
    return callers[0] if callers else None


def hashable(value: Json) -> object:
    return value if isinstance(value, int | str) else None
