"""Calls that want a source while it is connected, fails or is stopped: they are told, and nothing is sent twice."""

import asyncio
import logging
import time

import msgspec
import pytest
from tests.tools import catalog
from tests.waiting import PATIENCE, until

from agent_gate.core.call import Call, Caller, Case, Decision, Result
from agent_gate.core.credentials import SignInNeeded
from agent_gate.core.ports import Job, Plan, SystemClock
from agent_gate.core.source_state import Status
from agent_gate.core.tool import Definition
from agent_gate.errors import DependencyUnavailable, OutcomeUnknown, Unauthorized
from agent_gate.sources import keeper as keeper_module
from agent_gate.sources.keeper import Keeper
from agent_gate.sources.state import FAILURES_TO_OPEN, Circuit, ConnectionGone


class Shed:
    """A source that connects when it is let."""

    key = namespace = title = "shed"
    kind, unwell = "test", None
    about, watched, context = "", False, None

    def __init__(self):
        self.may_connect, self.sent = asyncio.Event(), []

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        return None

    async def connect(self):
        await self.may_connect.wait()
        return ()

    async def watch(self):
        await asyncio.Event().wait()

    async def answer(self, job):
        self.sent.append(job)
        return Result(b"1")


def job():
    [tool] = catalog(Definition(name="get"), key="shed").tools
    call = Call(tool=tool.wire, arguments={}, caller=Caller(name="pi"))
    decision = Decision(effect="allow")
    case = Case(
        call=call,
        tool=tool,
        signature=tool.wire,
        decision=decision,
        arguments_hash="",
        definition_hash=tool.pin,
    )
    return Job(case=case, deadline=time.monotonic() + 10 * PATIENCE)


async def started(shed, *, connected):
    keeper = Keeper(Plan(source=shed, settings=None), SystemClock(), lambda *_: None, known=False)
    life = asyncio.create_task(keeper.run())
    if connected:
        shed.may_connect.set()
        assert (await keeper.answer(job())).body == b"1"
    await asyncio.sleep(0)
    return keeper, life


async def ended(life):
    life.cancel()
    await asyncio.gather(life, return_exceptions=True)


async def test_a_call_of_a_source_that_was_stopped_does_not_wait_for_it():
    shed = Shed()
    keeper, life = await started(shed, connected=True)
    await ended(life)
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(DependencyUnavailable, match="Nothing was sent"):
            await keeper.answer(job())
    assert len(shed.sent) == 1


async def test_a_call_that_waits_for_a_connection_hears_that_there_will_be_none():
    shed = Shed()
    keeper, life = await started(shed, connected=False)
    waiting = asyncio.create_task(keeper.answer(job()))
    await asyncio.sleep(0)
    await ended(life)
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(DependencyUnavailable, match="Nothing was sent"):
            await waiting
    assert not shed.sent


class Broken(Shed):
    """A source that cannot be connected for the first few times."""

    def __init__(self, failures):
        super().__init__()
        self.failures, self.tries, self.connecting = failures, 0, asyncio.Event()

    async def connect(self):
        self.tries += 1
        self.connecting.set()
        await self.may_connect.wait()
        if self.tries <= self.failures:
            raise DependencyUnavailable("the door is locked")
        return ()


def on_demand(source):
    plan = Plan(source=source, settings=None, on_demand=True)
    keeper = Keeper(plan, SystemClock(), lambda *_: None, known=True)
    return keeper, asyncio.create_task(keeper.run())


async def status(keeper, wanted):
    while keeper.state().status is not wanted:
        await asyncio.sleep(0)


async def test_a_call_waits_for_the_next_try_of_a_source_on_demand(monkeypatch):
    monkeypatch.setattr(keeper_module, "delay", lambda _failures: 0.001)

    source = Broken(failures=2)
    source.may_connect.set()
    keeper, life = on_demand(source)
    async with asyncio.timeout(PATIENCE):
        assert (await keeper.answer(job())).body == b"1"
    assert source.tries == 3
    await ended(life)


