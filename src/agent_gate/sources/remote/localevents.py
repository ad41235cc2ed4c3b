"""Events of a host on this machine: its socket is asked for them, since it cannot dial anybody."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from agent_gate.errors import GatewayError
from agent_gate.net.pool import Pool, Target
from agent_gate.peers.authorization import covers
from agent_gate.peers.encoding import Malformed
from agent_gate.peers.envelope import EVENTS, EventSource, PeerEvent, read_event
from agent_gate.peers.toolwire import OnlyVersion, read_wire

log = logging.getLogger("agent_gate.sources.remote")
WAIT_SECONDS = 25
AGAIN_SECONDS = 5.0
MOST_BYTES = 8 << 20
Take = Callable[[PeerEvent, str], Awaitable[bool]]


class WaitingEvent(msgspec.Struct, forbid_unknown_fields=True):
    cursor: int
    event: Any


class WaitingEvents(msgspec.Struct, forbid_unknown_fields=True):
    """What a host answers to `GET /v1/events`."""

    version: OnlyVersion
    events: list[WaitingEvent]


class LocalEvents:
    """Asks one host again and again. What was taken is told with the next question, and forgotten by the host."""

    def __init__(
        self, name: str, pool: Pool, socket: Path, publish: tuple[str, ...], tenant: str, take: Take
    ) -> None:
        self._name, self._pool, self._target = name, pool, Target.unix(socket)
        self._publish, self._tenant, self._take = publish, tenant, take
        self._after = 0

    async def run(self) -> None:
        while True:
            try:
                await self._ask()
            except (GatewayError, Malformed) as error:
                log.debug("A host has no events to tell: %s", error, extra={"source": self._name})
                await asyncio.sleep(AGAIN_SECONDS)

    async def _ask(self) -> None:
        path = f"{EVENTS}?after={self._after}&wait={WAIT_SECONDS}".encode()
        deadline = asyncio.get_running_loop().time() + WAIT_SECONDS + 10
        reply = await self._pool.request(
            "GET", self._target, path, deadline=deadline, max_bytes=MOST_BYTES, idempotent=True
        )
        if reply.status != 200:
            raise Malformed(f"it answered with HTTP status {reply.status}")
        for waiting in read_wire(reply.body, WaitingEvents).events:
            await self._pass_on(waiting)
            self._after = max(self._after, waiting.cursor)

    async def _pass_on(self, waiting: WaitingEvent) -> None:
        event = read_event(msgspec.json.encode(waiting.event))
        allowed = any(covers(one, event.event_type) for one in self._publish)
        if not allowed or event.tenant_id != self._tenant:
            log.warning(
                "An event of a host was refused: hosts.%s.publish does not name %s, or it is another tenant's",
                self._name,
                event.event_type,
            )
            return
        source = EventSource(component_type="tool_host", component_id=self._name, transport="unix_socket")
        await self._take(msgspec.structs.replace(event, source=source), self._name)
