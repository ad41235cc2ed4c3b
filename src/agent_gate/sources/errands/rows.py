"""An errand as the store has it: what is asked, what is answered, and the statements between."""

from collections.abc import Sequence
from typing import Any

import msgspec

from agent_gate.core.call import Call, Caller, Case, Decision, Result
from agent_gate.core.ports import Conversation, Job
from agent_gate.core.tool import Json, Tool
from agent_gate.errors import GatewayError, OutcomeUnknown, by_code
from agent_gate.store.alone import PREFIX
from agent_gate.store.statement import Param, Statement

GONE_AFTER = 3600.0
ASK = "INSERT INTO errands (id, source, call, asked_by, taken_by, state, ends_at, body, wanted_of) VALUES "
ASKED = "(?, ?, ?, ?, '', 'waiting', {now} + ?, ?, ?)"
MINE = (
    "(wanted_of = ? OR (wanted_of IS NULL AND EXISTS "
    f"(SELECT 1 FROM leases WHERE name = '{PREFIX}' || errands.source AND holder = ? AND expires_at > {{now}})))"
)
TAKE = (
    "UPDATE errands SET state = 'taken', taken_by = ?, turn = ? WHERE id IN ({ids}) AND state = 'waiting' "
    f"AND ends_at > {{now}} AND {MINE} "
    "AND NOT EXISTS (SELECT 1 FROM record WHERE record.call = errands.call AND step = 4)"
)
PUT_BACK = (
    "UPDATE errands SET state = 'waiting', taken_by = '', turn = NULL WHERE turn = ? AND state = 'taken'"
)
END = (
    "UPDATE errands SET state = said.state, answer = said.answer FROM (VALUES {rows}) AS said (id, state, answer) "
    "WHERE errands.id = said.id AND errands.state = 'taken' AND errands.taken_by = ?"
)
ENDED = "(CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BYTEA))"
WITHDRAW = "UPDATE errands SET state = 'withdrawn' WHERE id = ? AND state = ?"
LOSE = "UPDATE errands SET state = 'lost' WHERE id = ? AND state = 'taken' AND taken_by = ?"
LOSE_ALL = "UPDATE errands SET state = 'lost' WHERE state = 'taken' AND taken_by = ?"
FORGET = "DELETE FROM errands WHERE id IN ({ids})"
PURGE = "DELETE FROM errands WHERE ends_at < {now} - ?"


class ErrandBody(msgspec.Struct, frozen=True, kw_only=True):
    """What the gateway that runs a source is asked to do.

    `capabilities` None: nothing that the source says meanwhile can reach the caller.
    """

    tool: str
    pin: str
    call: str
    caller: str
    person: str
    arguments: dict[str, Json]
    filled: tuple[str, ...]
    meta: dict[str, Json]
    trace: str | None
    seconds: float
    limit: float
    timeout: float | None
    protocol: str = ""
    capabilities: dict[str, Json] | None = None
    can_be_asked: bool = False
    comes_back: bool = False


class ErrandMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One thing said while an errand is done; `number` is that of a question."""

    kind: str
    number: int = 0
    method: str = ""
    body: Any = None


class ErrandAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended: a result, or an error with its outward code. `said` is how many words came before, and `last` what was
    said after these."""

    result: Result | None = None
    code: str = ""
    message: str = ""
    details: dict[str, Any] | None = None
    retry_after: float | None = None
    said: int = 0
    last: tuple[ErrandMessage, ...] = ()


class TakenErrand(msgspec.Struct, frozen=True):
    """An errand that this gateway does."""

    id: str
    source: str
    asked_by: str
    body: bytes


class AskedErrand(msgspec.Struct, frozen=True):
    """What became of an errand that this gateway asked for."""

    id: str
    taken_by: str
    state: str
    answer: bytes | None


class ErrandEnd(msgspec.Struct, frozen=True):
    id: str
    state: str
    answer: bytes | None


decode_body = msgspec.msgpack.Decoder(ErrandBody).decode
decode_answer = msgspec.msgpack.Decoder(ErrandAnswer).decode
decode_messages = msgspec.msgpack.Decoder(tuple[ErrandMessage, ...]).decode
encode = msgspec.msgpack.encode


def body_of(job: Job, seconds: float) -> ErrandBody:
    call, tool, talk = job.case.call, job.case.tool, job.case.call.conversation
    return ErrandBody(
        tool=tool.id,
        pin=tool.pin,
        call=call.id,
        caller=call.caller.name,
        person=call.caller.person,
        arguments=dict(call.arguments),
        filled=tuple(sorted(call.filled)),
        meta=dict(call.meta),
        trace=call.trace,
        seconds=seconds,
        limit=job.limit,
        timeout=call.timeout,
        protocol=talk.protocol if talk is not None else "",
        capabilities=dict(talk.capabilities) if talk is not None else None,
        can_be_asked=talk is not None and talk.can_be_asked,
        comes_back=talk is not None and talk.comes_back,
    )


def case_of(body: ErrandBody, tool: Tool, conversation: Conversation | None) -> Case:
    """The case as the gateway that runs it needs it; it was decided elsewhere."""
    call = Call(
        tool=tool.id,
        arguments=body.arguments,
        caller=Caller(name=body.caller, person=body.person),
        id=body.call,
        timeout=body.timeout,
        trace=body.trace,
        filled=frozenset(body.filled),
        meta=body.meta,
        conversation=conversation,
    )
    return Case(
        call=call,
        tool=tool,
        signature="",
        decision=Decision(effect="allow"),
        arguments_hash="",
        definition_hash=tool.pin,
    )


def answer_of(error: GatewayError) -> ErrandAnswer:
    return ErrandAnswer(
        code=error.code, message=error.message, details=error.details, retry_after=error.retry_after
    )


def error_of(answer: ErrandAnswer) -> GatewayError:
    kind = by_code().get(answer.code, OutcomeUnknown)
    return kind(answer.message, details=answer.details, retry_after=answer.retry_after)


def marks(count: int) -> str:
    return ", ".join("?" * count)


def padded(idents: Sequence[str]) -> Sequence[str]:
    """As many again as make a power of two, so that few statements have to be prepared."""
    whole = 1 << (len(idents) - 1).bit_length()
    return [*idents, *[idents[-1]] * (whole - len(idents))]


def asking(rows: Sequence[tuple[Param, ...]], now: str) -> Statement:
    values = ", ".join([ASKED.format(now=now)] * len(rows))
    return Statement(ASK + values, tuple(part for row in rows for part in row))


def ending(ends: Sequence[ErrandEnd], gateway: str) -> Statement:
    params = [part for end in ends for part in (end.id, end.state, end.answer)]
    return Statement(END.format(rows=", ".join([ENDED] * len(ends))), (*params, gateway))


def taking(idents: Sequence[str], gateway: str, turn: str, now: str) -> Statement:
    given = padded(idents)
    sql = TAKE.format(ids=marks(len(given)), now=now)
    return Statement(sql, (gateway, turn, *given, gateway, gateway))


def forgetting(idents: Sequence[str]) -> Statement:
    given = padded(idents)
    return Statement(FORGET.format(ids=marks(len(given))), tuple(given))
