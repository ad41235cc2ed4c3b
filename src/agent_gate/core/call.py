"""The story of one call in types: `Caller`, `Call`, `Case`, `Decision`, `Result`, `Outcome`."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from agent_gate.core.tool import Json, Tool
from agent_gate.errors import GatewayError

if TYPE_CHECKING:
    from agent_gate.core.approval import Approval
    from agent_gate.core.ports import Conversation, Sender

Effect = Literal["allow", "ask", "deny"]
Mode = Literal["full", "proxy", "gateway"]
encode = msgspec.json.Encoder(order="sorted").encode
NOBODY = "nobody"
"""Who answers where nobody does."""
GIVEN_CONTEXT = "agent-gate/context"
"""Where a call's `meta` has what its sender says of the conversation it belongs to."""


class State(StrEnum):
    """A call's states. Only the four after `DISPATCHING` and the refusals are final."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    DISPATCHING = "dispatching"
    COMPLETED = "completed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    REFUSED = "refused"

    @property
    def final(self) -> bool:
        return self not in (State.PENDING, State.APPROVED, State.DISPATCHING)

    @property
    def step(self) -> int:
        """The place of this state in a call's story; the record holds each place at most once per call."""
        return STEPS[self]


STEPS: dict[State, int] = {
    State.PENDING: 1,
    State.APPROVED: 2,
    State.DENIED: 2,
    State.EXPIRED: 2,
    State.WITHDRAWN: 2,
    State.DISPATCHING: 3,
    State.COMPLETED: 4,
    State.FAILED: 4,
    State.UNKNOWN: 4,
    State.REFUSED: 4,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who calls. `namespaces` None sees all. A limit of 0 means none. `context` is what it may say of its conversation.

    `person` is whom it works for, and `groups` what they or it belong to, as an issuer or a sign-in says. `audience` is
    the only path, with those below it, that its token is good for; empty: all. One that is `challenged_in_results` hears
    there what its sign-in lacks, and not in a status.
    """

    name: str
    kind: Literal["agent", "peer", "operator"] = "agent"
    namespaces: frozenset[str] | None = None
    mode: Mode = "full"
    names: Literal["wire", "tool_id"] = "wire"
    cache_stable: bool = False
    calls_per_minute: int = 60
    max_pending: int = 10
    budget: int | None = None
    context: frozenset[str] = frozenset()
    person: str = ""
    groups: frozenset[str] = frozenset()
    audience: str = ""
    challenged_in_results: bool = False

    def sees(self, namespace: str) -> bool:
        return self.namespaces is None or namespace in self.namespaces


TAILS = 256
tails: list[str] = []
os.register_at_fork(after_in_child=tails.clear)


def random_tails() -> list[str]:
    """The random part of many ids at once, because the system call costs more than the rest of an id."""
    digits = os.urandom(TAILS * 9).hex()
    return [f"7{digits[at : at + 3]}8{digits[at + 3 : at + 18]}" for at in range(0, len(digits), 18)]


def new_id() -> str:
    """A call id: time-ordered, 128 bits, 32 hex digits (the layout of UUID version 7)."""
    if not tails:
        tails.extend(random_tails())
    return f"{time.time_ns() // 1_000_000:012x}{tails.pop()}"


# A Struct, like the others made for each call, at a fifth of a frozen dataclass's price.
class Call(msgspec.Struct, frozen=True, kw_only=True):
    """The frozen request. `tool` is the name as asked; `arguments` is what is hashed and what runs.

    `continues` marks a further round of a call that was admitted before, proved by a state that only we can seal.
    `reads` marks a call of a read, which no tool's name can reach. `sender` is the request that waits for the answer,
    where a lost connection means that nobody does any more. `filled` names the arguments that the sender left out and
    that stand at the default of the tool's own schema: they count, and a server that fills them in itself is not sent them.
    """

    tool: str
    arguments: Mapping[str, Json]
    caller: Caller
    id: str = msgspec.field(default_factory=new_id)
    surface: str = ""
    mode: Mode = "full"
    session: str | None = None
    client_id: Json = None
    idempotency_key: str | None = None
    timeout: float | None = None
    trace: str | None = None
    continues: bool = False
    reads: bool = False
    filled: frozenset[str] = frozenset()
    meta: Mapping[str, Json] = msgspec.field(default_factory=dict)
    conversation: "Conversation | None" = None
    sender: "Sender | None" = None


def sent_arguments(call: Call) -> Mapping[str, Json]:
    """The arguments exactly as the sender gave them."""
    return {name: value for name, value in call.arguments.items() if name not in call.filled}


def hash_arguments(arguments: Mapping[str, Json], facts: Mapping[str, str] | None = None) -> str:
    """SHA-256 of the arguments in canonical form, with the facts where there are some: the identity of what a person
    approves."""
    return sha256(encode(arguments if not facts else [arguments, facts])).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Allow, ask or deny, with the rule that decided and where it stands (`permissions.yaml:4`).

    `reason` is for people; `said` is the rule's own description, all that an agent is told. `near` says what kept a
    rule from allowing a call that a person is asked about. `count` different people have to say yes; with `own` the person
    that the caller works for may answer too, with `not_own` their yes does not count: `not_by` is who that is.
    """

    effect: Effect
    rule: str = ""
    where: str = ""
    reason: str = ""
    said: str = ""
    lifetime: float | None = None
    approvers: tuple[str, ...] = ()
    count: int = 1
    own: bool = False
    not_own: bool = False
    not_by: str = ""
    via: Literal["person", "client"] = "person"
    grant: str | None = None
    near: str = ""
    considered: tuple[Any, ...] = ()


def asked_for(decision: Decision, person: str) -> Decision:
    """The decision to ask, where it depends on whom the caller works for."""
    if not (decision.own or decision.not_own):
        return decision
    own = (person or NOBODY,) if decision.own else ()
    approvers = tuple(dict.fromkeys((*decision.approvers, *own)))
    return replace(decision, approvers=approvers, not_by=person if decision.not_own else "")


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """An admitted call with its tool, signature and decision.

    `facts` are what its source said of it, None where the source is no `Witness`; `arguments_hash` is of both.
    """

    call: Call
    tool: Tool
    signature: str
    decision: Decision
    arguments_hash: str
    definition_hash: str
    facts: Mapping[str, str] | None = None


class Result(msgspec.Struct, frozen=True, gc=False):
    """What a source answered, as JSON bytes so that a surface can splice them unparsed.

    `kind` "json": `body` is the value itself. `kind` "mcp": `body` is an MCP tool result object
    (`content`, `structuredContent`, `isError`, `_meta`). `unfinished`: it is no result yet but a question to the
    caller's client, and passes as it is.
    """

    body: bytes
    kind: Literal["json", "mcp"] = "json"
    is_error: bool = False
    unfinished: bool = False


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a call ended in. A failed call has `error`; an upstream's own error result is kept in `result` too."""

    call_id: str
    state: State
    result: Result | None = None
    error: GatewayError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A call that still waits for a person. `question` is for the caller's own client, where a rule lets it answer
    and it has to come back with the answer."""

    call_id: str
    approval_id: str
    expires_at: float
    signature: str = ""
    question: "Approval | None" = None
