"""Carries a caller's request to a server, and the server's questions back, whichever way the two ask.

caller                 server                 how
comes back             asks by its result     answers and questions pass through as they are
asked meanwhile        asks meanwhile         the server's question is put to the caller while the call runs
asked meanwhile        asks by its result     the question is answered here, round by round, by asking the caller
comes back             asks meanwhile         the call is parked while its caller answers
"""

from collections.abc import Awaitable, Mapping
from functools import partial

from agent_gate.core.ports import Conversation
from agent_gate.core.tool import Json
from agent_gate.mcp.errors import INVALID_REQUEST, RpcError
from agent_gate.mcp.names import META_LOG_LEVEL
from agent_gate.mcp.results import ASKS, NoResult, read_envelope
from agent_gate.sources.mcp.calling.callers import Direct, talk_with
from agent_gate.sources.mcp.calling.parking import Parking
from agent_gate.sources.mcp.sessions.session import ServerSession
from agent_gate.sources.mcp.wire.frames import object_in
from agent_gate.sources.mcp.wire.order import SILENT, Order, Talk

MAX_ROUNDS = 10
FORM = "it asked for input in a form that is not known"


class Bridge:
    """The four combinations. `log_level` is what callers with sessions last asked for."""

    def __init__(self, here: str = "") -> None:
        self.parking = Parking(here)
        self.log_level = "info"

    def run(self, order: Order, session: ServerSession) -> Awaitable[bytes]:
        """One request in, one raw result out, whichever revisions the two sides speak."""
        if session.revision.asks_by_result:
            return self.pass_through(order, session) if order.comes_back else self.run_rounds(order, session)
        conversation = order.conversation
        if conversation is None:
            return session.send(order.travels(SILENT))
        if not conversation.comes_back or not order.can_be_asked:
            return session.send(order.travels(Direct(conversation)))
        return self.parkable(order, conversation, session)

    def parkable(self, order: Order, conversation: Conversation, session: ServerSession) -> Awaitable[bytes]:
        """A call of a caller that has to come back with its answers, should the server ask anything."""
        state = order.meta.get("requestState")
        if state is not None:
            return self.parking.resume(order, conversation, state)
        if not session.link.parks and not self.parking.full:
            return self.parking.run(order, conversation, session.send)
        park = partial(self.parking.follow, conversation)
        return session.send(order.travels(Direct(conversation), park=park))

    def pass_through(self, order: Order, session: ServerSession) -> Awaitable[bytes]:
        level = order.meta.get(META_LOG_LEVEL) if session.revision.levels_in_requests else None
        order.travels(talk_with(order.conversation), order.answers(), level if isinstance(level, str) else "")
        return session.send(order, order.capabilities)

    async def run_rounds(self, order: Order, session: ServerSession) -> bytes:
        """Answer the server's questions for a caller that cannot come back with a second request."""
        talk = talk_with(order.conversation)
        told = order.conversation is not None and session.revision.levels_in_requests
        level = self.log_level if told else ""
        inputs: dict[str, Json] = {}
        for _ in range(MAX_ROUNDS):
            body = await session.send(order.travels(talk, inputs, level), order.capabilities)
            if not asks(body):
                return body
            inputs = await gather_answers(body, talk)
        raise RpcError(INVALID_REQUEST, f"it still asked for input after {MAX_ROUNDS} rounds")


def asks(body: bytes) -> bool:
    """Whether the server wants input first. What is no result at all is left to whoever reads results."""
    try:
        return body.find(ASKS) >= 0 and read_envelope(body).asks
    except NoResult:
        return False


async def gather_answers(body: bytes, talk: Talk) -> dict[str, Json]:
    """What the next round carries: the caller's answer to each question, and the server's own state."""
    question: Mapping[str, Json] | None = object_in(body)
    if question is None:
        raise RpcError(INVALID_REQUEST, FORM)
    out: dict[str, Json] = {}
    requests = question.get("inputRequests")
    if isinstance(requests, dict):
        out["inputResponses"] = {name: await answer_one(request, talk) for name, request in requests.items()}
    if "requestState" in question:
        out["requestState"] = question["requestState"]
    return out


async def answer_one(request: Json, talk: Talk) -> Json:
    method = request.get("method") if isinstance(request, dict) else None
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, FORM)
    params = request.get("params")
    return await talk.ask(method, params if isinstance(params, dict) else {})