async def test_calls_that_come_while_a_source_is_connected_do_not_hurry_the_next_try(monkeypatch):
    monkeypatch.setattr(keeper_module, "delay", lambda _failures: 3600)

    source = Broken(failures=100)
    keeper, life = on_demand(source)
    async with asyncio.timeout(PATIENCE):
        first = asyncio.create_task(keeper.answer(job()))
        await source.connecting.wait()
        second = asyncio.create_task(keeper.answer(job()))
        await asyncio.sleep(0)
        source.may_connect.set()
        await status(keeper, Status.FAILED)
        for _ in range(10):
            await asyncio.sleep(0)
        assert source.tries == 1
        keeper.wake()
        source.connecting.clear()
        await source.connecting.wait()
        assert source.tries == 2
    for call in first, second:
        call.cancel()
    await ended(life)


async def test_a_source_that_fails_to_connect_at_the_moment_it_is_stopped_is_stopped(monkeypatch):
    monkeypatch.setattr(keeper_module, "delay", lambda _failures: 3600)

    source = Broken(failures=100)
    keeper = Keeper(Plan(source=source, settings=None), SystemClock(), lambda *_: None, known=False)
    life = asyncio.create_task(keeper.run())
    await source.connecting.wait()
    source.may_connect.set()
    await asyncio.sleep(0)
    life.cancel()
    done, _ = await asyncio.wait([life], timeout=PATIENCE)
    assert done


async def test_a_call_whose_source_cannot_be_connected_is_told_why(monkeypatch):
    monkeypatch.setattr(keeper_module, "delay", lambda _failures: 3600)

    source = Broken(failures=100)
    source.may_connect.set()
    keeper, life = on_demand(source)
    late = msgspec.structs.replace(job(), deadline=time.monotonic() + 0.05)
    with pytest.raises(DependencyUnavailable, match="in time: the door is locked"):
        await keeper.answer(late)
    await ended(life)


async def test_a_source_that_raises_what_nobody_expects_again_and_again_is_left_in_peace():
    class Odd(Shed):
        async def answer(self, job):
            raise KeyError("hunter2")

    keeper = Keeper(Plan(source=(odd := Odd()), settings=None), SystemClock(), lambda *_: None, known=False)
    odd.may_connect.set()
    life = asyncio.create_task(keeper.run())
    for _ in range(FAILURES_TO_OPEN):
        with pytest.raises(KeyError):
            await keeper.answer(job())
    with pytest.raises(DependencyUnavailable, match="failed too often"):
        keeper.check()
    await ended(life)


class Fragile(Shed):
    """A source whose connection is lost when told, and that connects again when it is let."""

    def __init__(self):
        super().__init__()
        self.lose, self.found_gone = asyncio.Event(), 0
        self.may_connect.set()

    async def connect(self):
        found = await super().connect()
        self.lose.clear()
        return found

    async def watch(self):
        await self.lose.wait()
        raise DependencyUnavailable("It exited with code 1")

    async def answer(self, job):
        if self.lose.is_set():
            self.found_gone += 1
            raise ConnectionGone("its input is closed")
        return await super().answer(job)


@pytest.mark.parametrize("noticed", [True, False])
async def test_a_call_waits_for_a_source_that_was_there_until_just_now(noticed):
    fragile = Fragile()
    keeper, life = await started(fragile, connected=True)
    fragile.may_connect.clear()
    fragile.lose.set()
    while noticed and keeper.state().status is Status.READY:
        await asyncio.sleep(0)
    keeper.check()
    waiting = asyncio.create_task(keeper.answer(job()))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    keeper.check()
    fragile.may_connect.set()
    keeper.wake()
    async with asyncio.timeout(PATIENCE):
        assert (await waiting).body == b"1"
    assert (fragile.found_gone, len(fragile.sent)) == (0 if noticed else 1, 2)
    await ended(life)


@pytest.mark.parametrize("step", ["connect", "answer"])
async def test_a_source_that_refuses_the_credential_waits_for_a_person_and_leaves_that_state_again(step):
    class Locked(Fragile):
        open, tries = False, 0

        async def connect(self):
            self.tries += 1
            if not self.open and (step == "connect" or self.tries > 1):
                raise Unauthorized("Sign in again")
            return await super().connect()

        async def answer(self, job):
            if not self.open:
                raise SignInNeeded("Sign in again")
            return await super().answer(job)

    locked = Locked()
    keeper = Keeper(Plan(source=locked, settings=None), SystemClock(), lambda *_: None, known=False)
    life = asyncio.create_task(keeper.run())
    if step == "answer":
        with pytest.raises(DependencyUnavailable, match="Sign in again"):
            await keeper.answer(job())
    while keeper.state().status is not Status.NEEDS_AUTH:
        await asyncio.sleep(0)
    state = keeper.state()
    assert (state.reason, state.next_try, locked.tries) == ("Sign in again", None, 1)
    with pytest.raises(DependencyUnavailable, match="Nothing was sent"):
        keeper.check()
    locked.open = True
    keeper.wake()
    while keeper.state().status is not Status.READY:
        await asyncio.sleep(0)
    assert (await keeper.answer(job())).body == b"1"
    await ended(life)


