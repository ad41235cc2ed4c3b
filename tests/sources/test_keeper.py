"""A source that is stopped while calls want it: they are told at once, and nothing is sent."""

import asyncio
import time

import pytest
from tests.tools import catalog

from agent_gate.core.call import Call, Caller, Case, Decision, Result
from agent_gate.core.ports import Job, Plan, SystemClock
from agent_gate.core.tool import Definition
from agent_gate.errors import DependencyUnavailable
from agent_gate.sources.keeper import Keeper


class Shed:
    """A source that connects when it is let."""

    key = namespace = title = "shed"
    kind, unwell = "test", None

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
    return Job(case=case, deadline=time.monotonic() + 60)


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


def test_a_call_of_a_source_that_was_stopped_does_not_wait_for_it():
    async def main():
        shed = Shed()
        keeper, life = await started(shed, connected=True)
        await ended(life)
        async with asyncio.timeout(5):
            with pytest.raises(DependencyUnavailable, match="Nothing was sent"):
                await keeper.answer(job())
        assert len(shed.sent) == 1

    asyncio.run(main())


def test_a_call_that_waits_for_a_connection_hears_that_there_will_be_none():
    async def main():
        shed = Shed()
        keeper, life = await started(shed, connected=False)
        waiting = asyncio.create_task(keeper.answer(job()))
        await asyncio.sleep(0)
        await ended(life)
        async with asyncio.timeout(5):
            with pytest.raises(DependencyUnavailable, match="Nothing was sent"):
                await waiting
        assert not shed.sent

    asyncio.run(main())
