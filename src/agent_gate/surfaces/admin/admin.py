"""`Admin`: everything the API works on, handed over by the composition root."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agent_gate.access.view import View
from agent_gate.approval.grants import Grants
from agent_gate.audit import Heads
from agent_gate.calls import Calls
from agent_gate.config.configuration import Configuration
from agent_gate.core.call import Caller
from agent_gate.core.catalog import Shelf
from agent_gate.core.ports import Clock
from agent_gate.errors import InvalidArgs
from agent_gate.observe.metrics import Metrics
from agent_gate.policy import Policy
from agent_gate.store.statement import Store
from agent_gate.surfaces.admin.keys import Keys
from agent_gate.surfaces.admin.login import Logins
from agent_gate.surfaces.admin.passphrase import Passphrases
from agent_gate.surfaces.admin.people import OPERATOR, People
from agent_gate.surfaces.admin.policy_faults import PolicyFaults
from agent_gate.surfaces.admin.trends import Trends
from agent_gate.surfaces.listeners import Listeners


class Operated(Protocol):
    """The sources, as an operator handles them."""

    def states(self) -> Sequence[Any]: ...
    def reconnect(self, key: str) -> None: ...
    async def disconnect(self, key: str, person: str) -> None: ...
    def changes(self) -> Sequence[Any]: ...
    def accept(self, source: str, tool: str, seen: str = "") -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Admin:
    """Parts that a reload replaces come as functions."""

    calls: Calls
    grants: Grants
    store: Store
    clock: Clock
    shelf: Shelf
    view: View
    sources: Operated
    metrics: Metrics
    trends: Trends
    keys: Keys
    people: People
    logins: Logins
    passphrases: Passphrases
    audit_key: bytes
    heads: Heads
    configuration: Configuration
    listeners: Listeners
    policy: Callable[[], Policy]
    policy_faults: PolicyFaults
    channel_faults: Callable[[], Mapping[str, str]]
    callers: Callable[[], Sequence[Caller]]
    refresh_agents: Callable[[], None]
    reload: Callable[[], Awaitable[list[str]]]

    def warnings(self) -> list[str]:
        """What works, but hardly as it was meant."""
        return [*self.configuration.warnings(), *self.policy_faults.warnings()]

    def caller(self, name: object) -> Caller:
        """The agent of that name, as it would call."""
        found = next((caller for caller in self.callers() if caller.name == name), None)
        if found is None:
            raise InvalidArgs(f"There is no agent named {str(name)[:64]}. See `agent-gate status`")
        return found

    def person_of(self, login: object) -> str:
        """The name of the person with that login; the operator has none to give."""
        if login in (None, "", OPERATOR):
            return OPERATOR
        person = self.people.logins().get(str(login))
        if person is None:
            raise InvalidArgs(f"Nobody under `people:` has the login {str(login)[:64]}")
        return person
