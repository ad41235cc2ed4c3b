"""The stages that perform a case: claim, answer, shape, settle. Only these reach a source."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Protocol

import msgspec

from agent_gate.approval.rows import letting_go
from agent_gate.calls import entries
from agent_gate.calls.in_force import InForce
from agent_gate.calls.sweeper import Sweeper
from agent_gate.core.call import Case, Outcome, Result, State, hash_arguments
from agent_gate.core.ports import Clock, Job
from agent_gate.errors import (
    ApprovalDenied,
    CallTimeout,
    DependencyUnavailable,
    GatewayError,
    OutcomeUnknown,
)
from agent_gate.observe import failpoint
from agent_gate.observe.log import REQUESTS
from agent_gate.observe.metrics import MOST_SERIES, Meter, Metrics
from agent_gate.observe.redact import Redactor, secret_values
from agent_gate.observe.trace import Tracer, trace_of
from agent_gate.results.kept import keep, upstream_said
from agent_gate.results.seen import DAY, is_kept, keep_seen
from agent_gate.store.statement import Conflict, InDoubt, Statement, Store

log = logging.getLogger("agent_gate.calls")
requests = logging.getLogger(REQUESTS)
LEVELS = {State.COMPLETED: logging.DEBUG, State.UNKNOWN: logging.WARNING}
COMPLETED = State.COMPLETED
MAY_HAVE_RUN = "It may have run: check the service before you try again"
REMEMBER_KEY = (
    "INSERT INTO idempotency (caller, tool, key, call, arguments_hash, expires_at) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (caller, tool, key) DO UPDATE SET call = excluded.call, arguments_hash = excluded.arguments_hash, "
    "expires_at = excluded.expires_at WHERE idempotency.expires_at <= ?"
)


class Performance(msgspec.Struct, eq=False):
    """One case while it is performed, and what became of it.

    `marks` says when each part of it began, `at_source` how many seconds its source took.
    """

    case: Case
    asked: bool
    marks: dict[str, float]
    result: Result | None = None
    error: GatewayError | None = None
    outcome: Outcome | None = None
    deadline: float = 0.0
    at_source: float | None = None
    task: "asyncio.Task[object] | None" = None
    timed_out: bool = False
    cancelled: bool = False


PerformStage = Callable[[Performance], Awaitable[object] | None]
"""Does its part at once, or returns what has to be waited for."""


class Answering(Protocol):
    """One source, as `perform` sees it."""

    def check(self) -> None:
        """Raise `DependencyUnavailable` where it cannot be asked now."""
        ...

    def answer(self, job: Job) -> Awaitable[Result]: ...


class Claim:
    """Win the right to dispatch: one durable row, which nobody else can write for this call."""

    def __init__(self, store: Store, clock: Clock, ahead: entries.Ahead) -> None:
        self._store, self._clock, self._ahead = store, clock, ahead

    def stage(self, performance: Performance) -> Awaitable[object] | None:
        case, asked = performance.case, performance.asked
        if failpoint.armed:
            failpoint.reach("before_dispatch_commit")
        performance.marks["dispatched"] = now = self._clock.now()
        if case.tool.definition.record == "behind" and not asked and self._goes_ahead(case):
            self._ahead.add(case, now)
            return None
        statement = entries.dispatching(case, now, asked=asked)
        if asked and self._store.shared:
            written = self._store.write(letting_go(case.call.id, self._store.chain), statement)
        elif case.call.idempotency_key and not asked:
            written = self._store.write(remember_key(case, now), statement)
        else:
            written = self._store.write(statement)
        return reach_after(written, "after_dispatch_commit") if failpoint.armed else written

    def _goes_ahead(self, case: Case) -> bool:
        """Whether the call is trusted to run before its row is written; one with a key has to be found by the next."""
        return case.tool.traits.read_only and not case.call.idempotency_key and not self._store.crowded


async def reach_after(work: Awaitable[object], place: str) -> None:
    await work
    failpoint.reach(place)


def remember_key(case: Case, now: float) -> Statement:
    """The row that makes a second call with this key find the first; a key that has expired is free again."""
    call = case.call
    named = (call.caller.name, case.tool.id, call.idempotency_key)
    return Statement(REMEMBER_KEY, (*named, call.id, hash_for_key(case), now + 86_400, now), expect=1)


def hash_for_key(case: Case) -> str:
    """What a second call with the same key must repeat: the arguments, whatever the world looks like meanwhile."""
    return hash_arguments(case.call.arguments) if case.facts else case.arguments_hash


class AskSource:
    """Let the source execute once, under a deadline that starts now."""

    def __init__(
        self, sources: Mapping[str, Answering], sweeper: Sweeper, clock: Clock, in_force: InForce
    ) -> None:
        self._sources, self._watched, self._clock, self._in_force = sources, sweeper.watched, clock, in_force

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    def stage(self, performance: Performance) -> Awaitable[object] | None:
        """Do not reach for a source that is known to be down, nor for a call that is not wanted any more."""
        case = performance.case
        began = self._clock.monotonic()
        limit = case.tool.definition.timeout or self._in_force.terms.settings.limits.timeout
        wait = min(limit, case.call.timeout) if case.call.timeout else limit
        try:
            source = self._sources[case.tool.source]
            source.check()
            if performance.cancelled:
                raise taken_back()
            if self._clock.now() - performance.marks["dispatched"] > wait:
                raise CallTimeout(f"The call could not be recorded within {wait:g} s. Nothing was sent")
        except GatewayError as error:
            performance.error = error
            return None
        performance.deadline = began + wait
        return self._answer(performance, source, limit, began)

    async def _answer(self, performance: Performance, source: Answering, limit: float, began: float) -> None:
        case = performance.case
        performance.task = asyncio.current_task(self._loop)
        self._watched.add(performance)
        try:
            performance.result = await source.answer(
                Job(case=case, deadline=performance.deadline, limit=limit)
            )
        except GatewayError as error:
            performance.error = without_secrets(error, case)
        except asyncio.CancelledError:
            performance.error = self._judge_cancellation(performance, performance.deadline - began)
        except Exception:  # the boundary: a fault in a source must not leave its call without an end
            log.exception("The source %s broke on a call", case.tool.source, extra={"call": case.call.id})
            performance.error = OutcomeUnknown(
                f"The source {case.tool.source} broke while the tool ran; the gateway's log says why. {MAY_HAVE_RUN}"
            )
        finally:
            self._watched.discard(performance)
            performance.task = None
        performance.marks["replied"] = self._clock.now()
        performance.at_source = self._clock.monotonic() - began
        if failpoint.armed:
            failpoint.reach("after_upstream_reply")

    def _judge_cancellation(self, performance: Performance, waited: float) -> GatewayError:
        """What a cancellation means: our own deadline, the caller's wish, or the process stopping."""
        assert performance.task is not None
        performance.task.uncancel()
        if performance.timed_out:
            return CallTimeout(f"The tool did not answer within {waited:g} s. {MAY_HAVE_RUN}")
        why = (
            "The caller cancelled while the tool ran"
            if performance.cancelled
            else "The gateway stopped while the tool ran"
        )
        return OutcomeUnknown(f"{why}. {MAY_HAVE_RUN}")


