"""The clock on the wall moves while something is open: it may end earlier, but never later than promised."""

import pytest
from tests.approval.test_parts import approval
from tests.calls.small_calls import opened

from agent_gate.approval.grants import HOUR, Grants
from agent_gate.approval.inbox import Inbox


class Clocks:
    """A wall clock that somebody sets, and one that only goes on."""

    def __init__(self):
        self.wall, self.gone = 1_000_000.0, 50.0

    def now(self):
        return self.wall

    def monotonic(self):
        return self.gone

    def pass_by(self, seconds, *, wall):
        self.gone += seconds
        self.wall += wall


@pytest.fixture
def clock():
    return Clocks()


@pytest.mark.parametrize("wall", [-HOUR, 0.0, 900.0, HOUR])
async def test_a_question_ends_in_time_however_the_clock_is_set(tmp_path, clock, wall):
    async with opened(tmp_path) as store:
        inbox = Inbox(store, clock)
        await inbox.put(approval(at=clock.wall, expires_at=clock.wall + 900))
        assert inbox.due() == []
        clock.pass_by(900, wall=wall)
        assert len(inbox.due()) == 1


async def test_a_question_gets_its_whole_time_at_most_when_the_clock_is_set_back_between_two_runs(
    tmp_path, clock
):
    async with opened(tmp_path) as store:
        await Inbox(store, clock).put(approval(at=clock.wall, expires_at=clock.wall + 900))
        clock.pass_by(0, wall=-HOUR)
        again = Inbox(store, clock)
        await again.load()
        clock.pass_by(900, wall=900)
        assert len(again.due()) == 1


@pytest.mark.parametrize("wall", [-HOUR, 0.0, HOUR])
async def test_a_grant_ends_in_time_however_the_clock_is_set(tmp_path, clock, wall):
    async with opened(tmp_path) as store:
        grants = Grants(store, clock)
        made = grants.from_answer(approval(at=clock.wall, expires_at=clock.wall + 900), "hour", "anna")
        assert made is not None
        grant = made[0]
        grants.remember(grant)
        key = (grant.caller, grant.tool_id, grant.arguments_hash, grant.definition_hash)
        assert grants.find(*key, None) == grant
        clock.pass_by(HOUR, wall=wall)
        assert grants.find(*key, None) is None


async def test_what_is_open_ends_when_the_wall_says_so_though_the_other_clock_slept(tmp_path, clock):
    async with opened(tmp_path) as store:
        inbox, grants = Inbox(store, clock), Grants(store, clock)
        asked = approval(at=clock.wall, expires_at=clock.wall + 900)
        await inbox.put(asked)
        grant, _ = grants.from_answer(asked, "hour", "anna")
        grants.remember(grant)
        clock.pass_by(0, wall=HOUR)
        assert inbox.due() == [asked]
        assert (
            grants.find(grant.caller, grant.tool_id, grant.arguments_hash, grant.definition_hash, None)
            is None
        )
