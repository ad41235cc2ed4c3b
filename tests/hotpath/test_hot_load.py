"""Many calls at once over few connections: whatever is pipelined, split or refused, each answer is its own."""

import asyncio
import gc
import json
import logging
import random
from pathlib import Path
from typing import Any

import pytest
from tests.hotpath.hot_gate import (
    ERAS,
    TOKEN,
    Wire,
    code_of,
    connected,
    post,
    request,
    running,
    text_of,
)
from tests.waiting import PATIENCE

from agent_gate.app import Gateway
from agent_gate.core.call import State
from agent_gate.observe.metrics import Tally
from agent_gate.store import durable
from agent_gate.store.engine import Fault

RULES = "rules: [{pattern: 'up__wipe(*)', action: deny}, {pattern: 'up__*', action: allow}]\n"
KINDS = {"up__echo": "ok", "up__wipe": "FORBIDDEN", "up__nothing": "-32602"}


def mixed(count: int, seed: int) -> list[tuple[int, str, bytes]]:
    """Calls that end in different ways, each with a number of its own."""
    dice = random.Random(seed)
    made = []
    for number in range(count):
        tool = dice.choices(list(KINDS), [8, 1, 1])[0]
        number = seed * 100_000 + number
        made.append((number, tool, post(tool, {"text": f"text {number}"}, dice.choice(ERAS), number)))
    return made


def check(number: int, tool: str, answer: Any) -> None:
    assert answer["id"] == number
    assert code_of(answer) == KINDS[tool]
    if tool == "up__echo":
        assert text_of(answer) == f"text {number}"


async def rows(gateway: Gateway) -> list[tuple[str, str]]:
    await gateway.kept.store.flush()
    return await gateway.kept.store.read("SELECT state, call FROM record")


async def test_every_answer_under_load_belongs_to_its_request(tmp_path: Path) -> None:
    async def client(port: int, seed: int) -> None:
        async with connected(port) as wire:
            for number, tool, data in mixed(60, seed):
                check(number, tool, (await wire.ask(data))[1])

    async with running(tmp_path, RULES) as (gateway, upstream, port):
        await asyncio.gather(*(client(port, seed) for seed in range(16)))
        wanted = [tool for seed in range(16) for _, tool, _ in mixed(60, seed)]
        found = await rows(gateway)
        assert len(upstream.calls) == wanted.count("up__echo")
        assert sum(state == State.DISPATCHING for state, _ in found) == wanted.count("up__echo")
        assert sum(state == State.COMPLETED for state, _ in found) == wanted.count("up__echo")
        assert len({call for state, call in found if state == State.COMPLETED}) == wanted.count("up__echo")


@pytest.mark.parametrize("size", [1, 7, 100, 5000])
async def test_pipelined_requests_in_any_pieces_are_answered_in_order(tmp_path: Path, size: int) -> None:
    async with running(tmp_path, RULES) as (_, _, port), connected(port) as wire:
        calls = mixed(20, size)
        stream = b"".join(data for _, _, data in calls)
        for at in range(0, len(stream), size):
            wire.send(stream[at : at + size])
            if at % 997 == 0:
                await asyncio.sleep(0)
        answers = [(await wire.answer())[1] for _ in calls]
    assert [answer["id"] for answer in answers] == [number for number, _, _ in calls]
    for (number, tool, _), answer in zip(calls, answers, strict=True):
        check(number, tool, answer)


async def test_metrics_count_every_call_by_surface_and_nothing_is_logged_per_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with running(tmp_path, RULES) as (gateway, _, port), connected(port) as wire:
        rest = request(json.dumps({"text": "x"}).encode(), "/api/tools/up__echo")
        caplog.clear()
        for number in range(20):
            assert code_of((await wire.ask(post("up__echo", {"text": "x"}, number=number)))[1]) == "ok"
        for _ in range(5):
            assert (await wire.ask(rest))[0] == 200
        text = "\n".join(gateway.metrics.calls.lines())
        assert counted(text, 'surface="mcp"') == 20
        assert counted(text, 'surface="rest"') == 5
        assert not [record for record in caplog.records if record.levelno >= logging.INFO]


@pytest.mark.parametrize(
    "data",
    [
        *(post("up__echo", {"text": "x"}, era) for era in ERAS),
        request(b'{"text": "x"}', "/api/tools/up__echo"),
    ],
    ids=[*ERAS, "rest"],
)
async def test_a_call_leaves_nothing_for_the_collector(tmp_path: Path, data: bytes) -> None:
    """Cycles cost nothing by themselves; under load their collection stops everybody for many milliseconds.

    What calls leave they leave each time; what a thread of an earlier test leaves here, it leaves once.
    """

    async def left_by_calls(wire: Wire) -> int:
        gc.collect()
        gc.disable()
        try:
            for _ in range(100):
                assert (await wire.ask(data))[0] == 200
            return gc.collect()
        finally:
            gc.enable()

    async with running(tmp_path, RULES) as (_, _, port), connected(port) as wire:
        for _ in range(5):
            assert (await wire.ask(data))[0] == 200
        left = []
        while not left or (min(left) >= 100 and len(left) < 3):
            left.append(await left_by_calls(wire))
        assert min(left) < 100


