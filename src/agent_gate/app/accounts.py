"""The vault of a running gateway and what is made of it: secrets, accounts that people connect, paired tool hosts."""

import logging
from typing import TYPE_CHECKING

from agent_gate.calls.sweeper import HOUR, Sweeper
from agent_gate.core.approval import Approval
from agent_gate.core.tasks import KeptTasks
from agent_gate.sources.accounts.credentials import Roster, parts_of
from agent_gate.sources.accounts.questions import KEY as CONNECTIONS
from agent_gate.sources.accounts.questions import AccountCalls
from agent_gate.sources.accounts.signins import SignIns
from agent_gate.sources.accounts.source import ConnectionsSource
from agent_gate.sources.accounts.source import plan as connections_plan
from agent_gate.sources.remote import Peering
from agent_gate.vault.custody import Custody

if TYPE_CHECKING:
    from agent_gate.app.gateway import Gateway

log = logging.getLogger("agent_gate.app")
FEW_MINUTES = 300.0
FEW_SECONDS = 4.0


class GatewayAccounts:
    """`roster` knows which source uses which secret; a reload replaces it whole."""

    def __init__(self, gateway: "Gateway") -> None:
        self._gateway = gateway
        self._env = gateway.configuration.environment()
        self.custody = Custody.of(
            gateway.kept.vault,
            gateway.kept.store,
            gateway.clock,
            files=gateway.configuration.folder,
            env=lambda: self._env,
            redirect_uri=lambda: gateway.listeners.callback_url(),
            document_url=lambda: gateway.listeners.client_document_url(),
            find_identity=lambda holder: gateway.sign_in.vouching.sign_ins.find_identity(holder),
        )
        self.roster = self.new_roster()
        self.sign_ins = SignIns(
            self.custody, lambda: self.roster, gateway.supervisor, gateway.clock, gateway.person_behind
        )
        self._account_calls = AccountCalls(gateway.calls, self.sign_ins.end_unwanted)
        self._connections = ConnectionsSource(self.sign_ins, self._account_calls, self._find_approver)
        self.peering = Peering(
            gateway.kept.store,
            gateway.clock,
            gateway.supervisor,
            lambda: gateway.toolbox(gateway.settings, self.roster),
            tenant=gateway.settings.gateway.tenant,
        )
        self.tasks = KeptTasks(log, "A question about an account could not be put")

    async def open(self) -> None:
        await self.custody.open()
        await self.sign_ins.load()
        await self.peering.open(self._gateway.folder, self.custody.vault, self._gateway.settings.gateway.id)
        self.custody.accounts.subscribe(self._lost)
        self._gateway.kept.inbox.subscribe(self._heard)

    async def start(self, sweeper: Sweeper) -> None:
        """Bring the sources that no file configures."""
        await self.offer()
        await self.peering.start()
        sweeper.run_every(HOUR, self.peering.renew_due)
        sweeper.run_every(FEW_MINUTES, self.peering.peers.revoke_unconfirmed)
        if self._gateway.settings.storage.type == "postgres":
            sweeper.run_every(FEW_SECONDS, self.peering.refresh)
        sweeper.run_every(HOUR, self._forget_flows)

    async def _forget_flows(self) -> None:
        if self.custody.vault.is_open:
            await self.custody.flows.forget_old()

    def _lost(self, owner: str, why: str) -> None:
        """People are told once of a sign-in that has ended."""
        self.tasks.start(self._account_calls.ended(parts_of(owner)[0], owner, why))

    def _heard(self, approval: Approval) -> None:
        if approval.call.surface == CONNECTIONS:
            self.tasks.start(self._account_calls.heard(approval))

    def new_roster(self) -> Roster:
        return Roster(self.custody, self._gateway.clock, lambda *whose: self.sign_ins.begin_for(*whose))

    def take_over(self, roster: Roster) -> None:
        """From now on sources use what the new files say."""
        self._env, self.roster = self._gateway.configuration.environment(), roster

    async def offer(self) -> None:
        """The tools that connect accounts, where any source has no fixed credential: lists do not change by a refusal."""
        supervisor, key = self._gateway.supervisor, self._connections.key
        if not self.sign_ins.known():
            await supervisor.remove(key)
        elif supervisor.source(key) is None:
            await supervisor.add(connections_plan(self._connections))

    def has_account(self, source: str) -> bool:
        """Whether somebody signed in to a source of that name, or stored a key for it."""
        return any(parts_of(owner)[0] == source for owner in self.custody.accounts.owners())

    def secret_uses(self) -> dict[str, list[str]]:
        """By every name of a secret that is referred to, who does."""
        uses: dict[str, list[str]] = {
            name: ["the configuration"] for name in self._gateway.configuration.in_vault
        }
        for name, key in self.roster.references():
            uses.setdefault(name, []).append(key)
        return uses

    def secret_changed(self, name: str) -> list[str]:
        """Connect the sources that use a secret anew, so that children get it too; they are named. Where other settings
        refer to it, they are read again."""
        users = self.roster.referring_to(name)
        for key in users:
            self._gateway.supervisor.connect_anew(key)
        if name in self._gateway.configuration.in_vault:
            self.tasks.start(self._gateway.reload())
            users = [*users, "the configuration"]
        return users

    async def _find_approver(self, call_id: str) -> str:
        approval = await self._gateway.kept.inbox.get(call_id)
        return approval.answered.by if approval is not None else ""
