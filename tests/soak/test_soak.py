"""`make soak` in short, and what it would say of a gateway that keeps something."""

import asyncio
import shutil
import time
from dataclasses import replace

import pytest
from bench.machine import CORES
from bench.soak import SILENCE, TABLES, Plan, Sample, Soak, Soaked, Tally, faults, report, slope, soak

NOTHING = {table.name: 0 for table in TABLES}
EMPTY = Sample(at=0.0, rss_mb=70.0, cpu_us=0.0, files=20, tasks=10, connections=0, sessions=0, rows=NOTHING)
HOUR = Plan()


def test_agents_of_all_kinds_come_call_and_leave_nothing_behind():
    if shutil.which("gcc") is None:
        pytest.skip("no C compiler for the server that is called")
    found = soak(Plan(minutes=0.05, agents=20, rate=50), set(CORES))
    assert faults(found) == []
    assert found.tally.calls > 50
    assert found.samples[-1].connections >= 19  # all but one that may be between two calls
    assert found.samples[-1].sessions == 4
    said = report(found)
    assert said["memory_of_an_agent_kb"] > 0
    assert said["rows"]["record"] == [0, 2 * found.tally.calls]


def hour(*, grows=0.0, left=EMPTY, tally=None, verified=True, plan=HOUR):
    """An hour whose memory grows by so many megabytes a minute."""
    samples = [replace(EMPTY, at=60.0 * minute, rss_mb=500 + grows * minute) for minute in range(61)]
    tally = tally or Tally(calls=100, big=1)
    written = replace(left, rows={**left.rows, "record": 2 * tally.calls})
    return Soaked(plan, tally, EMPTY, replace(EMPTY, rss_mb=500.0), samples, written, verified)


def test_an_hour_without_a_trace_is_no_fault():
    assert faults(hour()) == []
    assert faults(hour(grows=0.9)) == []


def test_memory_that_grows_is_a_fault_with_its_slope():
    assert faults(hour(grows=1.5)) == ["memory grew by 1.50 MB a minute"]


def test_what_the_first_minutes_take_does_not_count():
    found = hour()
    warm = [one if one.at >= 600 else replace(one, rss_mb=100 + one.at / 2) for one in found.samples]
    assert slope(warm) == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize("name", ["files", "tasks", "connections", "sessions"])
def test_what_is_still_open_after_the_agents_left_is_a_fault(name):
    left = replace(EMPTY, **{name: getattr(EMPTY, name) + 1})
    assert [one.partition(":")[0] for one in faults(hour(left=left))] == [name]


def test_a_row_that_is_left_is_a_fault_but_for_sums_and_seals_and_so_is_one_that_is_missing():
    left = replace(EMPTY, rows={**NOTHING, "results": 3})
    assert faults(hour(left=left)) == ["rows of results: 0 before the agents came, 3 after they left"]
    summed = replace(EMPTY, rows={**NOTHING, "seals": 5, "trends": 60})
    assert faults(hour(left=summed)) == []
    lacking = replace(hour(), tally=Tally(calls=101, big=1))
    assert faults(lacking) == ["101 calls are 202 rows, and the record has 200"]


def test_failed_calls_lost_agents_and_a_record_that_does_not_verify_are_faults():
    tally = Tally(calls=100, big=1, lost=2, errors=["SocketAgent: no"])
    assert faults(hour(tally=tally, verified=False)) == [
        "1 calls failed; the first: SocketAgent: no",
        "2 agents lost the connection that they held",
        "the record does not verify",
    ]


class Sleeper(Soak):
    """Agents whose machine gives them no CPU for a while; their calls fail, or wait for `answered`."""

    def __init__(self, plan):
        self.plan, self.tally, self.busy, self.owed = plan, Tally(), set(), 0
        self.kinds, self.awake, self.slept_until = [["a"], ["b"], ["c"]], time.monotonic(), 0.0
        self.answered = asyncio.Event()

    async def _ask(self, _agent, _number):
        await self.answered.wait()
        raise ConnectionError("closed")

    def sleep(self, seconds):
        self.awake -= seconds
        return self._wake_up()


async def test_a_call_that_the_agents_slept_through_says_nothing_of_the_gateway():
    soak = Sleeper(HOUR)
    through = asyncio.create_task(soak._call(0))
    await asyncio.sleep(0)
    soak.sleep(SILENCE + 1)
    after = asyncio.create_task(soak._call(1))
    await asyncio.sleep(0)
    soak.answered.set()
    await asyncio.gather(through, after)
    assert (soak.tally.overslept, len(soak.tally.errors)) == (1, 1)
    assert soak.tally.slept > SILENCE


def test_what_was_due_during_a_sleep_is_not_all_made_up_for():
    soak = Sleeper(HOUR)
    assert soak._miss(20) == 0
    assert soak._miss(1000) == 900
    assert soak.tally.late == 900
