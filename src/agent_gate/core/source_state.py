"""What people are shown of a source: how it is, how its account is, and which of its definitions changed."""

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    DISABLED = "disabled"
    IDLE = "idle"
    CONNECTING = "connecting"
    READY = "ready"
    DEGRADED = "degraded"
    FAILED = "failed"
    NEEDS_AUTH = "needs_auth"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """What is shown of a source: where it stands, why, since when, and when it is tried again.

    `broken_since` lasts over all tries that fail; the last error is told also when it is well again.
    """

    key: str
    namespace: str
    kind: str
    title: str
    status: Status
    reason: str = ""
    since: float = 0.0
    broken_since: float | None = None
    last_error: str = ""
    last_error_at: float | None = None
    next_try: float | None = None
    tools: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountState:
    """How one source stands with its account, or with that of one of its callers, `agent`: `person:NAME` where it is a
    person's.

    `how` says what a person does: paste a key, click a link, type a code.
    """

    source: str
    title: str
    how: str
    connected: bool
    needed: bool
    agent: str = ""
    unconfirmed: bool = False
    account: str | None = None
    scopes: tuple[str, ...] = ()
    expires_at: float | None = None
    renewed_at: float | None = None
    since: float | None = None
    by: str = ""
    status: str = ""
    reason: str = ""
    tools: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionChange:
    """A definition that is not what it was, as a person reads it. `pin` names what it is now."""

    source: str
    tool: str
    pin: str
    held: bool
    changed_at: float
    diff: str
