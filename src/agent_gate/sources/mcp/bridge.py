"""Carries a caller's request to a server of either era, and the server's questions back.

caller      server      how
modern      modern      answers and questions pass through as they are
handshake   handshake   the server's question is put to the caller while the call runs
handshake   modern      `input_required` is answered here, round by round, by asking the caller
modern      handshake   the call is parked while its caller answers
"""

from collections.abc import Awaitable, Mapping
from functools import partial

from agent_gate.core.ports import Conversation
from agent_gate.core.tool import Json
from agent_gate.mcp.names import INPUT_REQUIRED
from agent_gate.mcp.results import NoResult, read_envelope
from agent_gate.sources.mcp.ask import NOTHING, Ask, Direct
from agent_gate.sources.mcp.link import SILENT, Talk
from agent_gate.sources.mcp.parking import Parking, parked_until
from agent_gate.sources.mcp.session import Session
from agent_gate.sources.mcp.wire import INVALID_REQUEST, META_LOG_LEVEL, RpcError, decode_json

MAX_ROUNDS = 10


class Bridge:
    """The four combinations of eras. `log_level` is what handshake callers last asked for."""

    def __init__(self) -> None:
        self.parking = Parking()
        self.log_level = "info"

    def run(self, ask: Ask, session: Session) -> Awaitable[bytes]:
        """One request in, one raw result out, whichever eras the two sides speak."""
        if session.modern:
            return self.pass_through(ask, session) if ask.modern else self.rounds(ask, session)
        conversation = ask.conversation
        if conversation is None:
            return session.send(ask.order(SILENT, NOTHING))
        if not ask.modern or not ask.can_be_asked:
            return session.send(ask.order(Direct(conversation), NOTHING))
        return self.parkable(ask, conversation, session)

    def parkable(self, ask: Ask, conversation: Conversation, session: Session) -> Awaitable[bytes]:
        """A call of a caller that has to come back with its answers, should the server ask anything."""
        state = ask.meta.get("requestState")
        if state is not None:
            return self.parking.resume(ask, conversation, state)
        if not session.link.parks and not self.parking.full:
            return self.parking.run(ask, conversation, lambda talk: self.parked(ask, session, talk))
        order = ask.order(Direct(conversation), NOTHING)
        order.park = partial(self.parking.follow, ask, conversation)
        return session.send(order)

    async def parked(self, ask: Ask, session: Session, talk: Talk) -> bytes:
        """The upstream half of a call that is parked from its beginning."""
        order = ask.order(talk, NOTHING)
        order.deadline = parked_until(ask)
        return await session.send(order)

    def pass_through(self, ask: Ask, session: Session) -> Awaitable[bytes]:
        talk = Direct(ask.conversation) if ask.conversation is not None else SILENT
        level = ask.meta.get(META_LOG_LEVEL)
        order = ask.order(talk, ask.inputs(), level if isinstance(level, str) else "")
        return session.send(order, ask.capabilities)

    async def rounds(self, ask: Ask, session: Session) -> bytes:
        """Answer the server's questions for a caller that cannot come back with a second request."""
        talk = Direct(ask.conversation) if ask.conversation is not None else SILENT
        level = self.log_level if ask.conversation is not None else ""
        inputs: dict[str, Json] = {}
        for _ in range(MAX_ROUNDS):
            body = await session.send(ask.order(talk, inputs, level), ask.capabilities)
            if not asks(body):
                return body
            inputs = await answers(decode_json(body), talk)
        raise RpcError(INVALID_REQUEST, f"it still asked for input after {MAX_ROUNDS} rounds")


def asks(body: bytes) -> bool:
    """Whether the server wants input first. What is no result at all is left to whoever reads results."""
    try:
        return INPUT_REQUIRED.encode() in body and read_envelope(body).asks
    except NoResult:
        return False


async def answers(question: Mapping[str, Json], talk: Talk) -> dict[str, Json]:
    """What the next round carries: the caller's answer to each question, and the server's own state."""
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
        raise RpcError(INVALID_REQUEST, "it asked for input in a form that is not known")
    params = request.get("params")
    return await talk.ask(method, params if isinstance(params, dict) else {})
