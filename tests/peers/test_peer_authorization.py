"""Who may do what: every role against every action, overrides with deny first, leases that only take away."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.peers.handshakes import ShiftedClock

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


def test_a_lease_has_its_scope_capabilities_time_and_owner() -> None:
    clock = ShiftedClock()
    leases = PeerLeases(clock)
    lease = leases.issue(
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
    assert leases.use("desk", lease.lease_id) is lease
    with pytest.raises(Forbidden):
        leases.use("other", lease.lease_id)
    clock.by = 61.0
    assert not leases.holds(lease)
    with pytest.raises(Forbidden):
        leases.use("desk", lease.lease_id)


def test_a_lease_ends_when_it_is_revoked_or_its_connection_ends() -> None:
    leases = PeerLeases(ShiftedClock())
    wanted = ("events.subscribe:heartbeat.tick",)
    bound = leases.issue("desk", "subscriber", wanted, disconnect_bound=True)
    loose = leases.issue("desk", "subscriber", wanted)
    for lease in (bound, loose):
        leases.disconnected(lease)
    assert (leases.holds(bound), leases.holds(loose)) == (False, True)
    leases.revoke("desk", loose.lease_id)
    assert not leases.holds(loose)


def test_a_lease_that_would_add_something_is_refused() -> None:
    leases = PeerLeases(ShiftedClock())
    with pytest.raises(Forbidden, match="only reduce"):
        leases.issue("desk", "subscriber", ("events.publish:cron.triggered",))
    with pytest.raises(Forbidden, match="only reduce"):
        leases.issue("desk", "subscriber", ("events.subscribe:*",))
    with pytest.raises(InvalidArgs):
        leases.issue("desk", "subscriber", ())
    with pytest.raises(InvalidArgs):
        leases.issue("desk", "subscriber", ("events.subscribe:cron.*",), seconds=1e9)


def test_a_component_holds_a_few_leases_at_most() -> None:
    leases = PeerLeases(ShiftedClock())
    for _ in range(MOST_PER_PEER):
        last = leases.issue("desk", "subscriber", ("events.subscribe:cron.*",))
    with pytest.raises(RateLimited):
        leases.issue("desk", "subscriber", ("events.subscribe:cron.*",))
    leases.revoke("desk", last.lease_id)
    leases.issue("desk", "subscriber", ("events.subscribe:cron.*",))