async def test_metrics_tell_which_requests_and_replies_had_to_be_parsed(tmp_path: Path) -> None:
    async with running(tmp_path, RULES) as (gateway, _, port), connected(port) as wire:
        before = heads_of(gateway)
        for number in range(10):
            assert code_of((await wire.ask(post("up__echo", {"text": "x"}, number=number)))[1]) == "ok"
        after = heads_of(gateway)
        assert after["requests", "parsed"] - before["requests", "parsed"] == 1
        assert after["requests", "repeated"] - before["requests", "repeated"] == 9
        assert sum(after[path] - before[path] for path in after if path[0] == "replies") >= 10


def heads_of(gateway: Gateway) -> dict[tuple[str, ...], float]:
    series = gateway.metrics.series["agent_gate_http_heads_total"]
    assert isinstance(series, Tally)
    return dict(series.read())


def counted(text: str, label: str) -> float:
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if label in line)


HEAD = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
WIPE = post("up__echo", {"text": "smuggled"})


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (f"Content-Length: {len(WIPE)}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (f"Content-Length: 0\r\nContent-Length: {len(WIPE)}\r\n\r\n", 400),
        ("Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        ("Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400),
        ("Content-Length: +0\r\n\r\n", 400),
        ("Content-Length: 99999999999\r\n\r\n", 413),
        (f"X: {'y' * 70_000}\r\n\r\n", 431),
    ],
)
async def test_a_call_smuggled_behind_an_ambiguous_or_oversized_request_never_runs(
    tmp_path: Path, head: str, status: int
) -> None:
    async with running(tmp_path, RULES) as (_, upstream, port), connected(port) as wire:
        wire.send((HEAD + head).encode() + WIPE)
        assert (await wire.answer())[0] == status
        assert await wire.reader.read() == b""
        async with connected(port) as other:
            assert code_of((await other.ask(post("up__echo", {"text": "after"})))[1]) == "ok"
        assert len(upstream.calls) == 1


async def test_a_trusted_read_only_call_may_answer_before_its_row_is_durable(tmp_path: Path) -> None:
    server = {"record": "behind", "traits": {"read_only": True}}
    async with running(tmp_path, RULES, **server) as (gateway, _, port), connected(port) as wire:
        writes = []
        write = gateway.kept.store.write
        gateway.kept.store.write = lambda *statements: (writes.append(statements), write(*statements))[1]
        assert code_of((await wire.ask(post("up__echo", {"text": "x"})))[1]) == "ok"
        assert writes == []
        del gateway.kept.store.write
        [(state, call)] = await rows(gateway)
        [(text,)] = await gateway.kept.store.read("SELECT body FROM record WHERE call = ?", (call,))
        body = json.loads(text)
        assert (state, body["rule"], body["arguments"]) == (State.COMPLETED, "allow up__*", {"text": "x"})
        assert body["size"] > 0
        assert body["marks"].keys() >= {"received", "dispatched", "replied"}


async def test_a_call_that_runs_on_ahead_of_its_row_gets_it_while_it_runs(tmp_path: Path) -> None:
    server = {"record": "behind", "traits": {"read_only": True}}
    async with running(tmp_path, RULES, **server) as (gateway, upstream, port), connected(port) as wire:
        written = asyncio.Event()
        loop = asyncio.get_running_loop()

        def committed(_head: object, added: object) -> None:
            if added:  # sources and pins are committed meanwhile too, which adds no row
                loop.call_soon_threadsafe(written.set)

        gateway.kept.store.watch(committed)
        wire.send(post("up__slow", {"text": "x"}))
        await asyncio.wait_for(written.wait(), PATIENCE)
        assert [state for state, _ in await rows(gateway)] == [State.DISPATCHING]
        upstream.release.set()
        assert code_of((await wire.answer())[1]) == "ok"
        assert [state for state, _ in await rows(gateway)] == [State.DISPATCHING, State.COMPLETED]


async def test_a_read_only_call_does_not_go_ahead_of_a_row_that_cannot_be_written(tmp_path: Path) -> None:
    server = {"record": "behind", "traits": {"read_only": True}}
    async with running(tmp_path, RULES, **server) as (gateway, upstream, port), connected(port) as wire:
        await gateway.kept.store.flush()
        gateway.kept.store._writer.fault = Fault("fsync failed", broken=True)
        assert code_of((await wire.ask(post("up__echo", {"text": "x"})))[1]) == "DEPENDENCY_UNAVAILABLE"
        assert upstream.calls == []


async def test_read_only_calls_wait_for_their_rows_while_too_many_are_unwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = {"record": "behind", "traits": {"read_only": True}}
    async with running(tmp_path, RULES, **server) as (gateway, _, port), connected(port) as wire:
        monkeypatch.setattr(durable, "CROWD", 0)
        written = gateway.kept.store.head.seq
        assert code_of((await wire.ask(post("up__echo", {"text": "x"})))[1]) == "ok"
        assert gateway.kept.store.head.seq > written
