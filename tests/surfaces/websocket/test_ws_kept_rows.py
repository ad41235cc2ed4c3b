"""Rows that cannot be read are rows with an error: they hide no other result and can be acknowledged."""

import json
from pathlib import Path

import pytest
from tests.gateway import TOKEN, Api
from tests.wsgate import Home, started

from agent_gate.client.client import Client
from agent_gate.core.call import Call, Caller, Outcome, Result, State
from agent_gate.results.kept import KEEP_SECONDS, keep
from agent_gate.store.statement import Statement

NO_CONTENT = [
    {"content": "x"},
    {"content": 5},
    {"content": {}},
    {"content": [5]},
    {"content": ["x"]},
    {"content": [[]]},
    {"content": [{"type": "text", "text": 5}]},
    {"content": [{"type": 5}]},
    {"content": [{"type": "text", "text": {}}]},
    {"content": [None]},
]
BODIES = [json.dumps(said).encode() for said in NO_CONTENT] + [b'"x"', b"[]", b"{", b"\xff", b"5"]


def rows(now: float) -> list[Statement]:
    """One row for each body, as they were kept before results were checked, and two good ones among them."""
    bodies = [b'{"content":[{"type":"text","text":"good"}]}', *BODIES, b'{"structuredContent":{"n":1}}']
    return [
        keep(
            Call(tool="get_state", arguments={}, caller=Caller(name="first"), id=f"{index:032x}"),
            "get_state",
            "get_state()",
            "{}",
            Outcome(call_id=f"{index:032x}", state=State.COMPLETED, result=Result(body, "mcp")),
            now + index,
        )
        for index, body in enumerate(bodies)
    ]


def spoil(column: str, value: object) -> Statement:
    return Statement(f"UPDATE results SET {column} = ? WHERE call = ?", (value, f"{0:032x}"))


async def pending(home: Home) -> list[dict[str, str]]:
    async with home.agent() as agent:
        return (await agent.ask("get_pending_results"))["result"]["results"]


async def test_a_row_that_cannot_be_read_is_one_row_with_an_error_after_a_restart_too(
    tmp_path: Path, api: Api
) -> None:
    async with started(tmp_path, api) as home:
        await home.gateway.kept.store.write(*rows(home.gateway.clock.now()))
        first = await pending(home)
    async with started(tmp_path, api) as home:
        assert await pending(home) == first
        results = [json.loads(row["result"]) for row in first]
        assert (results[0]["status"], results[0]["data"]) == ("executed", "good")
        assert results[-1]["data"] == {"n": 1}
        for result in results[1:-1]:
            assert result["status"] == "error"
            assert result["error"]["code"] == "OUTCOME_UNKNOWN"
        async with Client(home.url, TOKEN) as client:
            assert [row["request_id"] for row in await client.pending()] == [
                row["request_id"] for row in first
            ]
            assert await client.acknowledge([row["request_id"] for row in first]) == len(first)
            assert await client.pending() == []


@pytest.mark.parametrize(("more", "left"), [(-60.0, len(BODIES) + 2), (60.0, 0)])
async def test_a_result_that_nobody_acknowledged_goes_after_its_time(
    tmp_path: Path, api: Api, more: float, left: int
) -> None:
    async with started(tmp_path, api) as home:
        now = home.gateway.clock.now()
        await home.gateway.kept.store.write(*rows(now - KEEP_SECONDS - more))
        assert len(await pending(home)) == left


@pytest.mark.parametrize(
    ("column", "value"),
    [("kind", "sound"), ("state", "gone"), ("client_id", "{"), ("body", b"{}"), ("kind", "error")],
)
async def test_whatever_is_wrong_with_a_row_the_others_are_read(
    tmp_path: Path, api: Api, column: str, value: object
) -> None:
    async with started(tmp_path, api) as home:
        await home.gateway.kept.store.write(*rows(home.gateway.clock.now()), spoil(column, value))
        assert len(await pending(home)) == len(BODIES) + 2
