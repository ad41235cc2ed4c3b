"""`Approval`: a durable question to a person. `Answer`: what the person said. `Grant`: a remembered answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from agent_gate.core.call import Call, Caller, Decision, State
from agent_gate.core.tool import Json

Lifetime = Literal["once", "session", "hour", "always"]
Verdict = Literal["approve", "deny"]


@dataclass(frozen=True, slots=True)
class Hashes:
    """What an answer is bound to: the arguments and the tool's definition, as they were when the question was asked."""

    arguments: str
    definition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How a question was put. `wire` is the tool's name as people see it; `secret` names the arguments to mask when
    shown; `facts` are what its source said of the call; `picture` is the media type of the image that is kept beside
    it, empty where there is none. Where a yes must name a `number` that is shown elsewhere, no channel shows which one
    it is. `risks` are the dangers that the tool itself has."""

    at: float
    expires_at: float
    wire: str
    sentence: str = ""
    secret: frozenset[str] = frozenset()
    facts: Mapping[str, str] | None = None
    picture: str = ""
    number: str = field(default="", repr=False)
    risks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """How a question ended, empty while it is open: who ended it, where and when, and why where they said so; of a yes
    how long it counts, and the `terms` that it made narrower."""

    at: float | None = None
    by: str = ""
    channel: str = ""
    reason: str = ""
    lifetime: Lifetime = "once"
    terms: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One question, as kept. `call` is exactly what will run, its `tool` the tool's id. `gateway` is the one that has to
    run it, where one has to."""

    id: str
    call: Call
    decision: Decision
    signature: str
    hashes: Hashes
    asked: Asked
    answered: Answered = Answered()
    state: State = State.PENDING
    gateway: str = ""

    yeses: tuple[str, ...] = ()
    """Who said yes already, where more than one person has to."""

    def ended(self, state: State, answer: "Answer", at: float) -> "Approval":
        """The question as this answer ends it."""
        said = Answered(
            at=at,
            by=answer.person,
            channel=answer.channel,
            reason=answer.reason,
            lifetime=answer.lifetime,
            terms=answer.terms,
        )
        return replace(self, state=state, answered=said)

    @property
    def call_id(self) -> str:
        return self.call.id

    @property
    def caller(self) -> Caller:
        return self.call.caller

    @property
    def tool_id(self) -> str:
        return self.call.tool

    @property
    def namespace(self) -> str:
        return self.call.tool.partition(":")[0]

    @property
    def arguments(self) -> Mapping[str, Json]:
        return self.call.arguments

    @property
    def session(self) -> str | None:
        return self.call.session


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A person's word on one approval. `person` is a name under `people:`; `channel` is where it was said. `number` is
    what they read elsewhere, `terms` what they make narrower, where the question asks for either."""

    verdict: Verdict
    person: str
    channel: str
    lifetime: Lifetime = "once"
    reason: str = ""
    number: str = ""
    terms: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Turns ask into allow for one caller, tool, arguments and definition, until it expires or is revoked."""

    id: str
    caller: str
    tool_id: str
    signature: str
    arguments_hash: str
    definition_hash: str
    created_at: float
    expires_at: float | None
    created_by: str
    session: str | None = None
    approval_id: str = ""
    used: int = 0

    @property
    def namespace(self) -> str:
        """Of the tool that it is about."""
        return self.tool_id.partition(":")[0]
