"""Keeps one source connected: connect, watch, and when it is lost, try again later."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence

from agent_gate.core.call import Result
from agent_gate.core.credentials import CallerSignInNeeded, SignInNeeded
from agent_gate.core.facts import check_facts
from agent_gate.core.ports import Clock, Job, Plan, Source
from agent_gate.core.source_state import SourceState, Status
from agent_gate.core.tasks import ends_within
from agent_gate.core.tool import Definition, Tool
from agent_gate.errors import (
    CallTimeout,
    DependencyUnavailable,
    Forbidden,
    GatewayError,
    OutcomeUnknown,
    Unauthorized,
)
from agent_gate.observe.redact import Redact
from agent_gate.sources.state import (
    HEALTHY_AFTER,
    Circuit,
    ConnectionGone,
    delay,
    sentence,
)

log = logging.getLogger("agent_gate.sources")
IDLE_SECONDS = 600.0
IN_WORDS = {Status.NEEDS_AUTH: "without a credential"}
CONNECT_SECONDS = 60.0
Publish = Callable[[Plan, Sequence[Definition] | None, bool], None]
Serves = Callable[[Tool], bool]
SOON_SECONDS = 5.0
BROKEN = frozenset({Status.FAILED, Status.NEEDS_AUTH})
READY = Status.READY
GONE_SECONDS = 1.0
FATAL = (SystemExit, KeyboardInterrupt)
"""What would end the process, if the code of a source raised it."""
CHANGED = "The tool changed while this call waited for its source, so nothing was sent. Call it again"


class Keeper:
    """One task per source owns its life. Calls only send; they never connect or close."""

    def __init__(
        self,
        plan: Plan,
        clock: Clock,
        publish: Publish,
        *,
        known: bool,
        redact: Redact = str,
        serves: Serves = lambda _tool: True,
    ) -> None:
        self.plan, self._clock, self._publish, self._redact = plan, clock, publish, redact
        self.known, self._serves = known, serves
        self._wanted = asyncio.Event()
        self._hurry = asyncio.Event()
        self._again = asyncio.Event()
        self._waiting = 0
        self._last_failure = ""
        self._last_error = ""
        self._last_error_at: float | None = None
        self._broken_since: float | None = None
        self._ready = asyncio.Event()
        self._circuit = Circuit()
        self._failures = 0
        self._used = 0.0
        self._running = 0
        self._over = False
        self._coming_back = False
        self._served = False
        self._refused: SignInNeeded | None = None
        self._left_out: tuple[str, ...] = ()
        self.restarts = 0
        self._status, self._since = self._initial(), clock.now()
        self._reason = plan.needs_auth if self._status is Status.NEEDS_AUTH else ""
        self._next_try: float | None = None
        self._tools = 0
        self.tried = asyncio.Event()
        if known or self._status is not Status.IDLE:
            self.tried.set()

    def _initial(self) -> Status:
        if not self.plan.enabled:
            return Status.DISABLED
        return Status.NEEDS_AUTH if self.plan.needs_auth else Status.IDLE

    @property
    def key(self) -> str:
        return self.plan.source.key

    def state(self) -> SourceState:
        source = self.plan.source
        unwell = source.unwell or self._missing() if self._status is Status.READY else None
        status = Status.DEGRADED if unwell else self._status
        failure = self._last_failure if self._fails_again else ""
        return SourceState(
            key=source.key,
            namespace=source.namespace,
            kind=source.kind,
            title=source.title,
            status=Status.FAILED if failure else status,
            reason=self._reason or failure or self._redact(unwell or ""),
            since=self._since,
            broken_since=self._broken_since,
            last_error=self._last_error,
            last_error_at=self._last_error_at,
            next_try=self._next_try,
            tools=self._tools,
        )

    @property
    def _fails_again(self) -> bool:
        """Whether it is tried once more after a failure: until that works, the failure is what is known."""
        return self._status is Status.CONNECTING and self._failures > 0

    def _missing(self) -> str:
        return "; ".join(self._left_out)

    @property
    def counts_as_ready(self) -> bool:
        """Whether nobody has to wait for it: it is disabled, or connected with at most names that are taken, or was
        tried where that is enough."""
        if self._status is Status.DISABLED or (self._status is Status.READY and not self.plan.source.unwell):
            return True
        return self.plan.ready_when_tried and (self._status is Status.READY or self.restarts > 0)

    def note_tools(self, count: int, left_out: tuple[str, ...] = ()) -> None:
        """How many of its tools are in the catalog, and which of them are not because their names are taken."""
        self._tools, self._left_out = count, left_out

    def wake(self) -> None:
        """Try now, whatever the backoff says; one that is connected and unwell is connected anew."""
        self._hurry.set()
        self._wanted.set()
        if self.state().status is Status.DEGRADED:
            self._again.set()

    def restart(self) -> None:
        """Begin anew, whatever the state; calls that are under way fail as with any lost connection."""
        self.wake()
        self._again.set()

    def cannot_connect(self) -> str:
        """Why no try will bring this source back; empty where one may."""
        if not self.plan.enabled:
            return f"{self.key} is disabled in the configuration. Enable it there"
        return self.plan.needs_auth

    def rest(self, reason: str) -> None:
        """Stay away, since a person wants it so; its task has ended."""
        self._move(Status.DISABLED, reason)

    async def run(self) -> None:
        """Live until cancelled. A fault in a source is its reason, never ours."""
        if self._status in (Status.DISABLED, Status.NEEDS_AUTH):
            return
        try:
            await self._live()
        finally:
            self._over = True
            self.tried.set()
            self._release_waiting()

    async def _live(self) -> None:
        while True:
            if self.plan.on_demand and self.known and not self._waiting and not self._watched:
                self._move(Status.IDLE)
                await self._wanted.wait()
            self._wanted.clear()
            try:
                await self._run_session()
                self._failures = 0
            except (Unauthorized, SignInNeeded) as error:
                await self._wait_for_sign_in(error.message)
            except (GatewayError, OSError, EOFError, TimeoutError, ValueError) as error:
                await self._failed(error)
            except (Exception, *FATAL) as error:
                log.exception("A source failed in a way nobody expected", extra={"source": self.key})
                await self._failed(error)

    async def _run_session(self) -> None:
        """One connection from its beginning to its end."""
        self._move(Status.CONNECTING, level=logging.DEBUG)
        async with self.plan.source as source:
            definitions = await self._connect(source)
            self._publish(self.plan, definitions, True)
            self.known = True
            self.tried.set()
            self._last_failure = ""
            self._circuit.worked()
            self._coming_back = self._served = False
            self._move(Status.READY)
            self._ready.set()
            began = self._clock.monotonic()
            self._used = began
            try:
                await self._watch()
            finally:
                self._ready.clear()
                self._coming_back = True
                if self._served or self._clock.monotonic() - began > HEALTHY_AFTER:
                    self._failures = 0
                if not self.plan.on_demand:
                    self._publish(self.plan, None, False)

    async def _connect(self, source: Source) -> Sequence[Definition]:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await source.connect()
        except Exception:
            if self._coming_back and not self.plan.on_demand:
                self._release_waiting()
            self._coming_back = False
            raise

    def _release_waiting(self) -> None:
        """Whoever waits for a connection is told that there will be none."""
        self._ready.set()
        self._ready.clear()

    @property
    def _watched(self) -> bool:
        return self.plan.source.watched

    async def _watch(self) -> None:
        """Return when the connection is no longer wanted, raise when it is lost."""
        self._again.clear()
        self._refused = None
        watching = asyncio.ensure_future(self._hear())
        again = asyncio.ensure_future(self._again.wait())
        often = min(IDLE_SECONDS / 10, 30.0) if self.plan.on_demand else None
        try:
            while not watching.done():
                await asyncio.wait({watching, again}, timeout=often, return_when=asyncio.FIRST_COMPLETED)
                if self._refused is not None:
                    raise self._refused
                if again.done() or self._idle():
                    return
            watching.result()
            if not self.plan.on_demand:
                raise DependencyUnavailable("The connection ended")
        finally:
            again.cancel()
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError, GatewayError, OSError):
                await watching

    async def _hear(self) -> None:
        """Watch. In a task of its own, what would end the process would do so before anybody could catch it."""
        try:
            await self.plan.source.watch()
        except FATAL as error:
            raise DependencyUnavailable(f"The source raised {type(error).__name__}") from error

    def _idle(self) -> bool:
        unused = not self._running and not self._watched
        return self.plan.on_demand and unused and self._clock.monotonic() - self._used > IDLE_SECONDS

    async def _wait_for_sign_in(self, reason: str) -> None:
        """A credential that is refused is refused again: nothing is tried before a person, or a reload, says so."""
        self.restarts += 1
        self._coming_back = False
        self._last_failure = self._redact(reason)
        self._move(Status.NEEDS_AUTH, self._last_failure, logging.WARNING)
        self._publish(self.plan, None, False)
        self.tried.set()
        self._release_waiting()
        self._hurry.clear()
        await self._hurry.wait()

    async def _failed(self, error: BaseException) -> None:
        reason = (
            error.message if isinstance(error, GatewayError) else f"{type(error).__name__}: {error}"[:300]
        )
        wait = delay(self._failures)
        self._failures += 1
        self.restarts += 1
        self._next_try = self._clock.now() + wait
        before, self._last_failure = self._last_failure, self._redact(reason)
        # What a program prints changes with every try, such as the name of its log.
        again = sentence(self._last_failure) == sentence(before)
        self._move(Status.FAILED, self._last_failure, logging.DEBUG if again else logging.ERROR)
        self._publish(self.plan, None, self.plan.on_demand and self.known)
        self.tried.set()
        # Calls that wait for the connection are no reason to hurry: a busy source would never be left in peace.
        self._hurry.clear()
        await ends_within(wait, self._hurry.wait())

    def _move(self, status: Status, reason: str = "", level: int = logging.INFO) -> None:
        if (status, reason) != (self._status, self._reason):
            fields = {"source": self.key, **({"reason": reason} if reason else {})}
            log.log(level, "Source is %s", IN_WORDS.get(status, status), extra=fields)
        if status is not Status.FAILED:
            self._next_try = None
        self._status, self._reason, self._since = status, reason, self._clock.now()
        self._note_trouble()

    def _note_trouble(self) -> None:
        """Since when it is broken: from the first of several failures on, until it works or nobody wants it."""
        if self._status in BROKEN:
            self._broken_since = self._broken_since or self._since
            self._last_error, self._last_error_at = self._reason, self._since
        elif self._status is not Status.CONNECTING:
            self._broken_since = None

    def check(self) -> None:
        """Raise where a call cannot be sent now. A first connection under way is worth waiting for."""
        if self._status is not READY and not self._worth_waiting():
            raise self._away()
        if self._circuit.failures and (wait := self._circuit.wait(self._clock.monotonic())):
            raise DependencyUnavailable(
                f"{self.key} failed too often; it is tried again in {wait:.0f} s", retry_after=wait
            )

    def _away(self) -> DependencyUnavailable:
        """Why nothing can be sent to it in the state that it is in."""
        why = f": {sentence(self._reason)}" if self._reason else ""
        said = f"{self.key} is {self._status}{why}. Nothing was sent"
        if self._status is Status.NEEDS_AUTH:
            return SignInNeeded(said)
        return DependencyUnavailable(said, retry_after=max(1.0, (self._next_try or 0) - self._clock.now()))

    def _worth_waiting(self) -> bool:
        """Whether a connection is near: a first one, one on demand, or that of a source that was there until just now."""
        if self._coming_back and self._status in (Status.FAILED, Status.CONNECTING):
            return self._next_try is None or self._next_try - self._clock.now() <= SOON_SECONDS
        waiting = self._status in (Status.IDLE, Status.CONNECTING)
        return waiting and (self.plan.on_demand or not self._failures)

    async def answer(self, job: Job) -> Result:
        """Let the source execute, connecting first where it connects on demand."""
        self._running += 1
        try:
            if not self._ready.is_set():
                await self._wait_until_connected(job.deadline)
                if not self._serves(job.case.tool):
                    raise Forbidden(CHANGED)
            if self.plan.witness is not None or job.case.facts:
                check_facts(self.plan.witness, job.case)
            try:
                result = await self.plan.source.answer(job)
            except ConnectionGone:
                result = await self._answer_again(job)
        except CallerSignInNeeded:
            raise
        except SignInNeeded as error:
            self._refused = error
            self._again.set()
            raise
        except (DependencyUnavailable, OutcomeUnknown, CallTimeout):
            if not self._hurried(job):
                self._circuit.failed(self._clock.monotonic())
            raise
        except GatewayError:
            raise
        except Exception:
            self._circuit.failed(self._clock.monotonic())
            raise
        except FATAL as error:
            self._circuit.failed(self._clock.monotonic())
            raise OutcomeUnknown(
                f"{self.key} raised {type(error).__name__}. Check whether it took effect"
            ) from error
        finally:
            self._running -= 1
            if self.plan.on_demand:
                self._used = self._clock.monotonic()
        self._served = True
        if self._circuit.failures:
            self._circuit.worked()
        return result

    async def _answer_again(self, job: Job) -> Result:
        """Once more, after a connection that ended before anything was sent; its end is heard of in a moment."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GONE_SECONDS):
                while self._ready.is_set():
                    await asyncio.sleep(0.005)
        await self._wait_until_connected(job.deadline)
        if not self._serves(job.case.tool):
            raise Forbidden(CHANGED)
        if self.plan.witness is not None or job.case.facts:
            check_facts(self.plan.witness, job.case)
        return await self.plan.source.answer(job)

    def _hurried(self, job: Job) -> bool:
        """Whether a caller that gave less time than the tool has ran out of it, which proves nothing for others."""
        given = job.case.call.timeout
        return given is not None and given < job.limit and self._clock.monotonic() >= job.deadline

    async def _wait_until_connected(self, deadline: float) -> None:
        self._wanted.set()
        self._waiting += 1
        try:
            if not self._over:
                async with asyncio.timeout(max(0.0, deadline - self._clock.monotonic())):
                    await self._ready.wait()
        except TimeoutError:
            why = f": {self._last_failure}" if self._last_failure else ""
            raise DependencyUnavailable(
                f"{self.key} could not be connected in time{why}. Nothing was sent"
            ) from None
        finally:
            self._waiting -= 1
        if self._status is Status.NEEDS_AUTH:
            raise self._away()
        if not self._ready.is_set() and not self._over and not self.plan.on_demand:
            raise DependencyUnavailable(
                f"{self.key} was lost and did not come back. Nothing was sent", retry_after=1
            )
        if self._over:
            raise DependencyUnavailable(
                f"{self.key} is being stopped or replaced. Nothing was sent", retry_after=1
            )
