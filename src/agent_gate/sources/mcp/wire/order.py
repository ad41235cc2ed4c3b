"""`Order`: one request to a server, from the source to the wire; and `Talk`, the way back to whoever it is for."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Protocol

import msgspec

from agent_gate.core.call import GIVEN_CONTEXT
from agent_gate.core.ports import Conversation, Sender
from agent_gate.core.tool import Json
from agent_gate.mcp.errors import INVALID_REQUEST, RpcError
from agent_gate.mcp.names import ELICIT, INPUT_REQUIRED, META_LOG_LEVEL, SAID_EACH_TIME
from agent_gate.mcp.results import without_protocol

INPUTS = ("inputResponses", "requestState")
NOT_PASSED = frozenset({*INPUTS, "progressToken", GIVEN_CONTEXT})
"""What a caller's `meta` holds that goes upstream in another way, or to tool hosts alone."""
MOSTLY_GIVEN = NOT_PASSED | SAID_EACH_TIME
"""What is in nearly every `meta`; where there is nothing else, nothing is passed on."""
NEEDED = {"sampling/createMessage": "sampling", ELICIT: "elicitation", "roots/list": "roots"}
"""The capability that a client must have for a question."""
NOTHING: Mapping[str, Json] = {}

Park = Callable[["Order", Coroutine[Any, Any, bytes]], Awaitable[bytes]]
"""Runs what is left of a request whose server asks something before it answers."""


class Talk(Protocol):
    """The way back to whoever a request was sent for."""

    async def notify(self, method: str, params: Mapping[str, Json]) -> None: ...

    async def ask(self, method: str, params: Mapping[str, Json]) -> Json:
        """Put a server's question to the caller and return its result; `RpcError` where that is not possible."""
        ...


class Silent:
    """A caller that can be told nothing and asked nothing."""

    async def notify(self, method: str, params: Mapping[str, Json]) -> None:
        del method, params

    async def ask(self, method: str, params: Mapping[str, Json]) -> Json:
        del params
        raise RpcError(
            INVALID_REQUEST, f"{method} cannot be answered: this caller's connection carries no questions"
        )


SILENT = Silent()


class Order(msgspec.Struct, kw_only=True):
    """One request, to be answered before `deadline` (monotonic): first what is asked and for whom, then how it travels.

    `meta` is the caller's `_meta`, with its `inputResponses` and `requestState`. `shared` asks for the session that the
    server's lists and notices come from. Nothing of this first half changes; a request that is sent again `travels` anew.

    `talk` None marks a request of our own. `own` is what a revision without sessions says in each request. `patience`
    is how much longer than its caller the request waits, while the caller is asked. `questions` are the tasks that put
    the server's questions to the caller; without `park` they are asked while the caller waits.
    """

    method: str
    params: Mapping[str, Json]
    deadline: float
    caller: str = ""
    conversation: Conversation | None = None
    sender: Sender | None = None
    meta: Mapping[str, Json] = NOTHING
    headers: Mapping[str, str] | None = None
    idempotent: bool = False
    shared: bool = False
    talk: Talk | None = None
    inputs: Mapping[str, Json] = NOTHING
    log_level: str = ""
    own: Mapping[str, Json] = NOTHING
    patience: float = 0.0
    questions: list["asyncio.Task[None]"] = msgspec.field(default_factory=list)
    park: "Park | None" = None

    @property
    def until(self) -> float:
        """When nobody waits for the server's answer any more."""
        return self.deadline + self.patience

    @property
    def left(self) -> bool:
        """Whether the caller is gone, so that it can be asked nothing; its call goes on."""
        return self.sender is not None and not self.sender.connected

    @property
    def comes_back(self) -> bool:
        """Whether the caller makes its request again with the answers to a question."""
        return self.conversation is not None and self.conversation.comes_back

    @property
    def capabilities(self) -> Mapping[str, Json]:
        return NOTHING if self.conversation is None else self.conversation.capabilities

    @property
    def can_be_asked(self) -> bool:
        return not self.capabilities.keys().isdisjoint(NEEDED.values())

    def takes(self, result_type: str) -> bool:
        """Whether the caller knows what to do with a result that has no content: a question, or what an extension has."""
        asks = result_type == INPUT_REQUIRED
        return self.comes_back and (asks or bool(self.capabilities.get("extensions")))

    def answers(self) -> dict[str, Json]:
        """The answers of an earlier round, as the caller sent them."""
        return {name: self.meta[name] for name in INPUTS if name in self.meta}

    def travels(
        self,
        talk: Talk,
        inputs: Mapping[str, Json] = NOTHING,
        log_level: str = "",
        park: "Park | None" = None,
    ) -> "Order":
        """It is sent now, in this way; whatever an earlier attempt left is gone."""
        if self.talk is not None:
            self.own, self.patience, self.inputs, self.log_level, self.park = NOTHING, 0.0, NOTHING, "", None
        self.talk = talk
        if inputs or log_level or park is not None:
            self.inputs, self.log_level, self.park = inputs, log_level, park
        return self

    def numbered(self, number: int) -> Mapping[str, Json]:
        """The parameters as sent under `number`, which is also the progress token: two callers may choose the same.

        The caller's `_meta` is passed on without what speaks for its own connection.
        """
        if not (self.meta or self.own or self.log_level or self.inputs):
            return self.params
        meta: dict[str, Json] = {}
        if not self.meta.keys() <= MOSTLY_GIVEN:
            meta = {
                name: value for name, value in without_protocol(self.meta).items() if name not in NOT_PASSED
            }
        if self.log_level:
            meta[META_LOG_LEVEL] = self.log_level
        meta.update(self.own)
        if self.meta.get("progressToken") is not None:
            meta["progressToken"] = number
        if meta:
            return {**self.params, **self.inputs, "_meta": meta}
        return {**self.params, **self.inputs}

    @property
    def progress(self) -> Json:
        """The caller's progress token."""
        return self.meta.get("progressToken")

    def told(self, params: dict[str, Json]) -> dict[str, Json]:
        """A progress notification's parameters as the caller expects them."""
        return {**params, "progressToken": self.progress}

    def keep_question(self, question: "asyncio.Task[None]") -> None:
        """Keep a question until it is answered."""
        self.questions.append(question)
        question.add_done_callback(self.answered)

    def answered(self, question: "asyncio.Task[None]") -> None:
        if question in self.questions:
            self.questions.remove(question)

    def end(self) -> None:
        """Nobody waits for it any more, so nobody is asked anything for it."""
        for question in self.questions:
            question.cancel()
        self.questions.clear()
