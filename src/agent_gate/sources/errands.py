"""Errands: calls of a source that runs on one gateway at a time, made on another one.

Whoever is asked writes down what to do, and the gateway that holds the source's lease does it. Taking an errand is a
compare-and-set in the database, together with a look at the lease and at the record: so one gateway does it, once, and
not for a call that has ended. What was taken by a gateway that is gone has an unknown outcome; what nobody took is done
by the next that holds the source. Policy, approval and record are where the call was made.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from agent_gate.core.call import Call, Caller, Case, Decision, Result, new_id
from agent_gate.core.catalog import Shelf
from agent_gate.core.ports import Clock, Job
from agent_gate.core.tasks import KeptTasks
from agent_gate.core.tool import Definition, Json, Tool
from agent_gate.errors import (
    CallTimeout,
    DependencyUnavailable,
    Forbidden,
    GatewayError,
    OutcomeUnknown,
    by_code,
)
from agent_gate.sources.keeper import Keeper
from agent_gate.sources.pins import Pins
from agent_gate.store.alone import PREFIX, AloneLeases
from agent_gate.store.statement import Conflict, Statement, Store
from agent_gate.vault.sealing import SealingKey, VaultFault

log = logging.getLogger("agent_gate.sources")
SPARE_SECONDS = 0.25
"""Sooner than the call's own deadline, so that there is time to say whether it was begun."""
GONE_AFTER = 3600.0
MAY_HAVE_RUN = "It may have run. Check before you try again"
CHANGED = "The tool is another one on the gateway that runs it: its definition changed. Nothing was sent"
NOT_BEGUN = "no gateway began the call in time. Nothing was sent"
ASK = "INSERT INTO errands (id, source, call, asked_by, taken_by, state, ends_at, body) VALUES (?, ?, ?, ?, '', 'waiting', {now} + ?, ?)"
TAKE = (
    "UPDATE errands SET state = 'taken', taken_by = ? WHERE id = ? AND state = 'waiting' AND ends_at > {now} "
    "AND EXISTS (SELECT 1 FROM leases WHERE name = ? AND holder = ? AND expires_at > {now}) "
    "AND NOT EXISTS (SELECT 1 FROM record WHERE record.call = errands.call AND step = 4)"
)
END = "UPDATE errands SET state = ?, answer = ? WHERE id = ? AND state = 'taken' AND taken_by = ?"
WITHDRAW = "UPDATE errands SET state = 'withdrawn' WHERE id = ? AND state = ?"
LOSE = "UPDATE errands SET state = 'lost' WHERE id = ? AND state = 'taken' AND taken_by = ?"
FORGET = "DELETE FROM errands WHERE id = ?"
PURGE = "DELETE FROM errands WHERE ends_at < {now} - ?"


class ErrandBody(msgspec.Struct, frozen=True, kw_only=True):
    """What the gateway that runs a source is asked to do. The way back to the caller stays where the call was made."""

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


class ErrandAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended: a result, or an error with its outward code."""

    result: Result | None = None
    code: str = ""
    message: str = ""
    details: dict[str, Any] | None = None
    retry_after: float | None = None


class ErrandRow(msgspec.Struct, frozen=True):
    """An errand as the store has it."""

    id: str
    source: str
    taken_by: str
    state: str
    body: bytes
    answer: bytes | None


decode_body = msgspec.msgpack.Decoder(ErrandBody).decode
decode_answer = msgspec.msgpack.Decoder(ErrandAnswer).decode


def body_of(job: Job, seconds: float) -> ErrandBody:
    call, tool = job.case.call, job.case.tool
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
    )


def case_of(body: ErrandBody, tool: Tool) -> Case:
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


class Errands:
    """Both sides: asks others for what they run, and does what others ask for. `is_alive` says whether a gateway is."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        key: bytes,
        alone: AloneLeases,
        pins: Pins,
        is_alive: Callable[[str], bool],
        shelf: Shelf,
        keepers: Mapping[str, Keeper],
    ) -> None:
        self._store, self._clock, self._key = store, clock, SealingKey(key)
        self._alone, self._pins, self._is_alive = alone, pins, is_alive
        self._shelf, self._keepers = shelf, keepers
        self._asked: dict[str, asyncio.Future[ErrandAnswer]] = {}
        self._doing: dict[str, asyncio.Task[Any]] = {}
        self._tasks = KeptTasks(log, "An errand could not be done")
        self._over = False

    # -- what a source that may run elsewhere needs

    async def take(self, key: str) -> bool:
        """Whether this gateway is the one that runs the source now."""
        return await self._alone.take(key)

    async def read_listing(self, key: str) -> tuple[tuple[Definition, ...] | None, str]:
        """The tools that the gateway that runs the source has listed, and what the source says of itself."""
        return await self._pins.read_kept(key)

    async def ask(self, key: str, job: Job) -> Result:
        """Have the gateway that runs the source do it, once."""
        left = max(0.0, job.deadline - self._clock.monotonic())
        seconds = left - min(SPARE_SECONDS, left / 10)
        ident = new_id()
        sealed = self._key.seal(msgspec.msgpack.encode(body_of(job, seconds)), "errand", ident, key)
        answered = self._asked[ident] = asyncio.get_running_loop().create_future()
        params = (ident, key, job.case.call.id, self._store.chain, seconds, sealed)
        try:
            await self._store.write(Statement(ASK.format(now=self._store.now), params))
            answer = await self._await_answer(key, ident, answered, seconds)
        except asyncio.CancelledError:
            self._store.post(*(Statement(WITHDRAW, (ident, state)) for state in ("waiting", "taken")))
            raise
        finally:
            del self._asked[ident]
        self._store.post(Statement(FORGET, (ident,)))
        if answer.result is None:
            raise error_of(answer)
        return answer.result

    async def _await_answer(
        self, key: str, ident: str, answered: "asyncio.Future[ErrandAnswer]", seconds: float
    ) -> ErrandAnswer:
        try:
            async with asyncio.timeout(seconds):
                return await answered
        except TimeoutError:
            try:
                await self._store.write(Statement(WITHDRAW, (ident, "waiting"), expect=1))
            except (Conflict, DependencyUnavailable):
                self._store.post(Statement(WITHDRAW, (ident, "taken")))
                raise CallTimeout(f"{key} did not answer within {seconds:.3g} s. {MAY_HAVE_RUN}") from None
            raise DependencyUnavailable(
                f"{key} runs on one gateway at a time, and {NOT_BEGUN}", retry_after=5
            ) from None

    # -- news

    async def hear(self, idents: Collection[str] | None) -> None:
        """Something became of these errands, or of any."""
        if idents is None:
            await self.look()
            return
        known = [one for one in idents if one in self._asked or one in self._doing]
        others = [one for one in idents if one not in self._asked and self._alone.held]
        for row in await self._read({*known, *others}):
            self._take_news(row)

    async def look(self) -> None:
        """Find what nobody was told of: errands of the sources that run here, and what became of our own."""
        waiting = await self._read(self._asked)
        if self._alone.held and not self._over:
            marks = ", ".join("?" * len(self._alone.held))
            waiting += await self._select(f"state = 'waiting' AND source IN ({marks})", self._alone.held)
        for row in waiting:
            self._take_news(row)
            if row.state == "taken" and row.id in self._asked and not self._is_alive(row.taken_by):
                await self._lose(row)

    async def _read(self, idents: Collection[str]) -> list[ErrandRow]:
        return await self._select(f"id IN ({', '.join('?' * len(idents))})", idents) if idents else []

    async def _select(self, where: str, params: Iterable[str]) -> list[ErrandRow]:
        sql = f"SELECT id, source, taken_by, state, body, answer FROM errands WHERE {where}"
        return [ErrandRow(*row) for row in await self._store.read(sql, tuple(params))]

    def _take_news(self, row: ErrandRow) -> None:
        if row.id in self._asked:
            self._tell(row)
        if row.state == "waiting" and row.source in self._alone.held and row.id not in self._doing:
            self._begin(row)
        elif row.state in ("withdrawn", "lost") and row.id in self._doing:
            self._doing[row.id].cancel()

    def _tell(self, row: ErrandRow) -> None:
        answered = self._asked[row.id]
        if answered.done() or row.state not in ("done", "refused"):
            return
        try:
            answer = decode_answer(self._key.open(row.answer or b"", "answer", row.id))
        except (VaultFault, msgspec.DecodeError):
            unread = row.state == "refused"
            told: type[GatewayError] = DependencyUnavailable if unread else OutcomeUnknown
            said = f"cannot read what {self._store.chain} asks for. Give both the same master key"
            shut = f"The gateway {row.taken_by} {said if unread else 'gave an answer that cannot be read'}"
            answer = answer_of(told(f"{shut}. {'Nothing was sent' if unread else MAY_HAVE_RUN}"))
        answered.set_result(answer)

    async def _lose(self, row: ErrandRow) -> None:
        """The gateway that took it is gone; from now on nobody can say that it ended."""
        try:
            await self._store.write(Statement(LOSE, (row.id, row.taken_by), expect=1))
        except Conflict:
            return
        answered = self._asked.get(row.id)
        if answered is not None and not answered.done():
            gone = OutcomeUnknown(
                f"The gateway {row.taken_by} stopped while it ran this call. {MAY_HAVE_RUN}"
            )
            answered.set_result(answer_of(gone))

    # -- what others ask for

    def _begin(self, row: ErrandRow) -> None:
        if self._over:
            return
        task = self._doing[row.id] = self._tasks.start(self._do(row), row.id)
        task.add_done_callback(lambda _task: self._doing.pop(row.id, None))

    async def _do(self, row: ErrandRow) -> None:
        me, now = self._store.chain, self._store.now
        try:
            await self._store.write(
                Statement(TAKE.format(now=now), (me, row.id, f"{PREFIX}{row.source}", me), expect=1)
            )
        except (Conflict, DependencyUnavailable):
            return
        try:
            body = decode_body(self._key.open(row.body, "errand", row.id, row.source))
        except (VaultFault, msgspec.DecodeError):
            log.error("A call of another gateway cannot be read: it has another master key, or was altered")
            await self._end(row.id, "refused", None)
            return
        answer = await self._perform(row.source, body)
        await self._end(row.id, "done", self._key.seal(msgspec.msgpack.encode(answer), "answer", row.id))

    async def _perform(self, key: str, body: ErrandBody) -> ErrandAnswer:
        try:
            async with asyncio.timeout(body.seconds):
                return ErrandAnswer(result=await self._answer(key, body))
        except TimeoutError:
            return answer_of(
                CallTimeout(f"The tool did not answer within {body.seconds:.3g} s. {MAY_HAVE_RUN}")
            )
        except GatewayError as error:
            return answer_of(error)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
            stopped = OutcomeUnknown(
                f"The call was taken back, or the gateway stopped, while it ran. {MAY_HAVE_RUN}"
            )
            return answer_of(stopped)
        except Exception:  # the boundary: a fault in a source must not leave its call without an end
            log.exception("The source %s broke on a call", key, extra={"call": body.call})
            return answer_of(OutcomeUnknown(f"The source {key} broke while the tool ran. {MAY_HAVE_RUN}"))

    async def _answer(self, key: str, body: ErrandBody) -> Result:
        keeper = self._keepers[key]
        keeper.check()
        tool = self._shelf.catalog.find(body.tool)
        if tool is None or (tool.source, tool.pin) != (key, body.pin):
            raise Forbidden(CHANGED)
        deadline = self._clock.monotonic() + body.seconds
        return await keeper.answer(Job(case=case_of(body, tool), deadline=deadline, limit=body.limit))

    async def _end(self, ident: str, state: str, answer: bytes | None) -> None:
        with suppress(Conflict, DependencyUnavailable):
            await self._store.write(Statement(END, (state, answer, ident, self._store.chain), expect=1))

    async def purge(self) -> None:
        """Forget what a gateway that is gone left behind."""
        await self._store.write(Statement(PURGE.format(now=self._store.now), (GONE_AFTER,)))

    async def drain(self, seconds: float) -> None:
        """Take nothing more, and let end what was taken while there is time."""
        self._over = True
        await self._tasks.wait(seconds)
        await self._tasks.cancel()
