"""`Errands`: asks the gateway that runs a source for what was called here, and does what other gateways ask for.

Whoever is asked writes down what to do, and the gateway that holds the source's lease does it. Taking errands is a
compare-and-set in the database, together with a look at the lease and at the record: so one gateway does each, once, and
none for a call that has ended. What was taken by a gateway that is gone has an unknown outcome; what nobody took is done
by the next that holds the source. Policy, approval and record are where the call was made.

What is asked for at the same time is written, taken, answered and forgotten together (`store/gathered.py`).
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from agent_gate.core.call import Result, new_id
from agent_gate.core.catalog import Shelf
from agent_gate.core.ports import Clock, Job
from agent_gate.core.tasks import KeptTasks
from agent_gate.core.tool import Definition
from agent_gate.errors import (
    CallTimeout,
    DependencyUnavailable,
    Forbidden,
    GatewayError,
    InvalidArgs,
    OutcomeUnknown,
)
from agent_gate.sources.errands import rows
from agent_gate.sources.errands.rows import (
    AskedErrand,
    ErrandAnswer,
    ErrandBody,
    ErrandEnd,
    TakenErrand,
    answer_of,
    body_of,
    case_of,
    decode_answer,
    decode_body,
    encode,
    error_of,
    marks,
)
from agent_gate.sources.errands.talk import ASKER_GONE, KIND, ErrandLine, FarCaller, NearTalk
from agent_gate.sources.keeper import Keeper
from agent_gate.sources.pins import Pins
from agent_gate.store.alone import AloneLeases
from agent_gate.store.gathered import Gathered
from agent_gate.store.statement import Conflict, InDoubt, Param, Statement, Store
from agent_gate.store.words import GatewayWords, Word
from agent_gate.vault.sealing import SealingKey, VaultFault

log = logging.getLogger("agent_gate.sources")
SPARE_SECONDS = 0.25
"""Sooner than the call's own deadline, so that there is time to say whether it was begun."""
WANTED = "wanted errand"
"""A word that asks one gateway for an errand, which no other may take."""
MAY_HAVE_RUN = "It may have run. Check before you try again"
CHANGED = "The tool is another one on the gateway that runs it: its definition changed. Nothing was sent"
NOT_BEGUN = "no gateway began the call in time. Nothing was sent"
SELECT_ASKED = "SELECT id, taken_by, state, answer FROM errands WHERE id IN ({ids})"
SELECT_TAKEN = "SELECT id, source, asked_by, body FROM errands WHERE turn = ? AND state = 'taken'"


class ErrandWait(msgspec.Struct, eq=False):
    """One who waits for what became of an errand, and the way back to its caller where there is one."""

    answered: "asyncio.Future[ErrandAnswer]"
    talk: NearTalk | None


class ErrandUnderWay(msgspec.Struct, eq=False):
    """An errand that is done here."""

    task: "asyncio.Task[Any]"
    asked_by: str
    caller: FarCaller | None = None