@pytest.mark.parametrize("on_demand", [False, True])
async def test_a_call_that_comes_while_a_source_without_a_credential_is_closed_does_not_wait_for_it(
    on_demand,
):
    class Closing(Fragile):
        def __init__(self):
            super().__init__()
            self.closing, self.may_close = asyncio.Event(), asyncio.Event()

        async def __aexit__(self, *_):
            self.closing.set()
            await self.may_close.wait()

        async def answer(self, job):
            raise SignInNeeded("Sign in again")

    closing = Closing()
    plan = Plan(source=closing, settings=None, on_demand=on_demand)
    keeper = Keeper(plan, SystemClock(), lambda *_: None, known=on_demand)
    life = asyncio.create_task(keeper.run())
    with pytest.raises(SignInNeeded, match="Sign in again"):
        await keeper.answer(job())
    await closing.closing.wait()
    keeper.check()
    late = asyncio.create_task(keeper.answer(job()))
    await asyncio.sleep(0)
    closing.may_close.set()
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(SignInNeeded, match=r"Sign in again.*Nothing was sent"):
            await late
    await ended(life)


async def test_a_source_that_does_not_come_back_is_not_waited_for():
    class Dead(Fragile):
        async def connect(self):
            if self.sent:
                raise DependencyUnavailable("It does not start")
            return await super().connect()

    dead = Dead()
    keeper, life = await started(dead, connected=True)
    dead.lose.set()
    while "does not start" not in keeper.state().reason:
        keeper.wake()
        await asyncio.sleep(0)
    with pytest.raises(DependencyUnavailable, match="Nothing was sent"):
        keeper.check()
    await ended(life)


def test_a_source_that_fails_again_and_again_is_tried_after_a_second_then_more_and_more_seldom():
    circuit = Circuit()
    waits = []
    for _ in range(FAILURES_TO_OPEN + 7):
        circuit.failed(0.0)
        waits.append(circuit.wait(0.0))
    assert waits == [0, 0, 0, 0, 1, 2, 4, 8, 16, 30, 30, 30]


async def test_a_source_that_is_connected_anew_is_tried_at_once():
    class Sick(Fragile):
        well = False

        async def answer(self, job):
            if not self.well:
                raise DependencyUnavailable("no")
            return await super().answer(job)

    sick = Sick()
    keeper = Keeper(Plan(source=sick, settings=None), SystemClock(), lambda *_: None, known=False)
    life = asyncio.create_task(keeper.run())
    for _ in range(FAILURES_TO_OPEN):
        with pytest.raises(DependencyUnavailable):
            await keeper.answer(job())
    with pytest.raises(DependencyUnavailable, match="failed too often"):
        keeper.check()
    sick.lose.set()
    sick.well = True
    while keeper.restarts == 0 or keeper.state().status is not Status.READY:
        keeper.wake()
        await asyncio.sleep(0)
    keeper.check()
    assert (await keeper.answer(job())).body == b"1"
    await ended(life)


