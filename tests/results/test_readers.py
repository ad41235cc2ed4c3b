"""Large results are read by processes of their own, under a deadline, with bounded memory."""

import asyncio
import json
import os
import threading
import time
from contextlib import contextmanager

import psutil
import pytest
from tests.calls.small_calls import ANNA, SmallCalls, in_force, opened
from tests.calls.test_shaping import case
from tests.waiting import PATIENCE, until

from agent_gate.access.view import View
from agent_gate.calls.meta import MetaTools
from agent_gate.calls.shaping import LARGE, Shaper
from agent_gate.core.call import Caller, Result
from agent_gate.discovery.meta import ViewArgs
from agent_gate.discovery.tokens import fits
from agent_gate.errors import DependencyUnavailable, GatewayError, InvalidArgs, ViewFailed
from agent_gate.policy import Policy
from agent_gate.results import readers, reading_child
from agent_gate.results.jobs import ViewJob
from agent_gate.results.readers import SMALL, Readers
from agent_gate.results.reading import InStore, Stored


def stored(value):
    return Stored("application/json", json.dumps(value).encode())


WORDS = stored("\n".join(f"word {number}" for number in range(20_000)))
LAST = ViewJob({"type": "grep", "pattern": "19999$"})


def never_fits(_text, _budget):
    """Stands for work without end, in the process that imports it by name."""
    while True:
        time.sleep(1)


def crash(_text, _budget):
    os._exit(3)


def hoard(_text, _budget):
    return bool(bytearray(reading_child.MEMORY * 2))


@contextmanager
def reading():
    found = Readers(fits)
    try:
        yield found
    finally:
        found.close()


def children():
    return {one.pid for one in psutil.Process().children()}


async def test_a_large_result_is_read_in_another_process_which_is_used_again():
    with reading() as found:
        before = children()
        assert (await found.work("a", LAST, [WORDS])).text == "19999: word 19999"
        [first] = children() - before
        assert (await found.work("b", LAST, [WORDS])).text == "19999: word 19999"
        assert children() - before == {first}
        found.close()
        assert children() == before


async def test_its_environment_has_none_of_the_gateways_variables(monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "very-secret")
    with reading() as found:
        before = children()
        await found.work("a", LAST, [WORDS])
        [child] = children() - before
        assert set(psutil.Process(child).environ()) <= {"PYTHONPATH", "SYSTEMROOT", "LC_CTYPE"}


async def test_a_small_result_is_read_at_once():
    with reading() as found:
        before = children()
        assert (await found.work("a", ViewJob({"type": "head"}), [stored("x" * (SMALL - 2))])).text
        assert children() == before


async def test_what_is_wrong_with_a_selector_is_said_as_if_it_were_read_here():
    with reading() as found:
        with pytest.raises(InvalidArgs, match="The pattern cannot be used"):
            await found.work("a", ViewJob({"type": "grep", "pattern": "("}), [WORDS])
        with pytest.raises(ViewFailed, match="This result is not JSON"):
            await found.work("a", ViewJob({"type": "json_keys"}), [WORDS])
        assert (await found.work("a", LAST, [WORDS])).text


@pytest.mark.parametrize(
    ("counter", "said"), [(crash, "ended before it was done"), (hoard, "more memory than there is")]
)
async def test_a_reader_that_cannot_go_on_fails_one_view_and_no_other(counter, said):
    with reading() as found:
        found._fits = counter
        with pytest.raises(ViewFailed, match=said):
            await found.work("a", LAST, [WORDS])
        found.close()
        found._fits = fits
        assert (await found.work("a", LAST, [WORDS])).text


async def test_work_without_end_ends_at_the_deadline_and_others_never_waited_for_it(monkeypatch):
    monkeypatch.setattr(readers, "SECONDS", 3)
    with reading() as found:
        cold = children()
        assert (await found.work("b", LAST, [WORDS])).text
        warm, before = found._idle.pop(), children()
        found._fits = never_fits
        endless = [asyncio.ensure_future(found.work("a", LAST, [WORDS])) for _ in range(3)]
        await until(lambda: len(children() - before) >= 1)
        found._idle.append(warm)
        assert (await found.work("b", LAST, [WORDS])).text == "19999: word 19999"
        assert not any(task.done() for task in endless)
        # The next may get its turn in the moment in which its own time ends, and then no reader that ends.
        found._idle.remove(warm)
        first, *rest = await asyncio.gather(*endless, return_exceptions=True)
        found._idle.append(warm)
        assert isinstance(first, ViewFailed)
        assert "Narrow the selector" in first.message
        assert {type(one) for one in rest} <= {DependencyUnavailable, ViewFailed}
        found.close()
        await until(lambda: children() == cold)


async def test_nobody_waits_for_the_end_of_a_process_that_took_too_long(monkeypatch):
    going_on, in_time, really_end = threading.Event(), [], readers._end

    def end_later(process):
        in_time.append(going_on.wait(PATIENCE))
        really_end(process)

    monkeypatch.setattr(readers, "SECONDS", 0.5)
    monkeypatch.setattr(readers, "_end", end_later)
    with reading() as found:
        found._fits = never_fits
        with pytest.raises(GatewayError):
            await found.work("a", LAST, [WORDS])
        found._fits = fits
        assert (await found.work("b", ViewJob({"type": "head"}), [stored("x")])).text
        going_on.set()
        await until(lambda: in_time)
        assert all(in_time)