def uncancel() -> None:
    """The tool ran: this task goes on until the record says so."""
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()


def taken_back() -> GatewayError:
    """What becomes of a call that its caller cancelled in time."""
    return ApprovalDenied("Withdrawn by the caller before the tool ran. Nothing was sent")


def without_secrets(error: GatewayError, case: Case) -> GatewayError:
    """An upstream may repeat what it was sent; an argument declared secret stays one."""
    secret = case.tool.definition.secret
    if secret:
        error.message = Redactor(secret_values(case.call.arguments, secret)).known(error.message)
    return error


class Settle:
    """Turn what happened into the outcome and record it; the row rides on the next commit."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ahead: entries.Ahead,
        metrics: Metrics,
        redactor: Redactor,
        in_force: InForce,
    ) -> None:
        self._store, self._clock, self._ahead = store, clock, ahead
        self._metrics, self._redactor, self._in_force = metrics, redactor, in_force
        self._meters: dict[tuple[str, str, str, str, str], Meter] = {}

    def stage(self, performance: Performance) -> Awaitable[object] | None:
        case, sender = performance.case, performance.case.call.sender
        outcome = performance.outcome = self._outcome(performance)
        now = self._clock.now()
        if failpoint.armed:
            failpoint.reach("before_complete_commit")
        whole = self._ahead.remove(case.call.id)
        row = entries.settled(case, outcome, now, performance.marks, self._redactor, whole=whole)
        nobody_waits = sender is not None and not sender.connected
        if nobody_waits or performance.asked or case.call.idempotency_key:
            self._store.post(row, keep_outcome(case, outcome, now))
        else:
            self._store.post(row)
        if self._in_force.terms.settings.results.keep != "none":
            self._keep_seen(case, outcome, now)
        seconds = now - performance.marks.get("received", now)
        if outcome.state is not COMPLETED or requests.isEnabledFor(logging.INFO):
            self._log(case, outcome, seconds)
        self._count(performance, outcome, seconds)
        if failpoint.armed and failpoint.chosen("after_complete_commit"):
            return reach_after(self._store.flush(), "after_complete_commit")
        return None

    def end_doubtful(self, performance: Performance) -> None:
        """Where the claim turns out to be on record, it must not look as if the call still ran; where it is not, this is
        the call's only row."""
        assert performance.outcome is not None
        now = self._clock.now()
        marks, case = performance.marks, performance.case
        self._store.post(entries.settled(case, performance.outcome, now, marks, self._redactor, whole=True))

    def _outcome(self, performance: Performance) -> Outcome:
        call_id, error, result = performance.case.call.id, performance.error, performance.result
        if error is not None:
            state = State.UNKNOWN if isinstance(error, OutcomeUnknown) else State.FAILED
            return Outcome(call_id=call_id, state=state, error=error)
        assert result is not None
        if result.is_error:
            return Outcome(
                call_id=call_id,
                state=State.FAILED,
                result=result,
                error=upstream_said(result, performance.case.tool.source),
            )
        return Outcome(call_id=call_id, state=COMPLETED, result=result)

    def _keep_seen(self, case: Case, outcome: Outcome, now: float) -> None:
        """Keep what people may look at; it rides on the row's commit."""
        kept = self._in_force.terms.settings.results
        if is_kept(kept.keep, outcome.state):
            statement = keep_seen(case, outcome, self._redactor, now + kept.keep_days * DAY)
            if statement is not None:
                self._store.post(statement)

    def _log(self, case: Case, outcome: Outcome, seconds: float) -> None:
        """One event a call; of those that went well the request's own line says enough."""
        told = requests if outcome.state is COMPLETED else log
        level = LEVELS.get(outcome.state, logging.INFO)
        fields = {
            "call": case.call.id,
            "trace_id": trace_of(case.call.id, case.call.trace).trace_id,
            "agent": case.call.caller.name,
            "surface": case.call.surface,
            "tool": case.tool.wire,
            "seconds": round(seconds, 6),
            "state": str(outcome.state),
            "code": outcome.error.code if outcome.error is not None else None,
        }
        told.log(level, "Call ended", extra=fields)

    def _count(self, performance: Performance, outcome: Outcome, seconds: float) -> None:
        case = performance.case
        tool = case.tool
        key = (tool.source, tool.wire, case.call.surface, case.decision.effect, outcome.state)
        meter = self._meters.get(key)
        if meter is None:
            if len(self._meters) >= MOST_SERIES:
                self._meters.clear()
            meter = self._meters[key] = self._metrics.meter(*key)
        size = len(outcome.result.body) if outcome.result is not None else 0
        meter.count(seconds, performance.at_source, size)


