"""One log line per dropped connection, and one for all the rest when thousands drop at once."""

import asyncio
import logging

log = logging.getLogger("agent_gate.websocket")
LINES_PER_SECOND = 20


class Drops:
    """Says who went away. A flood becomes a count, told when its second is over."""

    def __init__(self) -> None:
        self._said = self._folded = 0
        self._timer: asyncio.TimerHandle | None = None

    def note(self, agent: str, peer: str, code: int, reason: str, waiting: int) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(1.0, self._tell)
        if self._said >= LINES_PER_SECOND:
            self._folded += 1
            return
        self._said += 1
        extra = {"agent": agent, "peer": peer, "code": code, "why": reason, "calls_waiting": waiting}
        log.info("Agent disconnected", extra=extra)

    def _tell(self) -> None:
        folded, self._said, self._folded, self._timer = self._folded, 0, 0, None
        if folded:
            log.info("More agents disconnected in the same second", extra={"count": folded})

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._tell()