async def test_who_leaves_ends_the_work_that_was_done_for_them():
    with reading() as found:
        before = children()
        found._fits = never_fits
        task = asyncio.ensure_future(found.work("a", LAST, [WORDS]))
        await until(lambda: children() - before)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await until(lambda: not (children() - before))
        assert task.cancelled()


async def test_those_who_wait_hold_no_result_in_memory():
    loaded = []
    with reading() as found:

        async def load():
            loaded.append(1)
            await go_on.wait()
            return [WORDS]

        go_on = asyncio.Event()
        tasks = [asyncio.ensure_future(found.work("a", LAST, load)) for _ in range(12)]
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(loaded) == 1
        go_on.set()
        await asyncio.gather(*tasks)


async def test_a_view_of_a_stored_result_goes_through_the_lanes(tmp_path):
    async with opened(tmp_path) as store:
        gate = SmallCalls(store)
        found = Readers(fits)
        visible = View(gate.shelf, Policy).tools
        meta = MetaTools(gate.calls, gate.shelf, visible, gate.artifacts, fits, readers=found)
        kept = await gate.artifacts.save(gate.call(), Result(WORDS.body))
        seen = await meta.view(ANNA, ViewArgs(handle=kept.handle, selector=LAST.selector))
        assert seen.text == "19999: word 19999"
        with pytest.raises(GatewayError, match="There is no such"):
            await meta.view(Caller(name="eve"), ViewArgs(handle=kept.handle, selector=LAST.selector))
        found.close()


async def test_a_result_that_cannot_be_summarised_in_time_is_stored_whole_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "SECONDS", 0.2)
    async with opened(tmp_path) as store:
        gate, found = SmallCalls(store), Readers(never_fits)
        shaper = Shaper(gate.artifacts, fits, in_force(budget=100), found)
        large = Result(json.dumps("x " * LARGE).encode())
        envelope = json.loads((await shaper(case("gateway"), large)).body)
        assert "stored whole" in envelope["summary"]
        assert "took longer" in envelope["summary"]
        [artifact] = envelope["artifacts"]
        assert (await gate.artifacts.load(artifact["handle"], Caller(name="pi"))).body == large.body


async def test_several_results_that_are_too_large_together_are_refused_before_they_are_read(
    tmp_path, monkeypatch
):
    async with opened(tmp_path) as store:
        gate = SmallCalls(store)
        kept = [await gate.artifacts.save(gate.call(), Result(b'"' + b"x" * 100 + b'"')) for _ in range(2)]
        handles = [one.handle for one in kept]
        assert len(await gate.artifacts.find_all(handles, ANNA, SMALL)) == 2
        monkeypatch.setattr("agent_gate.results.artifacts.MOST_BYTES", 150)
        assert len(await gate.artifacts.find_all(handles[:1], ANNA, SMALL)) == 1
        with pytest.raises(InvalidArgs, match="too large together"):
            await gate.artifacts.find_all(handles, ANNA, SMALL)


class Watched:
    """A real store that notes the largest value that anybody had read from it."""

    def __init__(self, store):
        self._store, self.largest = store, 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def read(self, sql, params=()):
        rows = await self._store.read(sql, params)
        sizes = [len(value) for row in rows for value in row if isinstance(value, str | bytes)]
        self.largest = max([self.largest, *sizes])
        return rows


async def test_a_large_result_in_a_file_is_never_fetched_into_the_gateway(tmp_path):
    async with opened(tmp_path) as real:
        store = Watched(real)
        gate = SmallCalls(store)
        meta = MetaTools(gate.calls, gate.shelf, lambda _caller: (), gate.artifacts, fits)
        kept = await gate.artifacts.save(gate.call(), Result(WORDS.body))
        seen = await meta.view(ANNA, ViewArgs(handle=kept.handle, selector=LAST.selector))
        assert seen.text == "19999: word 19999"
        assert store.largest < SMALL


async def test_a_store_that_cannot_be_opened_beside_the_gateway_is_said_in_words():
    with reading() as found, pytest.raises(ViewFailed, match="The store cannot be read"):
        await found.work(
            "a",
            LAST,
            lambda: answered([InStore("application/json", 1 << 20, "result:0", "/nowhere/gate.db")]),
        )


async def test_a_result_that_went_before_its_turn_came_is_said_to_be_gone(tmp_path):
    async with opened(tmp_path) as store:
        readers_of_it = Readers(fits)
        try:
            there = InStore("application/json", 1 << 20, "result:" + "0" * 32, str(store.file))
            with pytest.raises(ViewFailed, match="There is no such artifact"):
                await readers_of_it.work("a", LAST, lambda: answered([there]))
        finally:
            readers_of_it.close()


async def answered(value):
    return value
