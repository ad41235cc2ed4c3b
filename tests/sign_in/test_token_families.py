"""Families of tokens over a real store, with a clock that a test moves: grace, reuse, ends, and another gateway."""

import pytest
from tests.calls.small_calls import Clock, opened

from agent_gate.access.sign_in.consents import AgreedTerms
from agent_gate.access.sign_in.families import ACCESS_SECONDS, GRACE_SECONDS, MOST_LIVE, NewSignIn, SignedIn
from agent_gate.access.sign_in.faults import SignInFault
from agent_gate.access.tokens import Tokens
from agent_gate.core.call import Caller
from agent_gate.errors import Unauthorized

TERMS = AgreedTerms(agent="claude/ada", person="ada", namespaces=("notes",), mode="full", days=30)
NEW = NewSignIn(terms=TERMS, client="c1", resource="https://gate.example/mcp", destination="claude.ai")


class SmallFamilies:
    """A gateway's memory of who signed in, over a store that others may share."""

    def __init__(self, store, clock):
        self.clock = clock
        self.signed_in = SignedIn(
            store, clock, {"https://gate.example/mcp": "/mcp"}.get, lambda: Caller(name="", max_pending=3)
        )
        self.tokens = Tokens()
        self.signed_in.subscribe(lambda: self.tokens.replace(self.signed_in.credentials()))

    async def open(self):
        return await self.signed_in.open_family(NEW, lambda _family: [])

    def who(self, token):
        try:
            return self.tokens.authenticate(token).name
        except Unauthorized:
            return None


async def test_a_replayed_refresh_token_ends_its_whole_family(tmp_path):
    async with opened(tmp_path) as store:
        gate = SmallFamilies(store, Clock())
        first = await gate.open()
        second = await gate.signed_in.refresh(first.refresh, "c1")
        gate.clock.time += GRACE_SECONDS + 1
        with pytest.raises(SignInFault):
            await gate.signed_in.refresh(first.refresh, "c1")
        assert gate.who(second.access) is gate.who(first.access) is None
        with pytest.raises(SignInFault):
            await gate.signed_in.refresh(second.refresh, "c1")


async def test_within_the_grace_each_sender_gets_a_pair_that_goes_on(tmp_path):
    async with opened(tmp_path) as store:
        gate = SmallFamilies(store, Clock())
        first = await gate.open()
        second = await gate.signed_in.refresh(first.refresh, "c1")
        gate.clock.time += GRACE_SECONDS - 1
        third = await gate.signed_in.refresh(first.refresh, "c1")
        assert gate.who(second.access) == gate.who(third.access) == "claude/ada"
        gate.clock.time += 600
        assert await gate.signed_in.refresh(second.refresh, "c1")
        assert await gate.signed_in.refresh(third.refresh, "c1")


async def test_a_client_that_asks_for_tokens_without_end_is_told_to_wait_and_loses_nothing(tmp_path):
    async with opened(tmp_path) as store:
        gate = SmallFamilies(store, Clock())
        pair = await gate.open()
        for _ in range(MOST_LIVE - 1):
            pair = await gate.signed_in.refresh(pair.refresh, "c1")
        for _ in range(3):
            with pytest.raises(SignInFault) as refused:
                await gate.signed_in.refresh(pair.refresh, "c1")
            assert (refused.value.answers, refused.value.error) == (429, "temporarily_unavailable")
        [[kept]] = await store.read("SELECT COUNT(*) FROM family_tokens")
        assert kept == 2 * MOST_LIVE
        assert gate.who(pair.access) == "claude/ada"
        gate.clock.time += ACCESS_SECONDS
        assert (await gate.signed_in.refresh(pair.refresh, "c1")).access


async def test_an_access_token_ends_after_its_hour_and_its_session_goes_on(tmp_path):
    async with opened(tmp_path) as store:
        gate = SmallFamilies(store, Clock())
        pair = await gate.open()
        proof = gate.tokens.proof(pair.access)
        gate.clock.time += ACCESS_SECONDS - 1
        await gate.signed_in.forget_ended()
        assert gate.who(pair.access) == "claude/ada"
        gate.clock.time += 2
        await gate.signed_in.forget_ended()
        assert gate.who(pair.access) is None
        assert gate.tokens.still(proof, "claude/ada").namespaces == frozenset({"notes"})
        gate.clock.time += 31 * 86_400
        await gate.signed_in.forget_ended()
        assert gate.tokens.still(proof, "claude/ada") is None
        with pytest.raises(SignInFault):
            await gate.signed_in.refresh(pair.refresh, "c1")


async def test_any_gateway_goes_on_with_what_another_began_and_hears_of_its_end(tmp_path):
    async with opened(tmp_path) as store:
        clock = Clock()
        here, there = SmallFamilies(store, clock), SmallFamilies(store, clock)
        pair = await here.open()
        await there.signed_in.load()
        assert there.who(pair.access) == "claude/ada"
        fresh = await there.signed_in.refresh(pair.refresh, "c1")
        await here.signed_in.load()
        assert here.who(fresh.access) == "claude/ada"
        assert await there.signed_in.revoke_agent("claude/ada")
        await here.signed_in.load()
        assert here.who(fresh.access) is None
        with pytest.raises(SignInFault):
            await here.signed_in.refresh(fresh.refresh, "c1")


async def test_a_token_for_another_address_of_the_gateway_does_not_count(tmp_path):
    async with opened(tmp_path) as store:
        gate = SmallFamilies(store, Clock())
        pair = await gate.open()
        moved = SignedIn(store, gate.clock, {"https://new.example/mcp": "/mcp"}.get, lambda: Caller(name=""))
        await moved.load()
        assert moved.credentials() == []
        with pytest.raises(SignInFault):
            await moved.refresh(pair.refresh, "c1")


async def test_no_token_is_in_the_store_as_it_is(tmp_path):
    async with opened(tmp_path) as store:
        gate = SmallFamilies(store, Clock())
        pair = await gate.open()
        for file in tmp_path.glob("gate.db*"):
            kept = file.read_bytes()
            assert pair.access.encode() not in kept
            assert pair.refresh.encode() not in kept
        assert pair.access not in repr(pair)
