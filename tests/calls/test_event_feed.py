"""The record told as events: each kind, in its order, from any cursor, without a result or a secret in it."""

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.rows import opened
from tests.waiting import PATIENCE

from agent_gate.audit.record import row
from agent_gate.calls.events import PAGE, PAIRED, Cursor, EventFeed, Happening, as_sse
from agent_gate.core.call import State
from agent_gate.core.ports import SystemClock
from agent_gate.errors import InvalidArgs
from agent_gate.peers.envelope import EventSource, new_event
from agent_gate.store import Statement, Store, StoreSettings

DECIDED = {
    "arguments": {"room": "hall", "pin": "•••"},
    "decision": "allow",
    "session": "ses_1",
    "signature": "light_set(hall)",
    "source": "house",
    "wire": "light_set",
}
TOOL = "house:light_set"
BEGINNING = Cursor(0, 0)


def kept(tmp_path: Path) -> AbstractAsyncContextManager[Store]:
    return opened(StoreSettings(path=tmp_path / "gate.db"))


def feed_of(store: Store) -> EventFeed:
    return EventFeed(store, SystemClock(), tenant="home", gateway_id="gw")


async def write(store: Store, call: str, state: State, body: dict[str, Any], tool: str = TOOL) -> None:
    await store.write(row(call, state, 1000.0, "assistant", tool, body))


async def so_far(feed: EventFeed, after: Cursor = BEGINNING) -> list[Happening]:
    return [
        told async for told in feed.follow(after, lambda _one: True, once=True) if isinstance(told, Happening)
    ]


async def test_every_change_of_a_call_is_told_in_order_for_its_session(tmp_path: Path) -> None:
    async with kept(tmp_path) as store:
        await write(store, "c1", State.PENDING, {**DECIDED, "approval": "a1", "expires_at": 2000.0})
        await write(store, "c1", State.APPROVED, {"approval": "a1", "by": "anna", "channel": "page"})
        await write(store, "c1", State.DISPATCHING, {"approved": True})
        await write(store, "c1", State.COMPLETED, {"marks": {"received": 999.5}, "size": 12, "digest": "d"})
        told = await so_far(feed_of(store))
        assert [one.event.event_type for one in told] == [
            "approval.requested",
            "approval.approved",
            "tool.call.requested",
            "tool.call.completed",
        ]
        assert {one.event.routing.session_id for one in told} == {"ses_1"}
        assert {one.source for one in told} == {"house"}
        assert told[1].event.payload["by"] == "anna"
        assert told[2].event.payload["args"] == {"room": "hall", "pin": "•••"}
        assert told[3].event.payload["duration_ms"] == 500
        assert told[3].event.payload["result_bytes"] == 12


@pytest.mark.parametrize("state", [State.DENIED, State.EXPIRED, State.WITHDRAWN])
async def test_a_question_that_ended_is_told_as_it_ended(tmp_path: Path, state: State) -> None:
    async with kept(tmp_path) as store:
        await write(store, "c1", State.PENDING, {**DECIDED, "approval": "a1"})
        await write(store, "c1", state, {"approval": "a1", "reason": "no"})
        assert (await so_far(feed_of(store)))[-1].event.event_type == f"approval.{state.value}"


@pytest.mark.parametrize("state", [State.FAILED, State.UNKNOWN])
async def test_a_call_that_went_wrong_says_how(tmp_path: Path, state: State) -> None:
    async with kept(tmp_path) as store:
        await write(store, "c1", State.DISPATCHING, DECIDED)
        await write(store, "c1", state, {"marks": {}, "error": {"code": "TIMEOUT", "message": "late"}})
        [_, failed] = await so_far(feed_of(store))
        assert failed.event.event_type == "tool.call.failed"
        assert failed.event.payload["outcome"] == state.value
        assert failed.event.payload["error"]["code"] == "TIMEOUT"


async def test_a_call_with_one_row_is_requested_and_ended(tmp_path: Path) -> None:
    async with kept(tmp_path) as store:
        await write(store, "c1", State.COMPLETED, {**DECIDED, "marks": {}, "size": 2})
        await write(
            store, "c2", State.REFUSED, {"asked": "x", "error": {"code": "FORBIDDEN", "message": "no"}}, ""
        )
        told = await so_far(feed_of(store))
        assert [one.event.event_type.rpartition(".")[2] for one in told] == [
            "requested",
            "completed",
            "requested",
            "failed",
        ]
        rest = await so_far(feed_of(store), told[0].cursor)
        assert rest[0].event.event_type == "tool.call.completed"
        assert len({one.event.event_id for one in told}) == 4
        assert told[3].event.payload["outcome"] == "refused"