class Errands:
    """Both sides. `is_alive` says whether a gateway is."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        key: bytes,
        alone: AloneLeases,
        pins: Pins,
        words: GatewayWords,
        is_alive: Callable[[str], bool],
        shelf: Shelf,
        keepers: Mapping[str, Keeper],
    ) -> None:
        self._store, self._clock, self._key = store, clock, SealingKey(key)
        self._alone, self._pins, self._words, self._is_alive = alone, pins, words, is_alive
        self._shelf, self._keepers = shelf, keepers
        self._asking: Gathered[tuple[Param, ...]] = Gathered(store, lambda all_: rows.asking(all_, store.now))
        self._ending: Gathered[ErrandEnd] = Gathered(store, lambda all_: rows.ending(all_, store.chain))
        self._forgetting: Gathered[str] = Gathered(store, rows.forgetting)
        self._asked: dict[str, ErrandWait] = {}
        self._doing: dict[str, ErrandUnderWay] = {}
        self._tasks = KeptTasks(log, "An errand could not be done")
        self._over = False
        self.here = store.chain
        words.subscribe(KIND, self._hear_word)
        words.subscribe(WANTED, lambda _teller, ident, _body: self._hear_wanted(ident))

    async def begin(self) -> None:
        """What this gateway was doing before it started, nobody does any more."""
        if self._store.shared:
            await self._store.write(Statement(rows.LOSE_ALL, (self._store.chain,)))

    # -- what a source that may run elsewhere needs

    async def take(self, key: str) -> bool:
        """Whether this gateway is the one that runs the source now."""
        return await self._alone.take(key)

    async def read_listing(self, key: str) -> tuple[tuple[Definition, ...] | None, str]:
        """The tools that the gateway that runs the source has listed, and what the source says of itself."""
        return await self._pins.read_kept(key)

    async def ask(self, key: str, job: Job, of: str = "") -> Result:
        """Have the gateway that runs the source do it, once; or the gateway `of`, and no other."""
        if of and not self._is_alive(of):
            raise InvalidArgs(f"The gateway {of}, where this call waited, is gone. {MAY_HAVE_RUN}")
        ident = new_id()
        wait = self._asked[ident] = ErrandWait(
            asyncio.get_running_loop().create_future(), self._talk(ident, job)
        )
        try:
            answer = await self._exchange(key, ident, job, of, wait)
        except asyncio.CancelledError:
            self._withdraw(ident)
            raise
        except InDoubt as error:
            self._withdraw(ident)
            raise OutcomeUnknown(f"{error.message} {MAY_HAVE_RUN}") from None
        finally:
            del self._asked[ident]
            if wait.talk is not None:
                await wait.talk.cancel()
        self._forgetting.add(ident)
        if answer.result is None:
            raise error_of(answer)
        return answer.result

    async def _exchange(self, key: str, ident: str, job: Job, of: str, wait: ErrandWait) -> ErrandAnswer:
        """Write it down, and wait for what becomes of it."""
        left = max(0.0, job.deadline - self._clock.monotonic())
        seconds = left - min(SPARE_SECONDS, left / 10)
        await self._asking.write(self._row(ident, key, job, seconds, of))
        if of:
            await self._words.say(Word(of, WANTED, ident, b""))
        answer = await self._await_answer(key, ident, wait.answered, seconds)
        await self._hear_last(wait, answer)
        return answer

    def _withdraw(self, ident: str) -> None:
        self._store.post(*(Statement(rows.WITHDRAW, (ident, state)) for state in ("waiting", "taken")))

    def _row(self, ident: str, key: str, job: Job, seconds: float, of: str) -> tuple[Param, ...]:
        sealed = self._key.seal(encode(body_of(job, seconds)), "errand", ident, key)
        return ident, key, job.case.call.id, self._store.chain, seconds, sealed, of or None

    def _talk(self, ident: str, job: Job) -> NearTalk | None:
        conversation = job.case.call.conversation
        if conversation is None:
            return None
        return NearTalk(conversation, lambda other: self._line(ident, other))

    def _line(self, ident: str, other: str) -> ErrandLine:
        return ErrandLine(self._words, self._key, ident, self._store.chain, other)

    async def _await_answer(
        self, key: str, ident: str, answered: "asyncio.Future[ErrandAnswer]", seconds: float
    ) -> ErrandAnswer:
        try:
            async with asyncio.timeout(seconds):
                return await answered
        except TimeoutError:
            try:
                await self._store.write(Statement(rows.WITHDRAW, (ident, "waiting"), expect=1))
            except (Conflict, DependencyUnavailable):
                self._store.post(Statement(rows.WITHDRAW, (ident, "taken")))
                raise CallTimeout(f"{key} did not answer within {seconds:.3g} s. {MAY_HAVE_RUN}") from None
            raise DependencyUnavailable(
                f"{key} runs on one gateway at a time, and {NOT_BEGUN}", retry_after=5
            ) from None

    async def _hear_last(self, wait: ErrandWait, answer: ErrandAnswer) -> None:
        """Tell the caller what was said before the answer, in its order."""
        if wait.talk is None:
            return
        if answer.said > wait.talk.heard:
            with suppress(DependencyUnavailable):
                await self._words.look()
        await wait.talk.end(answer.last)

    # -- news

    async def hear(self, idents: Collection[str] | None) -> None:
        """Something became of these errands, or of any."""
        if idents is None:
            await self.look()
            return
        known = [one for one in idents if one in self._asked]
        taken = [one for one in idents if one in self._doing]
        new = [one for one in idents if one not in self._asked and one not in self._doing]
        await asyncio.gather(
            self._hear_ends(known), self._hear_withdrawn(taken), self._take(new if self._alone.held else ())
        )

    async def look(self) -> None:
        """Find what nobody was told of: errands of the sources that run here, and what became of our own."""
        for row in await self._hear_ends(list(self._asked)):
            if row.state == "taken" and row.id in self._asked and not self._is_alive(row.taken_by):
                await self._lose(row)
        await self._hear_withdrawn(list(self._doing))
        for doing in self._doing.values():
            if doing.caller is not None and doing.caller.waits and not self._is_alive(doing.asked_by):
                doing.caller.end(ASKER_GONE)
        await self._take(await self._find_waiting())

    async def _find_waiting(self) -> list[str]:
        held = self._alone.held
        if self._over or not held:
            return []
        sql = f"SELECT id FROM errands WHERE state = 'waiting' AND source IN ({marks(len(held))})"
        return [ident for (ident,) in await self._store.read(sql, tuple(held))]

    async def _hear_ends(self, idents: Sequence[str]) -> list[AskedErrand]:
        found = await self._read(idents)
        for row in found:
            if row.id in self._asked and not self._asked[row.id].answered.done():
                self._tell(row)
        return found

    async def _hear_withdrawn(self, idents: Sequence[str]) -> None:
        for row in await self._read(idents):
            if row.state in ("withdrawn", "lost") and row.id in self._doing:
                self._doing[row.id].task.cancel()

    async def _read(self, idents: Sequence[str]) -> list[AskedErrand]:
        if not idents:
            return []
        given = rows.padded(idents)
        read = await self._store.read(SELECT_ASKED.format(ids=marks(len(given))), tuple(given))
        return [AskedErrand(*row) for row in read]

    def _tell(self, row: AskedErrand) -> None:
        """What became of it, where it has ended."""
        if row.state == "done":
            self._asked[row.id].answered.set_result(self._opened(row))
        elif row.state in ("refused", "lost"):
            self._asked[row.id].answered.set_result(answer_of(self._failure(row)))

    def _opened(self, row: AskedErrand) -> ErrandAnswer:
        try:
            return decode_answer(self._key.open(row.answer or b"", "answer", row.id))
        except (VaultFault, msgspec.DecodeError):
            unread = f"The gateway {row.taken_by} gave an answer that cannot be read. {MAY_HAVE_RUN}"
            return answer_of(OutcomeUnknown(unread))

    def _failure(self, row: AskedErrand) -> GatewayError:
        if row.state == "lost":
            return OutcomeUnknown(
                f"The gateway {row.taken_by} stopped while it ran this call. {MAY_HAVE_RUN}"
            )
        return DependencyUnavailable(
            f"The gateway {row.taken_by} cannot read what {self._store.chain} asks for. Give both the same master "
            "key. Nothing was sent"
        )

    async def _lose(self, row: AskedErrand) -> None:
        """The gateway that took it is gone; from now on nobody can say that it ended."""
        try:
            await self._store.write(Statement(rows.LOSE, (row.id, row.taken_by), expect=1))
        except Conflict:
            return
        waiting = self._asked.get(row.id)
        if waiting is not None and not waiting.answered.done():
            self._tell(msgspec.structs.replace(row, state="lost"))

    def _hear_word(self, teller: str, ident: str, sealed: bytes) -> None:
        if (waiting := self._asked.get(ident)) is not None and waiting.talk is not None:
            waiting.talk.hear(teller, sealed)
        elif (doing := self._doing.get(ident)) is not None and doing.caller is not None:
            doing.caller.hear(sealed)

    def _hear_wanted(self, ident: str) -> None:
        self._tasks.start(self._take([ident]), ident)

    # -- what others ask for

    async def _take(self, idents: Sequence[str]) -> None:
        """Take those of them that are this gateway's to do, and begin; what is taken and not read is put back."""
        if self._over or not idents:
            return
        turn = new_id()
        try:
            [count] = await self._store.write(rows.taking(idents, self._store.chain, turn, self._store.now))
            for row in await self._store.read(SELECT_TAKEN, (turn,)) if count else ():
                self._begin(TakenErrand(*row))
        except DependencyUnavailable:
            with suppress(DependencyUnavailable):  # the gateway stops
                self._store.post(Statement(rows.PUT_BACK, (turn,)))

    def _begin(self, row: TakenErrand) -> None:
        self._doing[row.id] = doing = ErrandUnderWay(self._tasks.start(self._do(row), row.id), row.asked_by)
        doing.task.add_done_callback(lambda _task: self._doing.pop(row.id, None))

    async def _do(self, row: TakenErrand) -> None:
        try:
            body = decode_body(self._key.open(row.body, "errand", row.id, row.source))
        except (VaultFault, msgspec.DecodeError):
            log.error("A call of another gateway cannot be read: it has another master key, or was altered")
            await self._end(ErrandEnd(row.id, "refused", None))
            return
        caller = self._caller(row, body)
        answer = await self._perform(row.source, body, caller)
        if caller is not None:
            caller.end()
            last = caller.line.take_unsaid()
            await caller.line.wait_said()
            answer = msgspec.structs.replace(answer, said=caller.line.said, last=last)
        await self._end(ErrandEnd(row.id, "done", self._key.seal(encode(answer), "answer", row.id)))

    def _caller(self, row: TakenErrand, body: ErrandBody) -> FarCaller | None:
        if body.capabilities is None:
            return None
        caller = self._doing[row.id].caller = FarCaller(body, self._line(row.id, row.asked_by))
        return caller

    async def _perform(self, key: str, body: ErrandBody, caller: FarCaller | None) -> ErrandAnswer:
        try:
            async with asyncio.timeout(body.seconds):
                return ErrandAnswer(result=await self._answer(key, body, caller))
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

    async def _answer(self, key: str, body: ErrandBody, caller: FarCaller | None) -> Result:
        keeper = self._keepers[key]
        keeper.check()
        tool = self._shelf.catalog.find(body.tool)
        if tool is None or (tool.source, tool.pin) != (key, body.pin):
            raise Forbidden(CHANGED)
        deadline = self._clock.monotonic() + body.seconds
        return await keeper.answer(Job(case=case_of(body, tool, caller), deadline=deadline, limit=body.limit))

    async def _end(self, end: ErrandEnd) -> None:
        with suppress(DependencyUnavailable):
            await self._ending.write(end)

    async def purge(self) -> None:
        """Forget what a gateway that is gone left behind."""
        await self._store.write(Statement(rows.PURGE.format(now=self._store.now), (rows.GONE_AFTER,)))

    async def drain(self, seconds: float) -> None:
        """Take nothing more, and let end what was taken while there is time."""
        self._over = True
        await self._tasks.wait(seconds)
        await self._tasks.cancel()