def traced(tracer: Tracer, clock: Clock) -> PerformStage:
    """Tell the tracer how the call went; the last stage, where there is one."""

    def stage(performance: Performance) -> None:
        if performance.outcome is not None:
            tracer.performed(performance.case, performance.outcome, performance.marks, clock.now())

    return stage


def keep_outcome(case: Case, outcome: Outcome, now: float) -> Statement:
    shown = entries.text(entries.shown_arguments(case))
    return keep(case.call, case.tool.wire, case.signature, shown, outcome, now)


class Waiting:
    """Futures by call id. The record is the truth; this only wakes those who are here."""

    def __init__(self) -> None:
        self._futures: defaultdict[str, set[asyncio.Future[Outcome]]] = defaultdict(set)

    async def await_outcome(self, call_id: str, seconds: float | None) -> Outcome | None:
        """The outcome once it is told, or None when `seconds` pass first."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._futures[call_id].add(future)
        try:
            told, _ = await asyncio.wait([future], timeout=seconds)
            return future.result() if told else None
        finally:
            self._drop(call_id, future)

    def awaited(self, call_ids: Collection[str] | None) -> list[str]:
        """Those of these calls, or of all, that somebody here waits for."""
        return [one for one in self._futures if call_ids is None or one in call_ids]

    def tell(self, outcome: Outcome, call_id: str = "") -> int:
        """Wake all who wait for this call, or for `call_id`, which became it; how many there were."""
        if not self._futures:
            return 0
        waiting = self._futures.pop(call_id or outcome.call_id, ())
        for future in waiting:
            if not future.done():
                future.set_result(outcome)
        return len(waiting)

    def _drop(self, call_id: str, future: asyncio.Future[Outcome]) -> None:
        futures = self._futures.get(call_id)
        if futures is not None:
            futures.discard(future)
            if not futures:
                del self._futures[call_id]


class Performing:
    """Runs the stages and tells the outcome; `running` are the cases that are performed now, by call id."""

    def __init__(
        self,
        stages: Sequence[PerformStage],
        waiting: Waiting,
        end_doubtful: Callable[[Performance], None],
        *,
        shared: bool = False,
    ) -> None:
        """`shared`: other gateways may perform what was approved here. `end_doubtful` records the end of a call whose
        claim may be on record though nothing was sent."""
        self._stages, self._waiting, self._shared = stages, waiting, shared
        self._end_doubtful = end_doubtful
        self.running: dict[str, Performance] = {}

    async def perform(self, case: Case, received: float, *, asked: bool) -> Outcome:
        """Where the claim fails nothing was sent, and the outcome says so without a row of its own.

        `Conflict` passes through for a call that nobody was asked about: its idempotency key belongs to another. So it
        does for one that was approved and that another gateway took over: that one tells how it ends.
        `DependencyUnavailable` does for one that was approved: the record must say that it will not run.
        """
        performance = Performance(case, asked, {"received": received})
        call_id = case.call.id
        self.running[call_id] = performance
        try:
            for stage in self._stages:
                waiting = stage(performance)
                if waiting is not None:
                    await waiting
        except Conflict:
            if not asked or self._shared:
                raise
            error = OutcomeUnknown(f"This call was dispatched before. {MAY_HAVE_RUN}")
            performance.outcome = Outcome(call_id=call_id, state=State.UNKNOWN, error=error)
        except DependencyUnavailable as error:
            if asked:
                raise
            performance.outcome = Outcome(call_id=call_id, state=State.FAILED, error=error)
            if isinstance(error, InDoubt):
                self._end_doubtful(performance)
        finally:
            del self.running[call_id]
        assert performance.outcome is not None
        self._waiting.tell(performance.outcome)
        return performance.outcome
