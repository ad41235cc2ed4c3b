"""The writes of one turn of the event loop, made together at its end.

Whoever reads the other end is woken by the first of them and finds the rest there; made one by one, each would
wake it again, and waking a process costs more than the write.
"""

import asyncio
import logging
from typing import Protocol

log = logging.getLogger("agent_gate.net")


class Outgoing(Protocol):
    """Something with bytes to write. It knows by itself whether they are still wanted."""

    def flush(self) -> None: ...


class Outbox:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._senders: list[Outgoing] = []

    def add(self, sender: Outgoing) -> None:
        if not self._senders:
            self._loop.call_soon(self._flush)
        self._senders.append(sender)

    def _flush(self) -> None:
        senders, self._senders = self._senders, []
        for sender in senders:
            try:
                sender.flush()
            except Exception:  # the boundary: one broken connection must not hold back the others
                log.exception("a write failed")
