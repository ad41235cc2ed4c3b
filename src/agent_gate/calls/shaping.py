"""Fits results to callers: as they are, or stored whole with an envelope that says what is in them."""

import asyncio
import logging
from collections.abc import Awaitable

from msgspec.structs import replace

from agent_gate.calls.in_force import InForce
from agent_gate.calls.perform import Performance, PerformStage, uncancel
from agent_gate.core.call import Case, Result
from agent_gate.errors import DependencyUnavailable, Internal, ViewFailed
from agent_gate.observe.metrics import Metrics
from agent_gate.results.artifacts import Artifacts
from agent_gate.results.budget import DEFAULT_BUDGET, Fits, within
from agent_gate.results.envelope import Artifact, ResultEnvelope, unkept, unread, whole
from agent_gate.results.jobs import SummaryJob
from agent_gate.results.naming import is_seen, name_handle
from agent_gate.results.readers import Readers
from agent_gate.results.reading import MEDIA_TYPES, Stored

log = logging.getLogger("agent_gate.calls")
LARGE = 32 * 1024
"""A larger result takes longer to be summarised than other calls can wait."""
STOPPED = "the gateway stopped before it could be read."
UNREADABLE = "The tool ran, but the gateway cannot read its result: check the service before you try again"
BYTES_PER_TOKEN = 4
UNSET = (None, None, None)


def shape(shaper: "Shaper | None", metrics: Metrics | None = None) -> PerformStage:
    """Fit the result to the caller's budget."""

    async def fit(performance: Performance, shaper: Shaper, result: Result) -> None:
        try:
            performance.result = shaped = await shaper(performance.case, result)
        except asyncio.CancelledError:
            uncancel()
            performance.result = shaped = shaper.store_unread(performance.case, result)
        except Exception:  # the boundary: the tool ran, whatever its result looks like
            log.exception("A result could not be shaped", extra={"call": performance.case.call.id})
            performance.error = Internal(UNREADABLE)
            return
        saved = (len(result.body) - len(shaped.body)) // BYTES_PER_TOKEN
        if saved > 0 and metrics is not None:
            metrics.tokens_saved.add(performance.case.tool.source, by=saved)

    def stage(performance: Performance) -> Awaitable[None] | None:
        result = performance.result
        if shaper is None or result is None or shaper.leaves(performance.case):
            return None
        return fit(performance, shaper, result)

    return stage


class Shaper:
    """`gateway` calls always get an envelope; others only above a budget, and `full` ones only where one is set."""

    def __init__(
        self, artifacts: Artifacts, fits: Fits, in_force: InForce, readers: Readers | None = None
    ) -> None:
        self._artifacts, self._fits, self._in_force = artifacts, fits, in_force
        self._readers = readers or Readers(fits)

    def budget(self, case: Case) -> int | None:
        """The smallest budget that anybody set; a mode made for small contexts always has one."""
        everybodys = self._in_force.terms.settings.results.budget
        given = (case.tool.definition.budget, case.call.caller.budget, everybodys)
        asked = [budget for budget in given if budget is not None]
        return min(asked, default=None if case.call.mode == "full" else DEFAULT_BUDGET)

    def leaves(self, case: Case) -> bool:
        everybodys = self._in_force.terms.settings.results.budget
        given = (case.tool.definition.budget, case.call.caller.budget, everybodys)
        return given == UNSET and case.call.mode == "full"

    async def __call__(self, case: Case, result: Result) -> Result:
        budget, gateway = self.budget(case), case.call.mode == "gateway"
        if budget is None or case.tool.definition.method or result.unfinished:
            return result
        if result.is_error and not gateway:
            return result
        fits = within(result, budget, self._fits)
        if case.tool.definition.kept and not gateway and (fits or is_seen(result)):
            return await self._store_named(case, result)
        if not fits:
            envelope = await self._store(case, result)
        elif gateway:
            envelope = await self._store_parts(case, result, whole(result))
        else:
            return result
        return Result(envelope.encode(), "json", result.is_error)

    async def _store_named(self, case: Case, result: Result) -> Result:
        """The result as it is, and the handle that it is kept under; without one where it cannot be stored."""
        try:
            return name_handle(result, await self._artifacts.save(case.call, result))
        except DependencyUnavailable:
            return result

    def store_unread(self, case: Case, result: Result) -> Result:
        """The envelope of a result that there was no time to read; it is stored with the row of its call."""
        artifact = self._artifacts.post(case.call, result)
        return Result(unread(result, artifact, STOPPED).encode(), "json", result.is_error)

    async def _store(self, case: Case, result: Result) -> ResultEnvelope:
        """The envelope of a result once it is stored whole, or of one that cannot be: the tool ran either way."""
        try:
            artifact = await self._artifacts.save(case.call, result)
        except DependencyUnavailable as error:
            described = self._artifacts.describe(case.call, result)
            return unkept(await self._summarise(case, result, described), error.message)
        return await self._summarise(case, result, artifact)

    async def _store_parts(self, case: Case, result: Result, envelope: ResultEnvelope) -> ResultEnvelope:
        """A small result is stored only where it has more than its summary can say, such as an image."""
        if not envelope.views:
            return envelope
        try:
            return replace(envelope, artifacts=(await self._artifacts.save(case.call, result),))
        except DependencyUnavailable as error:
            return unkept(envelope, error.message)

    async def _summarise(self, case: Case, result: Result, artifact: Artifact) -> ResultEnvelope:
        job, stored = (
            SummaryJob(artifact, result.kind, result.is_error),
            Stored(MEDIA_TYPES[result.kind], result.body),
        )
        if len(result.body) <= LARGE:
            return self._readers.now(job, [stored])
        lane = ("results", case.call.caller.name)
        try:
            return await self._readers.work(lane, job, [stored])
        except (ViewFailed, DependencyUnavailable) as error:
            return unread(result, artifact, error.message)
