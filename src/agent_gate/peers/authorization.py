"""What a paired component may do: its role's profile, what the operator adds or takes away, and a lease.

Pairing gives a name and nothing else. What no profile and no rule allows is denied; a denial beats whatever allows;
a lease can only reduce what is left.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agent_gate.errors import ConfigError, Forbidden
from agent_gate.peers.roles import ROLES

PUBLISH, SUBSCRIBE = "events.publish:", "events.subscribe:"
CONTROL = ("control.config:", "control.sessions:", "control.peers:", "control.subscriptions:")
VERBS = (PUBLISH, SUBSCRIBE, *CONTROL)
CALLS = "tool.call."
ACTION = re.compile(r"[a-z]+\.[a-z]+:(\*|[a-z0-9_]+(\.[a-z0-9_]+)*(\.\*)?)")

PROFILES: Mapping[str, tuple[str, ...]] = {
    "tool_host": (
        "events.publish:tool.call.completed",
        "events.publish:tool.call.failed",
        "events.subscribe:tool.call.requested",
    ),
    "subscriber": (
        "events.subscribe:channel.*",
        "events.subscribe:cron.*",
        "events.subscribe:heartbeat.tick",
        "events.subscribe:agent.*",
    ),
    "listener": (
        "events.publish:channel.message.received",
        "events.publish:channel.message.edited",
        "events.publish:channel.message.deleted",
    ),
    "cli_admin": tuple(f"{verb}*" for verb in VERBS),
}


def check_action(pattern: str) -> str:
    """An action, or all that begin alike; anything else would match nothing and look as if it did."""
    if not pattern.startswith(VERBS) or not ACTION.fullmatch(pattern):
        raise ConfigError(
            f"{pattern!r} is no action. Write one such as events.subscribe:cron.* ({', '.join(VERBS)})"
        )
    return pattern


def covers(pattern: str, action: str) -> bool:
    return action.startswith(pattern[:-1]) if pattern.endswith("*") else action == pattern


@dataclass(frozen=True, slots=True)
class PeerPolicy:
    """What the operator says of one peer, beside its role."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def plus(self, allow: Iterable[str]) -> "PeerPolicy":
        return PeerPolicy((*self.allow, *allow), self.deny)


NOTHING_SAID = PeerPolicy()


@dataclass(frozen=True, slots=True)
class Scope:
    """What something is about; a lease that names one of these is for that alone."""

    tenant: str = ""
    agent: str = ""
    session: str = ""

    def holds(self, other: "Scope") -> bool:
        """Whether something about `other` lies within this."""
        pairs = ((self.tenant, other.tenant), (self.agent, other.agent), (self.session, other.session))
        return all(not own or own == theirs for own, theirs in pairs)


ANYTHING = Scope()


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerLease:
    """A short-lived permission to do less: some actions, within some scope, until some time. `gateway` has the stream that
    it ends with."""

    lease_id: str
    owner: str
    capabilities: tuple[str, ...]
    expires_at: float
    scope: Scope = ANYTHING
    disconnect_bound: bool = False
    gateway: str = ""

    def allows(self, action: str, about: Scope) -> bool:
        return self.scope.holds(about) and any(covers(one, action) for one in self.capabilities)


def why_not(
    action: str,
    component_type: str,
    policy: PeerPolicy = NOTHING_SAID,
    lease: PeerLease | None = None,
    about: Scope = ANYTHING,
) -> str:
    """Why a component may not do this; empty where it may."""
    role = ROLES.get(component_type)  # type: ignore[call-overload]
    if role is None:
        return f"{component_type} is no kind of component"
    if any(covers(one, action) for one in policy.deny):
        return f"{action} is denied to it"
    allowed = any(covers(one, action) for one in PROFILES[role]) or any(
        covers(one, action) and names_calls(one, action) for one in policy.allow
    )
    if not allowed:
        return f"{action} is nothing that the role {role} may do"
    if lease is not None and not lease.allows(action, about):
        return f"{action} is not within its lease"
    return ""


def names_calls(pattern: str, action: str) -> bool:
    """Calls of tools are told to nobody by accident: a rule that allows everything does not name them."""
    kind = action.partition(":")[2]
    return not kind.startswith(CALLS) or pattern.partition(":")[2].startswith("tool.")


def check_allowed(
    action: str,
    component_type: str,
    policy: PeerPolicy = NOTHING_SAID,
    lease: PeerLease | None = None,
    about: Scope = ANYTHING,
) -> None:
    if why := why_not(action, component_type, policy, lease, about):
        raise Forbidden(f"This component may not: {why}. See peers.policy in the configuration")
