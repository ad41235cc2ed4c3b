"""`Approval`: a durable question to a person. `Answer`: what the person said. `Grant`: a remembered answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agent_gate.core.call import Caller, Decision, Mode, State
from agent_gate.core.tool import Json

Lifetime = Literal["once", "session", "hour", "always"]
Verdict = Literal["approve", "deny"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One question, as kept. `arguments` are exactly what will run; `secret` names those to mask when shown."""

    id: str
    call_id: str
    caller: Caller
    tool_id: str
    wire: str
    signature: str
    arguments: Mapping[str, Json]
    arguments_hash: str
    definition_hash: str
    decision: Decision
    state: State = State.PENDING
    asked_at: float = 0.0
    expires_at: float = 0.0
    session: str | None = None
    surface: str = ""
    mode: Mode = "full"
    sentence: str = ""
    secret: frozenset[str] = frozenset()
    answered_at: float | None = None
    answered_by: str = ""
    channel: str = ""
    reason: str = ""
    lifetime: Lifetime = "once"
    client_id: Json = None
    idempotency_key: str | None = None
    timeout: float | None = None
    meta: Mapping[str, Json] = field(default_factory=dict)
    trace: str | None = None
    filled: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A person's word on one approval. `person` is a name under `people:`; `channel` is where it was said."""

    verdict: Verdict
    person: str
    channel: str
    lifetime: Lifetime = "once"
    reason: str = ""


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
