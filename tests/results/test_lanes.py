"""Turns at a few places: who waits for whom."""

import asyncio

import pytest

from agent_gate.errors import DependencyUnavailable
from agent_gate.results.lanes import Lanes


async def settled():
    for _ in range(5):
        await asyncio.sleep(0)


class Work:
    """Pieces of work that end when the test says, and the order in which they began."""

    def __init__(self, places, most=32):
        self.lanes, self.begun, self.gates = Lanes(places, most), [], {}

    async def _one(self, name):
        async with self.lanes.turn(name[0]):
            self.begun.append(name)
            await self.gates.setdefault(name, asyncio.Event()).wait()

    def start(self, *names):
        return [asyncio.ensure_future(self._one(name)) for name in names]

    async def end(self, name):
        self.gates.setdefault(name, asyncio.Event()).set()
        await settled()


async def test_agents_take_turns_however_much_one_of_them_wants():
    work = Work(1)
    tasks = work.start("a1", "a2", "a3", "b1", "c1", "b2")
    await settled()
    for name in ("a1", "a2", "b1", "c1", "a3", "b2"):
        assert work.begun[-1] == name
        await work.end(name)
    await asyncio.gather(*tasks)


async def test_an_agent_has_one_place_and_leaves_the_other_free():
    work = Work(2)
    tasks = work.start("a1", "a2", "a3")
    await settled()
    assert work.begun == ["a1"]
    tasks += work.start("b1")
    await settled()
    assert work.begun == ["a1", "b1"]
    await work.end("b1")
    assert work.begun == ["a1", "b1"]
    for name in ("a1", "a2", "a3"):
        await work.end(name)
    await asyncio.gather(*tasks)


async def test_who_leaves_while_waiting_takes_no_turn_and_blocks_nobody():
    work = Work(1)
    first, gone, given, last = work.start("a1", "b1", "b2", "c1")
    await settled()
    gone.cancel()
    await work.end("a1")
    assert work.begun == ["a1", "b2"]
    work.gates["b2"].set()
    given.cancel()
    await settled()
    assert work.begun == ["a1", "b2", "c1"]
    await work.end("c1")
    await asyncio.gather(first, last)


async def test_a_turn_that_comes_as_its_waiter_leaves_goes_to_the_next():
    work = Work(1)
    first, gone, last = work.start("a1", "b1", "c1")
    await settled()
    work.gates["a1"].set()
    while work.lanes._free == 0 and "b" not in work.lanes._busy:
        await asyncio.sleep(0)
    gone.cancel()
    await settled()
    assert work.begun[-1] == "c1"
    await work.end("c1")
    await asyncio.gather(first, last)


async def test_who_waits_for_too_much_is_told_so_and_others_are_not():
    work = Work(1, most=2)
    tasks = work.start("a1", "a2", "a3", "b1")
    await settled()
    with pytest.raises(DependencyUnavailable, match="already wait for 2"):
        async with work.lanes.turn("a"):
            pass
    for name in ("a1", "a2", "b1", "a3"):
        await work.end(name)
    await asyncio.gather(*tasks)
