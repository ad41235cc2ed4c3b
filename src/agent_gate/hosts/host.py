"""`Host`: what a host's author writes against. Decorated functions are its tools."""

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from agent_gate.errors import ConfigError
from agent_gate.hosts.component import HostSetup
from agent_gate.hosts.dialled import DialledHost
from agent_gate.hosts.publishing import EventOutbox, Publisher
from agent_gate.hosts.server import HostServer
from agent_gate.hosts.tools import FunctionTool, as_tool
from agent_gate.peers.envelope import EventSource, PeerEvent, new_event
from agent_gate.peers.toolwire import MOST_MILLISECONDS, USUAL_MILLISECONDS

log = logging.getLogger("agent_gate.hosts")
F = TypeVar("F", bound=Callable[..., Any])
Work = Callable[[], Coroutine[Any, Any, None]]
GRACE_SECONDS = 10.0


class Host:
    """A set of tools. `name` is what it calls itself; the operator gives it its namespace when it is paired."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tools: dict[str, FunctionTool] = {}
        self._started: list[Work] = []
        self._outbox: EventOutbox | None = None
        self._source = EventSource(component_type="tool_host", component_id=name)

    def tool(
        self,
        name: str = "",
        *,
        timeout_ms: int = USUAL_MILLISECONDS,
        timeout_ms_max: int = MOST_MILLISECONDS,
        idempotent: bool = False,
        side_effects: bool = True,
    ) -> Callable[[F], F]:
        """Offer a function: its parameters are the schema, its docstring is the description."""

        def offer(function: F) -> F:
            made = as_tool(
                function,
                name=name,
                timeout_ms=timeout_ms,
                timeout_ms_max=timeout_ms_max,
                idempotent=idempotent,
                side_effects=side_effects,
            )
            if made.name in self.tools:
                raise ConfigError(f"Two tools of {self.name} are named {made.name}. Rename one of them")
            self.tools[made.name] = made
            return function

        return offer

    def background(self, work: Work) -> Work:
        """Run this coroutine function while the host runs."""
        self._started.append(work)
        return work

    def publish(
        self,
        event_type: str,
        payload: dict[str, Any],
        *,
        tenant: str,
        agent: str = "",
        session: str = "",
        key: str = "",
    ) -> PeerEvent:
        """Tell the gateway that something happened; durable when it returns, and sent until it has arrived.

        The operator says which types a host may publish. The same `key` is the same event, told once.
        """
        if self._outbox is None:
            raise RuntimeError("A host publishes while it is served")
        event = new_event(
            event_type,
            payload,
            self._source,
            tenant=tenant,
            now=time.time(),
            agent=agent,
            session=session,
        )
        if key:
            event = msgspec.structs.replace(event, idempotency_key=key)
        self._outbox.add(event)
        return event

    def server(self, settings: HostSetup | None = None) -> HostServer:
        made = HostServer(self.name, self.tools, settings)
        self._outbox = made.outbox
        if settings is not None:
            self._source = EventSource(component_type="tool_host", component_id=settings.component_id)
        return made

    async def serve(
        self,
        started: Callable[[HostServer], None],
        *,
        settings: HostSetup | None = None,
        listen: tuple[str, int] | None = ("127.0.0.1", 0),
        socket: Path | None = None,
    ) -> None:
        """Serve until SIGTERM or SIGINT; calls at work get a while to end. Without `listen` it dials the gateway."""
        server = self.server(settings)
        dialled = DialledHost(server) if listen is None and socket is None else None
        if socket is not None:
            await server.start_unix(socket)
        elif listen is not None:
            await server.start(*listen)
        started(server)
        over, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, over.set)
        works = [work() for work in self._started]
        if dialled is not None:
            works.append(dialled.run())
        if server.component is not None and server.component.setup.gateway_url:
            works.append(Publisher(server.outbox, server.component).run())
        tasks = [asyncio.ensure_future(self._keep_going(work)) for work in works]
        await over.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if dialled is not None:
            await dialled.stop()
        await server.stop(GRACE_SECONDS)

    async def _keep_going(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception:  # the boundary: what runs beside the tools does not end them
            log.exception("Something that runs beside the tools of %s ended", self.name)
