"""The reload: the files are read again and taken over whole, or what runs is kept."""

import asyncio
import logging
from typing import TYPE_CHECKING

from agent_gate.app.agents import agents_of
from agent_gate.app.peers_way import peer_policies
from agent_gate.calls.in_force import Terms
from agent_gate.policy.written import policy_of
from agent_gate.sources.supervisor import plans
from agent_gate.surfaces.admin.policy_faults import PolicyFaults

if TYPE_CHECKING:
    from agent_gate.app.gateway import Gateway

log = logging.getLogger("agent_gate.app")


class Reload:
    """One at a time. Whatever may fail is tried before anything counts."""

    def __init__(self, gateway: "Gateway", policy_faults: PolicyFaults) -> None:
        self._gateway, self._policy_faults = gateway, policy_faults
        self._known = gateway.configuration.warnings()
        self._one = asyncio.Lock()

    async def __call__(self) -> list[str]:
        """Read the files again and take them over; raises `ConfigError` where what runs is kept."""
        async with self._one:
            return await self._reload()

    async def _reload(self) -> list[str]:
        gateway = self._gateway
        before = gateway.settings
        async with gateway.configuration.trial() as loaded:
            settings = loaded.settings
            roster = gateway.accounts.new_roster()
            wanted = plans(settings, gateway.toolbox(settings, roster))
            gateway.supervisor.check_fit(wanted)
            await asyncio.to_thread(self._policy_faults.check, loaded)
            channels = gateway.asking_people.make(settings)
            policies = peer_policies(settings)
            terms = Terms(settings=settings, policy=policy_of(loaded))
            gateway.listeners.take_over(settings)
            agents = agents_of(gateway, settings)
        gateway.redactor.learn(loaded.secrets)
        gateway.in_force.swap(terms)
        gateway.ways_in.issuers.replace(settings.trusted_issuers())
        gateway.ways_in.admit(agents)
        gateway.accounts.take_over(roster)
        await gateway.accounts.sign_ins.move_to_people(gateway.ways_in.tokens.callers())
        gateway.ways_in.peers.take_over(settings, policies)
        await gateway.supervisor.reload(wanted)
        await gateway.calls.end_denied()
        gateway.accounts.tasks.start(gateway.ways_in.issuers.refresh())
        await gateway.accounts.offer()
        await gateway.sign_in.offer()
        gateway.supervisor.try_signing_in()
        gateway.ways_in.mcp.changed()
        if (before.channels, before.people) != (settings.channels, settings.people):
            await gateway.asking_people.stop()
            await gateway.asking_people.start(channels)
        log.info("The configuration was reloaded")
        return self._warn()

    def _warn(self) -> list[str]:
        """Log what is doubtful and was not before; returns all of it."""
        self._policy_faults.tell()
        known, self._known = self._known, self._gateway.configuration.warnings()
        for warning in self._known:
            if warning not in known:
                log.warning(warning)
        return [*self._known, *self._policy_faults.warnings()]
