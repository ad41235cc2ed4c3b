"""Who may do what: every role against every action, overrides with deny first, leases that only take away."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.peers.handshakes import ShiftedClock
from tests.rows import opened

from agent_gate.errors import ConfigError, Forbidden, InvalidArgs, RateLimited
from agent_gate.peers.authorization import (
    ANYTHING,
    CONTROL,
    NOTHING_SAID,
    PUBLISH,
    SUBSCRIBE,
    PeerLease,
    PeerPolicy,
    Scope,
    check_action,
    check_allowed,
    why_not,
)
from agent_gate.peers.leases import MOST_PER_PEER, PeerLeases
from agent_gate.peers.roles import COMPONENT_TYPES
from agent_gate.store import StoreSettings

TYPES = (
    "channel.message.received",
    "channel.message.edited",
    "channel.message.deleted",
    "cron.triggered",
    "heartbeat.tick",
    "agent.turn.started",
    "agent.turn.completed",
    "agent.turn.failed",
    "agent.response.created",
    "tool.call.requested",
    "tool.call.completed",
    "tool.call.failed",
    "pairing.started",
    "pairing.completed",
    "pairing.failed",
    "approval.requested",
    "config.updated",
)
ACTIONS = [verb + kind for verb in (PUBLISH, SUBSCRIBE) for kind in TYPES] + [f"{verb}x" for verb in CONTROL]
WRITTEN_OUT = {
    "tool_host": {
        "events.publish:tool.call.completed",
        "events.publish:tool.call.failed",
        "events.subscribe:tool.call.requested",
    },
    "subscriber": {
        f"events.subscribe:{kind}"
        for kind in TYPES
        if kind.startswith(("channel.", "cron.", "agent.")) or kind == "heartbeat.tick"
    },
    "listener": {f"events.publish:{kind}" for kind in TYPES if kind.startswith("channel.message.")},
    "operator": set(ACTIONS),
}
ALL = [f"{verb}*" for verb in (PUBLISH, SUBSCRIBE, *CONTROL)]
actions, kinds = st.sampled_from(ACTIONS), st.sampled_from(COMPONENT_TYPES)
patterns = st.lists(st.sampled_from([*ACTIONS, *ALL, "events.subscribe:tool.call.*"]), max_size=4).map(tuple)


@pytest.mark.parametrize(("kind", "action"), list(product(COMPONENT_TYPES, ACTIONS)))
def test_the_role_matrix_is_what_is_written_out(kind: str, action: str) -> None:
    assert (why_not(action, kind) == "") == (action in WRITTEN_OUT[kind])


@given(action=actions, kind=kinds, allow=patterns, deny=patterns)
def test_a_denial_beats_whatever_allows(
    action: str, kind: str, allow: tuple[str, ...], deny: tuple[str, ...]
) -> None:
    policy = PeerPolicy(allow, (*deny, action))
    assert why_not(action, kind, policy)
    with pytest.raises(Forbidden, match="denied"):
        check_allowed(action, kind, policy)


@given(action=actions, kind=kinds, allow=patterns, deny=patterns, capabilities=patterns)
def test_a_lease_only_reduces(
    action: str, kind: str, allow: tuple[str, ...], deny: tuple[str, ...], capabilities: tuple[str, ...]
) -> None:
    policy = PeerPolicy(allow, deny)
    lease = PeerLease(lease_id="l", owner="o", capabilities=capabilities, expires_at=0)
    if why_not(action, kind, policy):
        assert why_not(action, kind, policy, lease)


def test_an_override_adds_what_it_names_and_nothing_else() -> None:
    policy = PeerPolicy(allow=("events.subscribe:approval.*",))
    assert not why_not("events.subscribe:approval.requested", "subscriber", policy)
    assert why_not("events.publish:approval.requested", "subscriber", policy)
    assert why_not("events.subscribe:pairing.completed", "subscriber", policy)


def test_calls_of_tools_are_told_only_where_they_are_named() -> None:
    action = "events.subscribe:tool.call.completed"
    assert why_not(action, "subscriber", PeerPolicy(allow=("events.subscribe:*",)))
    assert not why_not(action, "subscriber", PeerPolicy(allow=("events.subscribe:tool.call.*",)))
    assert not why_not(action, "subscriber", PeerPolicy(allow=(action,)))


@pytest.mark.parametrize(
    "wrong", ["", "*", "events.read:x", "events.publish:", "control.pairing:*", "events.publish:a*", "x:y"]
)
def test_what_is_no_action_is_refused(wrong: str) -> None:
    with pytest.raises(ConfigError):
        check_action(wrong)


def test_nobody_is_given_a_word_for_pairing() -> None:
    assert why_not("control.pairing:start", "operator", PeerPolicy(allow=tuple(ALL)))


@asynccontextmanager
async def leasing(
    folder: Path, clock: ShiftedClock | None = None, alive: Callable[[str], bool] = lambda _gateway: True
) -> AsyncIterator[PeerLeases]:
    """The leases on a store of their own."""
    async with opened(StoreSettings(path=folder / "gate.db")) as store:
        yield PeerLeases(store, clock or ShiftedClock(), alive)


async def test_a_lease_has_its_scope_capabilities_time_and_owner(tmp_path: Path) -> None:
    clock = ShiftedClock()
    async with leasing(tmp_path, clock) as leases:
        lease = await leases.issue(
            "desk", "subscriber", ("events.subscribe:cron.*",), scope=Scope(session="s1"), seconds=60
        )
        assert not why_not(
            "events.subscribe:cron.triggered", "subscriber", NOTHING_SAID, lease, Scope("home", "a", "s1")
        )
        assert why_not(
            "events.subscribe:cron.triggered", "subscriber", NOTHING_SAID, lease, Scope("home", "a", "s2")
        )
        assert why_not("events.subscribe:cron.triggered", "subscriber", NOTHING_SAID, lease, ANYTHING)
        assert why_not(
            "events.subscribe:heartbeat.tick", "subscriber", NOTHING_SAID, lease, Scope("home", "a", "s1")
        )
        assert await leases.use("desk", lease.lease_id) == lease
        with pytest.raises(Forbidden):
            await leases.use("other", lease.lease_id)
        clock.by = 61.0
        assert not leases.holds(lease)
        with pytest.raises(Forbidden):
            await leases.use("desk", lease.lease_id)


async def test_a_lease_ends_when_it_is_revoked_or_its_connection_ends(tmp_path: Path) -> None:
    wanted = ("events.subscribe:heartbeat.tick",)
    async with leasing(tmp_path) as leases:
        bound = await leases.issue("desk", "subscriber", wanted, disconnect_bound=True)
        loose = await leases.issue("desk", "subscriber", wanted)
        for lease in (bound, loose):
            leases.disconnected(lease)
        assert (leases.holds(bound), leases.holds(loose)) == (False, True)
        with pytest.raises(Forbidden):
            await leases.use("desk", bound.lease_id)
        await leases.revoke("desk", loose.lease_id)
        assert not leases.holds(loose)


async def test_a_lease_outlives_the_gateway_and_one_that_is_bound_to_a_stream_ends_with_it(
    tmp_path: Path,
) -> None:
    wanted = ("events.subscribe:heartbeat.tick",)
    async with leasing(tmp_path) as leases:
        loose = await leases.issue("desk", "subscriber", wanted)
        bound, unused = [
            await leases.issue("desk", "subscriber", wanted, disconnect_bound=True) for _ in range(2)
        ]
        for lease in (loose, bound):
            await leases.bind(lease)
    async with leasing(tmp_path) as leases:
        await leases.begin()
        for lease in (loose, unused):
            assert await leases.use("desk", lease.lease_id) == lease
        with pytest.raises(Forbidden, match="has ended"):
            await leases.use("desk", bound.lease_id)


async def test_a_lease_that_is_bound_to_a_stream_of_a_dead_gateway_counts_no_more(tmp_path: Path) -> None:
    alive = {"home"}
    async with leasing(tmp_path, alive=lambda gateway: gateway in alive) as leases:
        bound = await leases.issue("desk", "subscriber", ("events.subscribe:cron.*",), disconnect_bound=True)
        await leases.bind(bound)
        await leases.hear(None)
        assert leases.holds(bound)
        alive.clear()
        assert not leases.holds(bound)


async def test_a_lease_that_would_add_something_is_refused(tmp_path: Path) -> None:
    async with leasing(tmp_path) as leases:
        with pytest.raises(Forbidden, match="only reduce"):
            await leases.issue("desk", "subscriber", ("events.publish:cron.triggered",))
        with pytest.raises(Forbidden, match="only reduce"):
            await leases.issue("desk", "subscriber", ("events.subscribe:*",))
        with pytest.raises(InvalidArgs):
            await leases.issue("desk", "subscriber", ())
        with pytest.raises(InvalidArgs):
            await leases.issue("desk", "subscriber", ("events.subscribe:cron.*",), seconds=1e9)


async def test_a_component_holds_a_few_leases_at_most_and_those_that_are_over_do_not_count(
    tmp_path: Path,
) -> None:
    clock = ShiftedClock()
    async with leasing(tmp_path, clock) as leases:
        for _ in range(MOST_PER_PEER):
            await leases.issue("desk", "subscriber", ("events.subscribe:cron.*",))
        with pytest.raises(RateLimited):
            await leases.issue("desk", "subscriber", ("events.subscribe:cron.*",))
        await leases.issue("shelf", "subscriber", ("events.subscribe:cron.*",))
        clock.by = 901.0
        await leases.issue("desk", "subscriber", ("events.subscribe:cron.*",))
