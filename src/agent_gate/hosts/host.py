"""`Host`: what a host's author writes against. Decorated functions are its tools."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from agent_gate.errors import ConfigError
from agent_gate.hosts.server import HostServer, HostSetup
from agent_gate.hosts.tools import FunctionTool, as_tool
from agent_gate.peers.toolwire import MOST_MILLISECONDS, USUAL_MILLISECONDS

F = TypeVar("F", bound=Callable[..., Any])
GRACE_SECONDS = 10.0


class Host:
    """A set of tools. `name` is what it calls itself; the operator gives it its namespace when it is paired."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tools: dict[str, FunctionTool] = {}

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

    def server(self, settings: HostSetup | None = None) -> HostServer:
        return HostServer(self.name, self.tools, settings)

    async def serve(
        self,
        started: Callable[[HostServer], None],
        *,
        settings: HostSetup | None = None,
        listen: tuple[str, int] = ("127.0.0.1", 0),
        socket: Path | None = None,
    ) -> None:
        """Serve until SIGTERM or SIGINT; calls at work get a while to end."""
        server = self.server(settings)
        if socket is not None:
            await server.start_unix(socket)
        else:
            await server.start(*listen)
        started(server)
        over, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, over.set)
        await over.wait()
        await server.stop(GRACE_SECONDS)
