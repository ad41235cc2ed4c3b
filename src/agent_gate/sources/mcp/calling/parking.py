"""Calls that wait here while their caller is asked: an old server's question becomes a new client's round.

A server with sessions asks in the middle of a call; a client that comes back is answered with `input_required`
and makes a second request. In between, the call stays open in a task here: the server's question waits in a future,
the caller holds a `requestState` that names the call, and its next request brings the answers and waits for the next
question or the result. Who never comes back is given up after ten minutes, since the server's request would otherwise
stay open for ever; a thousand calls at most wait like this.
"""

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from agent_gate.core.ports import Conversation
from agent_gate.core.tool import Json
from agent_gate.errors import InvalidArgs
from agent_gate.mcp.errors import INVALID_REQUEST, RpcError
from agent_gate.mcp.messages import encode
from agent_gate.mcp.names import INPUT_REQUIRED
from agent_gate.sources.mcp.calling.callers import check_askable, tell
from agent_gate.sources.mcp.wire.deadlines import Deadlines
from agent_gate.sources.mcp.wire.order import Order

TTL = 600.0
MAX_PARKED = 1_000
AT = "@"
GONE = "This requestState is unknown, used or expired; make the call again without it"

Send = Callable[[Order], Coroutine[Any, Any, bytes]]


class ParkedElsewhere(InvalidArgs):
    """The call waits on another gateway, which can go on with it."""

    def __init__(self, gateway: str) -> None:
        super().__init__(GONE)
        self.gateway = gateway


class Parked:
    """One open call: the `Talk` of its upstream request, and the questions its caller has not answered."""

    def __init__(self, order: Order, conversation: Conversation) -> None:
        self.first = order
        self.conversation = conversation
        self.open: dict[str, tuple[str, Mapping[str, Json], asyncio.Future[Json]]] = {}
        self.asked = 0
        self.task: asyncio.Task[bytes] | None = None
        self.turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.timer: asyncio.TimerHandle | None = None

    def start(self, work: Coroutine[Any, Any, bytes]) -> None:
        self.task = asyncio.get_running_loop().create_task(work)
        self.task.add_done_callback(self.ended)

    def is_about(self, order: Order) -> bool:
        """Whether `order` is the same call by the same caller."""
        first = self.first
        return (order.caller, order.method, order.params) == (first.caller, first.method, first.params)

    async def notify(self, method: str, params: Mapping[str, Json]) -> None:
        await tell(self.conversation, method, params)

    async def ask(self, method: str, params: Mapping[str, Json]) -> Json:
        check_askable(method, self.conversation.capabilities)
        self.asked += 1
        name = f"question-{self.asked}"
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self.open[name] = (method, params, future)
        self.wake()
        try:
            return await future
        finally:
            self.open.pop(name, None)

    def ended(self, _task: "asyncio.Task[bytes]") -> None:
        self.wake()

    def wake(self) -> None:
        if not self.turn.done():
            self.turn.set_result(None)

    def expire(self) -> None:
        if not self.turn.done():
            self.turn.set_exception(TimeoutError())

    def take(self, responses: Json) -> None:
        """Hand the caller's answers to the waiting questions."""
        for name, answer in responses.items() if isinstance(responses, dict) else ():
            if name in self.open and not self.open[name][2].done():
                self.open[name][2].set_result(answer)

    def questions(self) -> dict[str, Json]:
        unanswered = {name: entry for name, entry in self.open.items() if not entry[2].done()}
        return {
            name: {"method": method, "params": params} for name, (method, params, _) in unanswered.items()
        }

    def end(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self.task is not None:
            self.task.cancel()


class Parking:
    """The open calls of one server, each under a random state that only its own caller can use, once. `here` is this
    gateway, where there are others: a state says where its call is."""

    def __init__(self, here: str = "") -> None:
        self.here = here
        self.waiting: dict[str, Parked] = {}
        self.deadlines = Deadlines()

    @property
    def full(self) -> bool:
        """Whether so many calls wait for their callers that no other may; the server's questions are refused then."""
        return len(self.waiting) >= MAX_PARKED

    async def run(self, order: Order, conversation: Conversation, send: Send) -> bytes:
        """The first round: until the server answers, or asks something of the caller.

        What is sent outlives its rounds, each of which keeps its own, shorter deadline.
        """
        parked = Parked(order, conversation)
        order.travels(parked).patience = TTL
        parked.start(send(order))
        return await self.wait_for_round(parked, order.deadline)

    async def follow(
        self, conversation: Conversation, order: Order, work: Coroutine[Any, Any, bytes]
    ) -> bytes:
        """What is left of the first round, where the server began to speak before it answered."""
        if self.full:
            return await work
        parked = Parked(order, conversation)
        order.talk, order.patience = parked, TTL
        parked.start(work)
        return await self.wait_for_round(parked, order.deadline)

    async def resume(self, order: Order, conversation: Conversation, state: Json) -> bytes:
        """A further round: the caller came back with its answers."""
        return await self.wait_for_round(self.take_up(order, conversation, state), order.deadline)

    def take_up(self, order: Order, conversation: Conversation, state: Json) -> Parked:
        if not isinstance(state, str):
            raise InvalidArgs(GONE)
        parked, place = self.waiting.get(state), state.partition(AT)[2]
        if parked is None and self.here and place not in ("", self.here):
            raise ParkedElsewhere(place)
        if parked is None or not parked.is_about(order):
            raise InvalidArgs(GONE)
        del self.waiting[state]
        if parked.timer is not None:
            parked.timer.cancel()
        parked.conversation = conversation
        parked.turn = asyncio.get_running_loop().create_future()
        parked.take(order.meta.get("inputResponses"))
        if parked.questions() or (parked.task is not None and parked.task.done()):
            parked.wake()
        return parked

    async def wait_for_round(self, parked: Parked, deadline: float) -> bytes:
        task = parked.task
        if task is None:
            raise RpcError(INVALID_REQUEST, GONE)
        self.deadlines.add(parked, deadline, parked.expire)
        try:
            await parked.turn
        except (asyncio.CancelledError, TimeoutError):
            parked.end()
            await asyncio.wait([task])
            raise
        finally:
            self.deadlines.drop(parked)
        if task.done():
            return task.result()
        return self.park(parked)

    def park(self, parked: Parked) -> bytes:
        state = secrets.token_urlsafe(24) + (f"{AT}{self.here}" if self.here else "")
        self.waiting[state] = parked
        parked.timer = asyncio.get_running_loop().call_later(TTL, self.expire, state)
        return encode(
            {"resultType": INPUT_REQUIRED, "inputRequests": parked.questions(), "requestState": state}
        )

    def expire(self, state: str) -> None:
        parked = self.waiting.pop(state, None)
        if parked is not None:
            parked.end()

    def close(self) -> None:
        for state in list(self.waiting):
            self.expire(state)
        self.deadlines.close()
