"""The vault of a running gateway and what is made of it: secrets, accounts that people connect, paired tool hosts."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from agent_gate.calls.sweeper import HOUR, Sweeper
from agent_gate.core.approval import Approval
from agent_gate.core.call import Call
from agent_gate.core.tasks import KeptTasks
from agent_gate.sources.accounts.credentials import Roster
from agent_gate.sources.accounts.signins import SignIns
from agent_gate.sources.accounts.source import ConnectionsSource
from agent_gate.sources.accounts.source import plan as connections_plan
from agent_gate.sources.remote import Peering
from agent_gate.vault.custody import Custody

if TYPE_CHECKING:
    from agent_gate.app.gateway import Gateway

log = logging.getLogger("agent_gate.app")
FEW_MINUTES = 300.0


class GatewayAccounts:
    """`roster` knows which source uses which secret; a reload replaces it whole."""

    def __init__(self, gateway: "Gateway") -> None:
        self._gateway = gateway
        config = gateway.configuration.options.config
        self._env = gateway.configuration.environment()
        self.custody = Custody.of(
            gateway.kept.vault,
            gateway.kept.store,
            gateway.clock,
            files=config.absolute().parent if config is not None else Path.cwd(),
            env=lambda: self._env,
            redirect_uri=lambda: gateway.listeners.callback_url(),
        )
        self.roster = self.new_roster()
        self.sign_ins = SignIns(self.custody, lambda: self.roster, gateway.supervisor, gateway.clock)
        self._connections = ConnectionsSource(self.sign_ins, self._approver, self._ask_person)
        self.peering = Peering(
            gateway.kept.store,
            gateway.clock,
            gateway.supervisor,
            lambda: gateway.toolbox(gateway.settings, self.roster),
            tenant=gateway.settings.gateway.tenant,
        )
        self.tasks = KeptTasks(log, "The tools that connect accounts could not be offered")

    async def open(self) -> None:
        await self.custody.open()
        await self.sign_ins.load()
        await self.peering.open(self._gateway.folder, self.custody.vault, self._gateway.settings.gateway.id)
        self.custody.heard.append(self._offer_soon)

    async def start(self, sweeper: Sweeper) -> None:
        """Bring the sources that no file configures."""
        await self.offer()
        await self.peering.start()
        sweeper.every(HOUR, self.peering.renew_due)
        sweeper.every(FEW_MINUTES, self.peering.peers.revoke_unconfirmed)

    def _offer_soon(self) -> None:
        self.tasks.start(self.offer())

    def new_roster(self) -> Roster:
        return Roster(self.custody, self._gateway.clock)

    def take_over(self, roster: Roster) -> None:
        """From now on sources use what the new files say."""
        self._env, self.roster = self._gateway.configuration.environment(), roster

    async def offer(self) -> None:
        """The tools that connect accounts, as long as a source may need one."""
        supervisor, key = self._gateway.supervisor, self._connections.key
        if not self.sign_ins.wanted():
            await supervisor.remove(key)
        elif supervisor.source(key) is None:
            await supervisor.add(connections_plan(self._connections))

    def secret_changed(self, name: str) -> list[str]:
        """Connect the sources that use a secret anew, so that children get it too; they are named."""
        users = self.roster.referring_to(name)
        for key in users:
            self._gateway.supervisor.connect_anew(key)
        return users

    async def _approver(self, call_id: str) -> str:
        approval = await self._gateway.kept.inbox.get(call_id)
        return approval.answered_by if approval is not None else ""

    async def _ask_person(self, call: Call, reason: str, person: str) -> Approval:
        return await self._gateway.calls.ask_about(call, reason, (person,) if person else ())
