"""Several hosts in one namespace: whichever is there answers, and a call that was not sent goes to the next."""

import asyncio
import logging
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from agent_gate.core.call import Result
from agent_gate.core.ids import fold_namespace
from agent_gate.core.ports import Job
from agent_gate.core.tool import Definition, Tool
from agent_gate.errors import DependencyUnavailable, GatewayError, PairingFailed, PairingRequired
from agent_gate.net.pool import Lost
from agent_gate.sources.remote.source import RemoteSource
from agent_gate.sources.toolbox import Toolbox

log = logging.getLogger("agent_gate.sources.remote")
UNSENT = (DependencyUnavailable, PairingRequired, PairingFailed)
"""What a host's answer to a call can be while the call itself was not sent."""


class PooledSource:
    """The hosts of one pool. They take turns; a tool is what the first of them says that has it."""

    kind = "remote"
    unwell: str | None = None
    watched, context = False, None

    def __init__(self, pool: str, members: Sequence[RemoteSource], toolbox: Toolbox) -> None:
        self.key, self.namespace, self.title = pool, fold_namespace(pool), pool
        self._members, self._toolbox = list(members), toolbox
        self._offers: dict[str, Sequence[Definition]] = {}
        self._away: dict[str, str] = {}
        self._turn = 0

    @property
    def about(self) -> str:
        return next((member.about for member in self._members if member.about), "")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self._members:
            await member.__aexit__(kind, error, trace)

    async def connect(self) -> Sequence[Definition]:
        await asyncio.gather(*(self._try(member) for member in self._members))
        if len(self._away) == len(self._members):
            raise DependencyUnavailable(f"No host of the pool {self.key} is there: {self.unwell}")
        return self._merged()

    async def _try(self, member: RemoteSource) -> bool:
        """Look at one host; whether what it offers changed."""
        try:
            found = await member.connect()
        except GatewayError as error:
            self._note(member, error.message)
            return False
        self._note(member, "")
        before = self._offers.get(member.key)
        self._offers[member.key] = found
        return before is not None and list(before) != list(found)

    def _note(self, member: RemoteSource, why: str) -> None:
        """Remember of a host why it is away, or that it is there."""
        self._away.pop(member.key, None)
        if why:
            self._away[member.key] = why
        self.unwell = "; ".join(f"{name}: {said}" for name, said in self._away.items()) or None

    def _merged(self) -> list[Definition]:
        """Every tool once. Two hosts that differ on a tool: the first one's counts, and only its like are called."""
        found: dict[str, Definition] = {}
        for member in self._members:
            for definition in self._offers.get(member.key, ()):
                found.setdefault(definition.name, definition)
        return list(found.values())

    async def watch(self) -> None:
        while True:
            await asyncio.wait(
                [asyncio.ensure_future(member.wait_until_gone()) for member in self._members],
                return_when=asyncio.FIRST_COMPLETED,
            )
            before = self._merged()
            await asyncio.gather(*(self._try(member) for member in self._members))
            if len(self._away) == len(self._members):
                raise DependencyUnavailable(f"No host of the pool {self.key} is there: {self.unwell}")
            if (now := self._merged()) != before:
                await self._toolbox.announce(self.key, now)

    async def answer(self, job: Job) -> Result:
        traits = job.case.tool.traits
        safe = traits.trusted and (traits.idempotent or traits.read_only)
        failure: GatewayError = DependencyUnavailable(
            f"No host of the pool {self.key} offers this tool now. Nothing was sent"
        )
        for member in self._candidates(job.case.tool):
            try:
                return await member.answer(job)
            except UNSENT as error:
                failure = error
            except Lost as error:
                if not safe or error.timed_out:
                    raise
                failure = error
            self._note(member, failure.message)
            log.warning("A host of a pool was passed over", extra={"source": member.key, "pool": self.key})
        raise failure

    def _candidates(self, tool: Tool) -> list[RemoteSource]:
        """Those that offer the tool as it was decided on, each time another one first, those that were away last."""
        self._turn += 1
        turned = [*self._members[self._turn % len(self._members) :], *self._members][: len(self._members)]
        able = [member for member in turned if member.serves(tool)]
        return sorted(able, key=lambda member: member.key in self._away)
