"""The dispatcher: every open question reaches every channel once, and every message shows how its question ended.

What was sent where is in the table `deliveries`, so that a restart neither forgets nor repeats. Each question has
one short story per channel: wait until it is due, send until it is through, wait for the end, show the end.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from agent_gate.approval.channels.quiet import Quiet
from agent_gate.approval.inbox import Inbox
from agent_gate.core.approval import Approval
from agent_gate.core.call import State
from agent_gate.core.ports import Channel, Clock
from agent_gate.core.tasks import KeptTasks
from agent_gate.errors import GatewayError
from agent_gate.observe.metrics import Metrics
from agent_gate.store.statement import Statement, Store

log = logging.getLogger("agent_gate.channels")
UPSERT = (
    "INSERT INTO deliveries (approval, channel, message, state, at) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (approval, channel) DO UPDATE SET message = excluded.message, state = excluded.state, at = excluded.at"
)
FIRST_PAUSE, LONGEST_PAUSE, LONGEST_ASKED = 0.5, 30.0, 600.0
MOST_UPDATES = 20
STEADY = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldChannel:
    """A channel, and when it is told: `after` seconds without an answer, and not in the quiet hours."""

    channel: Channel
    after: float = 0.0
    quiet: Quiet | None = None

    def due(self, approval: Approval, now: float) -> float:
        """When this channel may show the question."""
        at = max(approval.asked.at + self.after, now)
        return (self.quiet.until(at) or at) if self.quiet is not None else at


def pause(tries: int, error: Exception) -> float:
    """Exponential with jitter, and never shorter than what the other side asked for, within reason."""
    grown = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(tries, 10))
    asked = error.retry_after if isinstance(error, GatewayError) else None
    return max(min(asked or 0.0, LONGEST_ASKED), grown * random.uniform(0.5, 1.0))


class Dispatcher:
    """Keeps the stories running, and the channels' own loops."""

    def __init__(
        self, store: Store, inbox: Inbox, clock: Clock, metrics: Metrics, *, look_every: float = 5.0
    ) -> None:
        self._store, self._inbox, self._clock, self._metrics = store, inbox, clock, metrics
        self._look_every = look_every
        self._channels: Sequence[ToldChannel] = ()
        self._ends: dict[str, asyncio.Future[Approval]] = {}
        self._tasks = KeptTasks(log, "A delivery's task failed")
        self._stories: set[tuple[str, str]] = set()
        self.faults: dict[str, str] = {}
        """Why a channel reaches nobody, by its name; one that is well has no entry."""
        self._undo: Callable[[], None] = lambda: None

    async def start(self, channels: Sequence[ToldChannel]) -> None:
        """Take up what is open and what still has to be said, then listen for more."""
        self._channels = channels
        self._undo = self._inbox.subscribe(self._heard)
        for told in channels:
            self._tasks.start(self._keep_running(told.channel))
        taken_up = await self._attempt(self._take_up)
        if channels:
            self._tasks.start(self._look_again(taken_up=taken_up))

    async def _take_up(self) -> None:
        """Go on with the stories that had not ended when the last run did."""
        await self._store.flush()
        for told in self._channels:
            known = await self._read_open(told.channel.name)
            for approval_id, message in known.items():
                approval = await self._inbox.get(approval_id)
                if approval is not None:
                    self._tell(told, approval, message)
            for approval in self._inbox.open():
                if approval.id not in known:
                    self._tell(told, approval, None)

    async def _look_again(self, *, taken_up: bool) -> None:
        while True:
            await asyncio.sleep(self._look_every)
            taken_up = taken_up or await self._attempt(self._take_up)
            if taken_up:
                await self._attempt(self._look)

    async def _attempt(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Whether the store let it; where not, it is tried again later."""
        try:
            await work()
        except GatewayError as error:
            log.warning("Open questions cannot be looked through now: %s", error.message)
            return False
        return True

    async def _look(self) -> None:
        """Find what nobody announced: a caller that left in the middle, or another gateway on the same store."""
        open_now = self._inbox.open()
        for approval in open_now:
            for told in self._channels:
                self._tell(told, approval, None)
        for approval_id in self._ends.keys() - {approval.id for approval in open_now}:
            found = await self._inbox.get(approval_id)
            if found is not None and found.state is not State.PENDING:
                self._heard(found)

    async def purge(self) -> None:
        """Forget where closed questions were shown, a month later."""
        before = self._clock.now() - 30 * 86_400
        await self._store.write(
            Statement("DELETE FROM deliveries WHERE state = 'closed' AND at <= ?", (before,))
        )

    async def stop(self) -> None:
        undo, self._undo = self._undo, lambda: None
        undo()
        await self._tasks.cancel()
        self._ends.clear()
        self._stories.clear()
        self.faults.clear()

    async def _read_open(self, channel: str) -> dict[str, str | None]:
        """The stories of this channel that had not ended."""
        rows = await self._store.read(
            "SELECT approval, message FROM deliveries WHERE channel = ? AND state <> 'closed'", (channel,)
        )
        return dict(rows)

    def _heard(self, approval: Approval) -> None:
        if approval.state is State.PENDING:
            for told in self._channels:
                self._tell(told, approval, None)
            return
        ends = self._ends.pop(approval.id, None)
        if ends is not None and not ends.done():
            ends.set_result(approval)

    def _tell(self, told: ToldChannel, approval: Approval, message: str | None) -> None:
        """Begin a story, unless it has begun: a question asked during the start is heard and found."""
        story = (told.channel.name, approval.id)
        if story in self._stories:
            return
        self._stories.add(story)
        ends = self._ends.get(approval.id)
        if ends is None:
            ends = asyncio.get_running_loop().create_future()
            if approval.state is State.PENDING:
                self._ends[approval.id] = ends
            else:
                ends.set_result(approval)
        self._tasks.start(self._tell_story(told, approval, message, ends))

    async def _tell_story(
        self, told: ToldChannel, approval: Approval, message: str | None, ends: asyncio.Future[Approval]
    ) -> None:
        channel = told.channel
        if message is None:
            self._mark(channel, approval, None, "due")
            message = await self._ask(told, approval, ends)
        if message is not None:
            ended = await asyncio.shield(ends)
            await self._show_end(channel, ended, message)
        self._mark(channel, approval, message, "closed")
        self._stories.discard((channel.name, approval.id))

    async def _ask(self, told: ToldChannel, approval: Approval, ends: asyncio.Future[Approval]) -> str | None:
        """Send the question until it is through; None when it ended before."""
        channel, tries = told.channel, 0
        wait = told.due(approval, self._clock.now()) - self._clock.now()
        while not await wait_for_end(ends, wait):
            try:
                message = await channel.ask(approval)
            except Exception as error:  # noqa: BLE001 - the boundary: a channel may break on one question
                wait, tries = pause(tries, error), tries + 1
                self._note_failure(channel, approval, error)
                continue
            await self._note_sent(channel, approval, message)
            self._took(channel, "sent")
            return message
        return None

    async def _show_end(self, channel: Channel, ended: Approval, message: str) -> None:
        for tries in range(MOST_UPDATES):
            try:
                await channel.show_end(ended, message)
            except Exception as error:  # noqa: BLE001 - the boundary, as above
                self._note_failure(channel, ended, error)
                await asyncio.sleep(pause(tries, error))
            else:
                self._took(channel, "updated")
                return

    def _took(self, channel: Channel, what: str) -> None:
        self._metrics.deliveries.add(channel.name, what)
        self.faults.pop(channel.name, None)

    def _note_failure(self, channel: Channel, approval: Approval, error: Exception) -> None:
        self._metrics.deliveries.add(channel.name, "failed")
        why, fault = (error.message, None) if isinstance(error, GatewayError) else (repr(error), error)
        self.faults[channel.name] = why
        log.warning(
            "A channel did not take a message; it is tried again",
            extra={"channel": channel.name, "approval": approval.id, "why": why},
            exc_info=fault,
        )

    async def _note_sent(self, channel: Channel, approval: Approval, message: str) -> None:
        """Durable at once, because a restart before this would send the question again."""
        self._mark(channel, approval, message, "sent")
        try:
            await self._store.flush()
        except GatewayError as error:
            log.warning("What was sent is not yet written down", extra={"why": error.message})

    def _mark(self, channel: Channel, approval: Approval, message: str | None, state: str) -> None:
        params = (approval.id, channel.name, message, state, self._clock.now())
        self._store.post(Statement(UPSERT, params))

    async def _keep_running(self, channel: Channel) -> None:
        """A channel's own loop, started again when it falls over."""
        tries = 0
        while True:
            began = self._clock.monotonic()
            try:
                await self._run(channel)
                return
            except GatewayError as error:
                self.faults[channel.name] = error.message
                log.warning("A channel is down", extra={"channel": channel.name, "why": error.message})
                await asyncio.sleep(pause(tries, error))
            except Exception as error:  # the others go on while this one starts again
                self.faults[channel.name] = repr(error)
                log.exception("A channel's loop failed", extra={"channel": channel.name})
                await asyncio.sleep(LONGEST_PAUSE)
            tries = tries + 1 if self._clock.monotonic() - began < 2 * LONGEST_PAUSE else 0

    async def _run(self, channel: Channel) -> None:
        """A loop that lasts for a while shows that the channel is well again."""
        steady = asyncio.get_running_loop().call_later(STEADY, self.faults.pop, channel.name, None)
        try:
            await channel.run()
        finally:
            steady.cancel()


async def wait_for_end(ends: asyncio.Future[Approval], seconds: float) -> bool:
    """Whether the question ended before `seconds` passed."""
    ended, _ = await asyncio.wait([ends], timeout=max(0.0, seconds))
    return bool(ended)
