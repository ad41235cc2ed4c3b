"""`Admin`: everything the API works on, handed over by the composition root."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent_gate.access.keys import Keys
from agent_gate.access.login import Logins
from agent_gate.access.oidc.flows import SealedFlows
from agent_gate.access.oidc.people import VouchedPeople
from agent_gate.access.oidc.sessions import ProviderSessions
from agent_gate.access.passphrase import Passphrases
from agent_gate.access.people import OPERATOR, People
from agent_gate.access.sign_in.desk import SignInDesk
from agent_gate.access.view import View
from agent_gate.approval.channels.push import Pushing
from agent_gate.approval.grants import Grants
from agent_gate.audit import Heads
from agent_gate.audit.counting import Trends
from agent_gate.calls import Calls
from agent_gate.calls.events import EventFeed
from agent_gate.config.configuration import Configuration
from agent_gate.config.files.edit import Edit
from agent_gate.config.files.yamledit import save
from agent_gate.config.files.yamlfile import read_text
from agent_gate.core.call import Caller, Outcome
from agent_gate.core.catalog import Shelf
from agent_gate.core.ports import Clock, Screens
from agent_gate.core.source_state import AccountState, DefinitionChange, SourceState
from agent_gate.errors import ConfigError, InvalidArgs
from agent_gate.observe.lines import SourceLine
from agent_gate.observe.metrics import Metrics
from agent_gate.peers.identity import GatewayIdentity
from agent_gate.peers.pairing import Confirm, TellPhase, Wish
from agent_gate.peers.records import Peer, Peers
from agent_gate.policy import Policy
from agent_gate.store.gateways import Gateways
from agent_gate.store.leases import Leases
from agent_gate.store.statement import Store
from agent_gate.surfaces.admin.policy_faults import PolicyFaults
from agent_gate.surfaces.listeners import Listeners
from agent_gate.vault.custody import Custody


class Operated(Protocol):
    """The sources, as an operator handles them."""

    def states(self) -> Sequence[SourceState]: ...
    def reconnect(self, key: str) -> None: ...
    async def disconnect(self, key: str, person: str) -> None: ...
    def changes(self) -> Sequence[DefinitionChange]: ...
    def accept(self, source: str, tool: str, seen: str = "") -> bool: ...
    def watched(self) -> Sequence[Screens]: ...
    def lines(self, key: str) -> Sequence[SourceLine]: ...


class SignInRecord(Protocol):
    """Where the end of a sign-in is put on record."""

    async def finish(self, source: str, person: str, answer: str, surface: str) -> Outcome: ...


class AccountDesk(Protocol):
    """The accounts of sources, as people connect them."""

    def all(self) -> Sequence[AccountState]: ...
    def status(self, source: str, caller: str = "") -> AccountState: ...
    def holder(self, agent: str) -> str: ...
    async def find_owner(self, state: str) -> tuple[str, str]: ...
    async def find_begun(self, pasted: str, initiator: str) -> str: ...
    @property
    def calls(self) -> SignInRecord: ...


class VouchedLogins(Protocol):
    """People who log in at a provider."""

    @property
    def sessions(self) -> ProviderSessions: ...
    @property
    def people(self) -> VouchedPeople: ...
    @property
    def flows(self) -> SealedFlows: ...
    @property
    def seconds(self) -> float: ...
    async def end_by_provider(self, logout_token: str) -> int: ...


class Peered(Protocol):
    """The gateway among its peers, as an operator handles them."""

    peers: Peers

    @property
    def identity(self) -> GatewayIdentity: ...
    def known(self) -> list[Peer]: ...
    async def pair(
        self, wish: Wish, person: str, *, confirm: Confirm = ..., told: TellPhase = ..., trial: bool = False
    ) -> str: ...
    async def rotate(self, name: str, person: str) -> Peer: ...
    async def revoke(self, name: str, person: str) -> Peer: ...
    async def trust(self, name: str, person: str, *, trusted: bool = True) -> Peer: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WhoComesIn:
    """Who may come in, as an agent or as a person."""

    keys: Keys
    people: People
    logins: Logins
    passphrases: Passphrases
    vouching: VouchedLogins
    callers: Callable[[], Sequence[Caller]]
    refresh_agents: Callable[[], None]
    sign_in: SignInDesk
    issuer: Callable[[], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The record, and what it is verified with."""

    store: Store
    audit_key: bytes
    cut_key: bytes | None
    heads: Heads
    cut: Callable[[float, str], Awaitable[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    metrics: Metrics
    trends: Trends


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The configuration in use and what was made of it; what a reload replaces comes as functions."""

    configuration: Configuration
    listeners: Listeners
    policy: Callable[[], Policy]
    policy_faults: PolicyFaults
    channel_faults: Callable[[], Mapping[str, str]]
    reload: Callable[[], Awaitable[list[str]]]

    def warnings(self) -> list[str]:
        """What works, but hardly as it was meant."""
        return [*self.configuration.warnings(), *self.policy_faults.warnings()]

    async def write(self, path: Path, edit: Edit, otherwise: str) -> None:
        """Save and reload; where the whole does not load, the file is as it was and `otherwise` is said."""
        before = read_text(path)
        try:
            save(path, edit.text)
            await self.reload()
        except (ConfigError, OSError) as error:
            save(path, before)
            raise InvalidArgs(f"{otherwise}: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrusted:
    """Secrets and accounts of others: where they are kept, how they are got, who has to hear of a new one, what hides
    them in a text, and whether somebody has an account at a source of a name."""

    custody: Custody
    sign_ins: AccountDesk
    changed: Callable[[str], list[str]]
    uses: Callable[[], Mapping[str, list[str]]]
    mask: Callable[[str], str]
    has_account: Callable[[str], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fellows:
    """Who else is on the store, and what each does alone."""

    gateways: Gateways
    leases: Leases


@dataclass(frozen=True, slots=True, kw_only=True)
class Admin:
    """Calls and what they are made of, and groups of what stands beside them."""

    calls: Calls
    grants: Grants
    clock: Clock
    shelf: Shelf
    view: View
    sources: Operated
    peering: Peered
    pushing: Pushing
    feed: EventFeed
    who: WhoComesIn
    record: Ledger
    numbers: Numbers
    setup: Setup
    secrets: Entrusted
    others: Fellows

    def caller(self, name: object) -> Caller:
        """The agent of that name, as it would call."""
        found = next((caller for caller in self.who.callers() if caller.name == name), None)
        if found is None:
            raise InvalidArgs(f"There is no agent named {str(name)[:64]}. See `agent-gate status`")
        return found

    def person_of(self, login: object) -> str:
        """The name of the person with that login; the operator has none to give."""
        if login in (None, "", OPERATOR):
            return OPERATOR
        person = self.who.people.logins().get(str(login))
        if person is None:
            raise InvalidArgs(f"Nobody under `people:` has the login {str(login)[:64]}")
        return person
