"""Results kept for a caller who may be away: until acknowledged, or until they expire."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import msgspec

from agent_gate.core.call import Call, Outcome, Result, State
from agent_gate.errors import GatewayError, Internal, OutcomeUnknown, by_code
from agent_gate.results.data import NULL, data_of
from agent_gate.store.statement import Record, Statement, Store

log = logging.getLogger("agent_gate.results")
DAY = 24 * 3600.0
KEEP_SECONDS = 7 * DAY
COLUMNS = (
    "call, caller, session, client_id, tool, signature, arguments, state, body, kind, created_at, expires_at"
)
INSERT = f"INSERT INTO results ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (call) DO NOTHING"
WAITING = "caller = ? AND acknowledged_at IS NULL AND expires_at > ?"
MOST_ROWS = 1000
MOST_BYTES = 16 * 1024 * 1024
CLASSES = by_code()
KINDS: dict[str, Literal["json", "mcp"]] = {"json": "json", "mcp": "mcp"}
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError, msgspec.MsgspecError)
NO_RESULT = (
    "The tool ran, but what it answered cannot be read as a result. Check the service before you try again"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One kept result as a caller reads it back."""

    call_id: str
    session: str | None
    client_id: object
    tool: str
    signature: str
    arguments: str
    outcome: Outcome
    created_at: float
    expires_at: float


class KeptPage(NamedTuple):
    """Some kept results; `more` wait behind them."""

    results: list[Kept]
    more: bool


def fitting(sizes: Sequence[Record]) -> list[str]:
    """The first of these calls, as many as are let out together, and always one."""
    calls: list[str] = []
    left = MOST_BYTES
    for call, size in sizes[:MOST_ROWS]:
        left -= size
        if calls and left < 0:
            break
        calls.append(call)
    return calls


def error_body(error: GatewayError) -> bytes:
    return msgspec.json.encode(error.as_dict())


def error_of(body: bytes) -> GatewayError:
    data = msgspec.json.decode(body)
    cls = CLASSES.get(data["code"], Internal)
    return cls(data["message"], details=data.get("details"))


def keep(
    call: Call,
    tool: str,
    signature: str,
    arguments: str,
    outcome: Outcome,
    now: float,
    seconds: float = KEEP_SECONDS,
) -> Statement:
    """The statement that keeps `outcome`; a result that is kept already stays as it is."""
    if outcome.result is not None:
        body, kind = outcome.result.body, f"{outcome.result.kind}{'!' if outcome.result.is_error else ''}"
    else:
        body, kind = error_body(outcome.error or Internal("The call ended without a result")), "error"
    client_id = msgspec.json.encode(call.client_id).decode()
    params = (call.id, call.caller.name, call.session, client_id, tool, signature, arguments)
    return Statement(INSERT, (*params, outcome.state, body, kind, now, now + seconds))


def kept_of(row: Record) -> Kept:
    call, _, session, client_id, tool, signature, arguments, state, body, kind, created_at, expires_at = row
    return Kept(
        call_id=call,
        session=session,
        client_id=readable_id(client_id),
        tool=tool,
        signature=signature,
        arguments=arguments,
        outcome=outcome_of(call, state, bytes(body or NULL), kind),
        created_at=created_at,
        expires_at=expires_at,
    )


def outcome_of(call_id: str, state: str, body: bytes, kind: str) -> Outcome:
    """What the row says; one that cannot be read is an outcome too, so that it never hides the others."""
    try:
        if kind == "error":
            return Outcome(call_id=call_id, state=State(state), error=error_of(body))
        result = Result(body, KINDS[kind.rstrip("!")], kind.endswith("!"))
        check_readable(result)
        error = upstream_said(result) if result.is_error else None
        return Outcome(call_id=call_id, state=State(state), result=result, error=error)
    except UNREADABLE as error:
        log.warning("A kept result cannot be read", extra={"call": call_id, "why": str(error)})
        return Outcome(call_id=call_id, state=State.UNKNOWN, error=OutcomeUnknown(NO_RESULT))


def check_readable(result: Result) -> None:
    """Raise one of `UNREADABLE` where no surface could show this."""
    msgspec.json.decode(result.body, type=msgspec.Raw)
    data_of(result)


def readable_id(text: str | None) -> object:
    try:
        return msgspec.json.decode(text) if text else None
    except msgspec.DecodeError:
        return None


def upstream_said(result: Result, source: str = "") -> GatewayError:
    """The error that stands for an upstream's own error result on surfaces that have no such thing."""
    try:
        said = msgspec.json.decode(result.body)
    except (msgspec.DecodeError, RecursionError):
        said = None
    content = said.get("content") or [] if isinstance(said, dict) else []
    texts = [
        str(part.get("text", "")) for part in content if isinstance(part, dict) and part.get("type") == "text"
    ]
    summary = said.get("summary") if isinstance(said, dict) else None
    text = "\n".join(texts) or (summary if isinstance(summary, str) else "")
    details = {"source": source} if source else None
    return CLASSES["UPSTREAM_ERROR"](text[:2000] or "The tool reported an error", details=details)


class KeptResults:
    """Reads and acknowledges; writing is part of the unit that records the outcome."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read_of_call(self, call_id: str) -> Kept | None:
        """For those who are known to be its caller."""
        rows = await self._store.read(f"SELECT {COLUMNS} FROM results WHERE call = ?", (call_id,))
        return kept_of(rows[0]) if rows else None

    async def read_one(self, call_id: str, caller: str) -> Kept | None:
        rows = await self._store.read(
            f"SELECT {COLUMNS} FROM results WHERE call = ? AND caller = ?", (call_id, caller)
        )
        return kept_of(rows[0]) if rows else None

    async def read_waiting(self, caller: str, now: float) -> KeptPage:
        """What this caller has not acknowledged yet: the newest of it that one message can carry, oldest first."""
        sizes = await self._store.read(
            f"SELECT call, COALESCE(LENGTH(body), 0) + LENGTH(arguments) FROM results WHERE {WAITING} "
            "ORDER BY created_at DESC, call DESC LIMIT ?",
            (caller, now, MOST_ROWS + 1),
        )
        if not sizes:
            return KeptPage([], more=False)
        calls = fitting(sizes)
        marks = ", ".join("?" * len(calls))
        rows = await self._store.read(
            f"SELECT {COLUMNS} FROM results WHERE {WAITING} AND call IN ({marks}) ORDER BY created_at, call",
            (caller, now, *calls),
        )
        return KeptPage([kept_of(row) for row in rows], more=len(calls) < len(sizes))

    async def acknowledge(self, caller: str, call_ids: Sequence[str], now: float) -> int:
        """Mark results as received; the number that were waiting."""
        statement = (
            "UPDATE results SET acknowledged_at = ? WHERE call = ? AND caller = ? AND acknowledged_at IS NULL"
        )
        if not call_ids:
            return 0
        return sum(
            await self._store.write(*(Statement(statement, (now, call_id, caller)) for call_id in call_ids))
        )

    async def purge(self, now: float) -> None:
        """Remove what has expired, and what was acknowledged a day ago: no key can ask for it any more."""
        acknowledged = Statement("DELETE FROM results WHERE acknowledged_at <= ?", (now - DAY,))
        keys = Statement("DELETE FROM idempotency WHERE expires_at <= ?", (now,))
        await self._store.write(
            Statement("DELETE FROM results WHERE expires_at <= ?", (now,)), acknowledged, keys
        )