async def test_whatever_cursor_is_given_nothing_is_lost_or_doubled_over_many_pages(tmp_path: Path) -> None:
    async with kept(tmp_path) as store:
        rows = [
            row(f"c{n}", State.COMPLETED, float(n), "assistant", TOOL, {**DECIDED, "marks": {}})
            for n in range(PAGE + 20)
        ]
        await store.write(*rows)
        told = await so_far(feed_of(store))
        assert len(told) == 2 * (PAGE + 20)
        assert [one.cursor for one in told] == sorted(one.cursor for one in told)
        for at in (0, 1, PAGE - 1, PAGE, 2 * PAGE, len(told) - 1):
            rest = await so_far(feed_of(store), Cursor.read(str(told[at].cursor)))
            assert [one.event.event_id for one in rest] == [one.event.event_id for one in told[at + 1 :]]


async def test_who_follows_is_woken_by_the_next_commit(tmp_path: Path) -> None:
    async with kept(tmp_path) as store:
        feed = feed_of(store)
        following = feed.follow(feed.here(), lambda _one: True)
        waiting = asyncio.ensure_future(anext(following))
        await asyncio.sleep(0)
        event = new_event(
            "cron.triggered",
            {"n": 1},
            EventSource(component_type="tool_host", component_id="cron"),
            tenant="home",
            now=0.0,
        )
        assert await feed.publish(event, "cron") is True
        async with asyncio.timeout(PATIENCE):
            told = await waiting
        assert isinstance(told, Happening)
        assert told.event == event
        assert b"event: cron.triggered\n" in as_sse(told)
        assert await feed.publish(event, "cron") is False
        await following.aclose()  # type: ignore[attr-defined]


async def test_events_with_one_idempotency_key_are_told_once(tmp_path: Path) -> None:
    async with kept(tmp_path) as store:
        feed, source = feed_of(store), EventSource(component_type="tool_host", component_id="cron")
        first, second = (
            msgspec.structs.replace(
                new_event("cron.triggered", {}, source, tenant="home", now=0.0), idempotency_key="k"
            )
            for _ in range(2)
        )
        assert first.event_id != second.event_id
        assert [await feed.publish(event, "cron") for event in (first, second)] == [True, False]
        assert [one.event.event_id for one in await so_far(feed)] == [first.event_id]


async def test_a_gateway_tells_its_own_chain_of_a_shared_store_and_no_other(tmp_path: Path) -> None:
    async with kept(tmp_path) as store:
        await write(store, "c1", State.COMPLETED, {**DECIDED, "marks": {}})
        await store.write(
            Statement(
                "INSERT INTO record SELECT 'c2', step, at, state, caller, tool, body, 'elsewhere', seq, hash FROM record"
            )
        )
        assert {one.event.payload["call_id"] for one in await so_far(feed_of(store))} == {"c1"}


async def test_a_pairing_that_failed_is_told_with_its_error(tmp_path: Path) -> None:
    wish = {"component_type": "tool_host", "component_id": "east", "endpoint": "wss://10.0.0.1:1/v1/pair"}
    async with kept(tmp_path) as store:
        await write(store, "p1", State.DISPATCHING, {"arguments": wish, "wire": PAIRED}, PAIRED)
        error = {"code": "PAIRING_FAILED", "message": "no"}
        await write(store, "p1", State.FAILED, {"arguments": wish, "error": error}, PAIRED)
        told = [(one.event.event_type, one.event.payload) for one in await so_far(feed_of(store))]
        assert told[0] == ("pairing.started", {"pairing_id": "p1", **wish})
        assert told[1] == (
            "pairing.failed",
            {"pairing_id": "p1", **wish, "outcome": "failed", "error": error},
        )


@pytest.mark.parametrize("text", ["", "1", "x.y", "-1.0", "1.1.1", "9" * 30 + ".0", "１.0"])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgs):
        Cursor.read(text)