@pytest.mark.parametrize("end", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("step", ["connect", "watch", "answer"])
async def test_a_source_that_wants_to_end_the_process_ends_only_its_own_work(step, end):
    class Rude(Shed):
        raised = 0

        async def raise_first(self, at, otherwise):
            if at == step and not self.raised:
                self.raised += 1
                otherwise.close()
                raise end
            return await otherwise

        def connect(self):
            return self.raise_first("connect", super().connect())

        def watch(self):
            return self.raise_first("watch", super().watch())

        def answer(self, job):
            return self.raise_first("answer", super().answer(job))

    rude = Rude()
    rude.may_connect.set()
    keeper = Keeper(Plan(source=rude, settings=None), SystemClock(), lambda *_: None, known=False)
    life = asyncio.create_task(keeper.run())
    if step == "answer":
        with pytest.raises(OutcomeUnknown, match=end.__name__):
            await keeper.answer(job())

    def is_back() -> bool:
        keeper.wake()
        return bool(rude.raised) and keeper.state().status is Status.READY

    await until(is_back)
    assert (await keeper.answer(job())).body == b"1"
    await ended(life)


class Watched(Shed):
    """A source that counts how often it was asked whether somebody watches it."""

    def __init__(self):
        super().__init__()
        self.may_connect.set()
        self.looks, self.has_watchers, self.ends = 0, True, asyncio.Event()

    @property
    def watched(self):
        self.looks += 1
        return self.has_watchers

    async def watch(self):
        await self.ends.wait()
        self.ends.clear()


async def test_a_source_on_demand_stays_connected_as_long_as_somebody_watches_it(monkeypatch):
    monkeypatch.setattr(keeper_module, "IDLE_SECONDS", 0.001)

    source = Watched()
    plan = Plan(source=source, settings=None, on_demand=True)
    keeper = Keeper(plan, SystemClock(), lambda *_: None, known=True)
    running = asyncio.create_task(keeper.run())
    for _ in range(2):
        await until(lambda: source.looks >= 5)
        assert keeper.state().status is Status.READY
        source.ends.set()
        source.looks = 0
    source.has_watchers = False
    assert await until(lambda: keeper.state().status is Status.IDLE)
    running.cancel()


async def test_a_failure_is_logged_as_an_error_once_and_its_repetition_only_for_debugging(
    caplog, monkeypatch
):
    monkeypatch.setattr(keeper_module, "delay", lambda _failures: 0.0)
    reasons = ["refused", "refused\nIts last words were:\nsee /tmp/1.log", "no route"]

    class Broken(Shed):
        async def connect(self):
            if not reasons:
                self.may_connect.set()
                return await asyncio.Event().wait()
            raise DependencyUnavailable(reasons.pop(0))

    with caplog.at_level(logging.DEBUG, keeper_module.log.name):
        shed = Broken()
        _, life = await started(shed, connected=False)
        await shed.may_connect.wait()
        await ended(life)
    failures = [(record.levelname, record.reason) for record in caplog.records if hasattr(record, "reason")]
    assert [level for level, _ in failures] == ["ERROR", "DEBUG", "ERROR"], "only its last words changed"


@pytest.mark.parametrize(("serves", "failed"), [(True, [0, 0, 0]), (False, [0, 1, 2])])
async def test_a_source_that_answered_before_it_died_is_tried_again_as_soon_as_at_first(
    monkeypatch, serves, failed
):
    waits = []
    monkeypatch.setattr(keeper_module, "delay", lambda failures: waits.append(failures) or 0.0)

    class Mortal(Shed):
        async def connect(self):
            self.lose = asyncio.Event()
            return ()

        async def watch(self):
            await self.lose.wait()
            raise DependencyUnavailable("it exited with code 3")

    mortal = Mortal()
    keeper, life = await started(mortal, connected=False)
    async with asyncio.timeout(PATIENCE):
        for deaths in range(1, 4):
            await status(keeper, Status.READY)
            if serves:
                await keeper.answer(job())
            mortal.lose.set()
            while len(waits) < deaths:
                await asyncio.sleep(0)
    assert waits == failed
    await ended(life)


async def test_a_source_that_is_tried_again_is_shown_as_what_it_last_was(monkeypatch):
    monkeypatch.setattr(keeper_module, "delay", lambda _failures: 0.0)

    class SecondTry(Shed):
        tries = 0

        async def connect(self):
            self.tries += 1
            if self.tries == 1:
                raise DependencyUnavailable("the door is locked")
            return await super().connect()

    shed = SecondTry()
    keeper, life = await started(shed, connected=False)
    async with asyncio.timeout(PATIENCE):
        while shed.tries < 2:
            await asyncio.sleep(0)
        state = keeper.state()
        assert (state.status, state.reason) == (Status.FAILED, "the door is locked")
        assert state.broken_since is not None
        assert state.broken_since <= state.since
        shed.may_connect.set()
        await status(keeper, Status.READY)
    well = keeper.state()
    assert (well.reason, well.broken_since) == ("", None)
    assert (well.last_error, well.last_error_at) == ("the door is locked", state.broken_since)
    await ended(life)
