"""Remembered answers on a real store: what counts, for whom, and after a restart."""

from contextlib import asynccontextmanager

import pytest
from tests.approval.test_parts import approval
from tests.calls.small_calls import opened

from agent_gate.approval.grants import HOUR, Grants
from agent_gate.core.ports import SystemClock


class Later(SystemClock):
    """A clock that a test moves on."""

    def __init__(self):
        self.moved = 0.0

    def now(self):
        return super().now() + self.moved

    def monotonic(self):
        return super().monotonic() + self.moved


@pytest.fixture
def clock():
    return Later()


@asynccontextmanager
async def granting(folder, clock):
    async with opened(folder) as store:
        grants = Grants(store, clock)

        async def given(lifetime, **more):
            grant, statement = grants.from_answer(approval(**more), lifetime, "ann")
            await store.write(statement)
            grants.remember(grant)
            return grant

        yield store, grants, given


def counts(grants, grant, session=None):
    found = grants.find(grant.caller, grant.tool_id, grant.arguments_hash, grant.definition_hash, session)
    return found is not None and found.id == grant.id


async def test_after_a_restart_a_grant_counts_unless_it_was_revoked_or_is_over(tmp_path, clock):
    async with granting(tmp_path, clock) as (store, grants, given):
        kept = await given("always", tool_id="home:kept@1")
        revoked = await given("always", tool_id="home:revoked@1")
        hour = await given("hour", tool_id="home:hour@1")
        assert await grants.revoke(revoked.id)
        again = Grants(store, clock)
        await again.load()
        assert [counts(again, grant) for grant in (kept, revoked, hour)] == [True, False, True]
        clock.moved = HOUR
        late = Grants(store, clock)
        await late.load()
        assert [counts(late, grant) for grant in (kept, revoked, hour)] == [True, False, False]
        assert [grant.id for grant in await late.list()] == [kept.id]


async def test_after_a_restart_a_sessions_grant_counts_in_that_session_only(tmp_path, clock):
    async with granting(tmp_path, clock) as (store, _, given):
        grant = await given("session", session="run-1")
        again = Grants(store, clock)
        await again.load()
        assert [counts(again, grant, session) for session in ("run-1", "run-2", None)] == [True, False, False]


async def test_a_grant_counts_for_its_caller_tool_arguments_and_definition_and_nothing_else(tmp_path, clock):
    async with granting(tmp_path, clock) as (_, grants, given):
        grant = await given("hour", session="run-1")
        key = (grant.caller, grant.tool_id, grant.arguments_hash, grant.definition_hash)
        assert grants.find(*key, None) == grants.find(*key, "run-2") == grant
        for place in range(len(key)):
            another = tuple("another" if at == place else value for at, value in enumerate(key))
            assert grants.find(*another, "run-1") is None


async def test_revoking_takes_back_that_grant_alone_and_only_once(tmp_path, clock):
    async with granting(tmp_path, clock) as (_, grants, given):
        one, other = await given("always"), await given("hour")
        assert await grants.revoke(one.id)
        assert counts(grants, other)
        assert not await grants.revoke(one.id)
        assert not await grants.revoke("unheard-of")
        assert await grants.revoke(other.id)
        assert not counts(grants, other)
