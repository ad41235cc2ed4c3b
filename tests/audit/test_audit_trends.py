"""What the numbers were: every row of the record counted once, by minutes and hours, also over a restart."""

from dataclasses import replace

import msgspec
import pytest
from tests.rows import AT, opened

from agent_gate.audit import row
from agent_gate.audit.counting import Trends
from agent_gate.core.call import State
from agent_gate.observe.metrics import Metrics
from agent_gate.observe.trends import MOST_AGENTS, OTHER, RANGES, Stretch
from agent_gate.store import Store, StoreSettings

HOUR, DAY = 3600.0, 86_400.0


class HandClock:
    """A clock that is set by hand."""

    def __init__(self, at: float = AT) -> None:
        self.at = at

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += seconds


class Gate:
    """A gateway that calls, as far as the numbers see it."""

    def __init__(self, store: Store, clock: HandClock) -> None:
        self.store, self.clock, self.metrics, self.made = store, clock, Metrics(), 0
        self.trends = Trends(store, self.metrics, clock)

    async def call(
        self, agent: str = "pi", state: State = State.COMPLETED, tool: str = "git:push", **body: object
    ) -> None:
        self.made += 1
        call = f"{self.store.chain}-{self.clock.at}-{self.made}"
        await self.store.write(row(call, state, self.clock.at, agent, tool, body))
        self.metrics.client.observe(0.02, "git")

    async def look(self, name: str = "hour") -> dict:
        return await self.trends.look_back(RANGES[name])


async def test_calls_are_counted_by_agent_state_and_reason(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        gate = Gate(store, HandClock())
        await gate.call()
        await gate.call("coder", State.FAILED, error={"code": "UPSTREAM_ERROR"})
        await gate.call("coder", State.REFUSED, error={"code": "RATE_LIMITED"}, count=7)
        await gate.call("coder", State.DENIED)
        found = await gate.look()
        totals = found["totals"]
        assert (totals["calls"], totals["failed"], totals["refused"]) == (2, 1, 7)
        assert dict(found["reasons"]) == {"UPSTREAM_ERROR": 1, "RATE_LIMITED": 7, "denied": 1}
        agents = {one["agent"]: (one["calls"], one["failed"], one["refused"]) for one in found["agents"]}
        assert agents == {"pi": (1, 0, 0), "coder": (1, 1, 7)}
        assert 0.01 <= totals["p50"] <= 0.025


async def test_the_machines_time_and_the_peoples_are_apart(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        gate = Gate(store, HandClock())
        gate.metrics.waits.observe(90.0, "page", "approved")
        await gate.call()
        totals = (await gate.look())["totals"]
        assert (totals["waits"], totals["waited"]) == (1, 90.0)
        assert totals["machine"] == pytest.approx(0.02)
        assert totals["p99"] < 1


async def test_every_range_has_its_points_on_one_axis_and_the_agents_days(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        gate = Gate(store, HandClock())
        await gate.trends.note()
        for _ in range(3):
            await gate.call()
            await gate.trends.note()
            gate.clock.at += DAY
        gate.clock.at -= DAY
        for name, seen in (("hour", 1), ("day", 1), ("week", 3), ("month", 3)):
            found, span = await gate.look(name), RANGES[name]
            assert len(found["points"]) == span.seconds // span.point
            assert found["points"][-1]["at"] <= gate.clock.at < found["points"][-1]["at"] + span.point
            assert sum(point["calls"] for point in found["points"]) == seen == found["totals"]["calls"]
        assert (await gate.look("week"))["agents"][0]["use"].count(1) == 3


async def test_a_row_is_counted_once_also_after_a_restart(settings: StoreSettings) -> None:
    clock = HandClock()
    async with opened(settings) as store:
        gate = Gate(store, clock)
        await gate.trends.note()
        await gate.call()
        await gate.trends.note()
        await gate.trends.note()
        await gate.call()  # nobody counts it before the end
    async with opened(settings) as store:
        gate = Gate(store, clock)
        assert (await gate.look())["totals"]["calls"] == 2
        assert (await gate.look())["totals"]["calls"] == 2
        assert (await gate.look("month"))["totals"]["calls"] == 2


async def test_what_was_recorded_before_anybody_counted_is_left_alone(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        await Gate(store, HandClock(AT - HOUR)).call()
        assert (await Gate(store, HandClock()).look())["totals"]["calls"] == 0


async def test_old_stretches_go_and_a_month_is_some_hundred_rows(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        gate = Gate(store, HandClock())
        await gate.trends.note()
        for _ in range(40 * 6):
            await gate.call()
            await gate.trends.note()
            gate.clock.at += 4 * HOUR
        rows = await store.read("SELECT step, count(*) FROM trends GROUP BY step")
        kept = dict(rows)
        assert kept[60] <= 2
        assert kept[300] <= 13
        assert 180 <= kept[3600] <= 193


async def test_two_gateways_on_one_store_are_told_together_and_apart(settings: StoreSettings) -> None:
    clock = HandClock()
    async with opened(settings) as store:
        gate = Gate(store, clock)
        await gate.trends.note()
        await gate.call()
        await gate.trends.note()
    other = replace(settings, chain="away")
    async with opened(other) as store:
        gate = Gate(store, clock)
        await gate.trends.note()
        await gate.call("coder")
        await gate.call("coder")
        found = await gate.look()
        assert found["totals"]["calls"] == 3
        assert {name: share["calls"] for name, share in found["gateways"].items()} == {"home": 1, "away": 2}
        alone = await gate.trends.look_back(RANGES["hour"], "home")
        assert alone["totals"]["calls"] == 1
        assert [one["agent"] for one in alone["agents"]] == ["pi"]


async def test_failures_of_a_source_are_told_by_caller_and_by_hour(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        gate = Gate(store, HandClock())
        await gate.trends.note()
        await gate.call("pi", State.FAILED)
        await gate.trends.note()
        gate.clock.at += 2 * HOUR
        for agent in ("pi", "pi", "coder"):
            await gate.call(agent, State.UNKNOWN)
        await gate.call("coder", State.FAILED, tool="gitlab:push")
        found, hours = await gate.trends.read_failures("git")
        assert {(one.caller, one.tool, one.count) for one in found} == {
            ("pi", "git:push", 2),
            ("coder", "git:push", 1),
        }
        assert all(one.last == gate.clock.at for one in found)
        assert hours[-1] == 3
        assert sum(hours) == 4


def test_a_flood_of_names_stays_small() -> None:
    stretch = Stretch()
    for number in range(1000):
        stretch.count(f"agent{number}", "completed", 1)
        stretch.trouble(f"t:{number}", 1, 1.0)
    more = Stretch()
    more.add(stretch)
    more.count("another", "failed", 1)
    assert len(more.agents) <= MOST_AGENTS + 1
    assert more.agents[OTHER][0] >= 900
    assert len(msgspec.json.encode(more)) < 8_000
