"""Connections that have not authenticated: few, and not for long. None of them takes an agent's place."""

import asyncio
from collections.abc import Callable

from agent_gate.surfaces.websocket.agent import Agent


class Strangers:
    """At most `most` at once, the oldest making room, each for `seconds`; one timer watches them all."""

    def __init__(self, most: int, seconds: float, expel: Callable[[Agent], None]) -> None:
        self._most, self._seconds, self._expel = most, seconds, expel
        self._since: dict[Agent, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._since)

    def add(self, agent: Agent) -> None:
        loop = asyncio.get_running_loop()
        self._since[agent] = loop.time()
        if len(self._since) > self._most:
            self._turn_out(next(iter(self._since)))
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._sweep)

    def remove(self, agent: Agent) -> None:
        self._since.pop(agent, None)

    def _turn_out(self, agent: Agent) -> None:
        del self._since[agent]
        self._expel(agent)

    def _sweep(self) -> None:
        """Expel those whose time is over, then wait for the next oldest."""
        loop = asyncio.get_running_loop()
        due = loop.time() - self._seconds
        for agent in [agent for agent, since in self._since.items() if since <= due]:
            self._turn_out(agent)
        oldest = next(iter(self._since.values()), None)
        self._timer = None if oldest is None else loop.call_at(oldest + self._seconds, self._sweep)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
