"""A client that leaves, wherever it is: nothing half-sent runs, what ran is on record, and the gateway goes on."""

import asyncio
from pathlib import Path

import pytest
from tests.hotpath.hot_gate import ERAS, HANDSHAKE, MODERN, Upstream, code_of, connected, post, running
from tests.waiting import until

from agent_gate.app import Gateway
from agent_gate.core.call import State

RULES = "rules: [{pattern: 'up__*', action: allow}]\n"


async def states(gateway: Gateway) -> list[str]:
    await gateway.kept.store.flush()
    return [state for (state,) in await gateway.kept.store.read("SELECT state FROM record ORDER BY seq")]


async def still_answers(port: int) -> None:
    async with connected(port) as wire:
        assert code_of((await wire.ask(post("up__echo", {"text": "still"})))[1]) == "ok"


@pytest.mark.parametrize("era", ERAS)
async def test_a_request_that_breaks_off_anywhere_never_runs(tmp_path: Path, era: str) -> None:
    async with running(tmp_path, RULES) as (gateway, upstream, port):
        data = post("up__echo", {"text": "hello"}, era)
        for cut in range(1, len(data), 5):
            async with connected(port) as wire:
                wire.send(data[:cut])
                await wire.writer.drain()
        await until(lambda: idle(gateway))
        assert upstream.calls == []
        assert await states(gateway) == []
        await still_answers(port)


def idle(gateway: Gateway) -> bool:
    return not gateway.listeners.public.connections and not gateway.calls.running()


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_leaves_after_its_request_leaves_a_whole_story(tmp_path: Path, era: str) -> None:
    """However far the call got: each that was dispatched has exactly one end."""

    async with running(tmp_path, RULES) as (gateway, _, port):
        for turns in range(40):
            async with connected(port) as wire:
                wire.send(post("up__echo", {"text": "hello"}, era))
                await wire.writer.drain()
                for _ in range(turns):
                    await asyncio.sleep(0)
        await until(lambda: idle(gateway))
        found = await states(gateway)
        assert found.count(State.DISPATCHING) == len(found) / 2 > 0
        await still_answers(port)


async def leave_while_running(port: int, upstream: Upstream, era: str) -> None:
    async with connected(port) as wire:
        wire.send(post("up__slow", {"text": "x"}, era))
        await upstream.arrived.wait()


@pytest.mark.parametrize(
    ("era", "ends"), [(HANDSHAKE, State.COMPLETED), (MODERN, State.UNKNOWN)], ids=["handshake", "modern"]
)
async def test_hanging_up_cancels_only_where_the_protocol_says_so(
    tmp_path: Path, era: str, ends: State
) -> None:
    async with running(tmp_path, RULES) as (gateway, upstream, port):
        await leave_while_running(port, upstream, era)
        if era == HANDSHAKE:
            assert len(gateway.calls.running()) == 1
            upstream.release.set()
        await until(lambda: idle(gateway))
        assert await states(gateway) == [State.DISPATCHING, ends]
        await still_answers(port)


async def test_requests_behind_the_one_that_runs_are_dropped_with_their_client(tmp_path: Path) -> None:
    async with running(tmp_path, RULES) as (gateway, upstream, port):
        async with connected(port) as wire:
            wire.send(post("up__slow", {"text": "x"}) + post("up__echo", {"text": "y"}) * 3)
            await upstream.arrived.wait()
        await until(lambda: left(gateway))
        upstream.release.set()
        await until(lambda: idle(gateway))
        assert upstream.calls == ["slow"]


def left(gateway: Gateway) -> bool:
    return not gateway.listeners.public.connections


@pytest.mark.parametrize("era", ERAS)
async def test_stopping_lets_a_running_call_end_and_answers_it(tmp_path: Path, era: str) -> None:
    async with running(tmp_path, RULES) as (gateway, upstream, port), connected(port) as wire:
        wire.send(post("up__slow", {"text": "last"}, era))
        await upstream.arrived.wait()
        stopping = asyncio.create_task(gateway.ways_in.mcp.close(10))
        await asyncio.sleep(0)
        assert not stopping.done()
        upstream.release.set()
        assert code_of((await wire.answer())[1]) == "ok"
        await stopping
        assert await states(gateway) == [State.DISPATCHING, State.COMPLETED]
