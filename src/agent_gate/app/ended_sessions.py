"""`EndedSessions`: closes what sources have open for agents whose session is over, or who are gone themselves."""

import logging
from collections.abc import Collection

from agent_gate.calls import Calls
from agent_gate.core.tasks import KeptTasks
from agent_gate.sources.supervisor import Supervisor

log = logging.getLogger("agent_gate.sources")


class EndedSessions:
    def __init__(self, calls: Calls, supervisor: Supervisor) -> None:
        self._calls, self._supervisor = calls, supervisor
        self.tasks = KeptTasks(log, "What a session had open could not be closed")

    def end(self, caller: str, session: str) -> None:
        """A session is over, and nobody can go on with it."""
        if self._supervisor.watched():
            self.tasks.start(self._close(caller, session))

    async def _close(self, caller: str, session: str) -> None:
        """A question of the session may still be answered, and its call acts on what is open."""
        for approval in self._calls.inbox.open():
            if (approval.caller.name, approval.session) == (caller, session):
                await self._calls.await_outcome(approval.call_id, approval.caller, wait=None)
        for source in self._supervisor.watched():
            await source.end_session(caller, session)

    def keep(self, callers: Collection[str]) -> None:
        """Only these may come in any more."""
        for source in self._supervisor.watched():
            for screen in source.screens():
                if screen.caller not in callers:
                    self.tasks.start(source.stop_screen(screen.id))
