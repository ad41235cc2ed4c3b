"""The dangers of open questions, computed when somebody looks: never on a call's own way."""

from collections.abc import Mapping
from typing import Any

from agent_gate.approval.risk import Risk, risks
from agent_gate.audit.habits import read_earlier
from agent_gate.core.approval import Approval
from agent_gate.core.call import State
from agent_gate.core.ports import Clock
from agent_gate.core.tool import Tool
from agent_gate.store.statement import Store

MONTH = 30 * 86_400.0
FRESH = 60.0
MOST_HABITS = 1000
Habit = tuple[float, list[Mapping[str, Any]]]


class Risks:
    """Remembers for a minute how each caller used each tool."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._habits: dict[tuple[str, str], Habit] = {}

    async def find(self, approval: Approval, tool: Tool | None) -> list[Risk]:
        if approval.state is not State.PENDING:
            return []
        before = await self._read_earlier(approval.caller.name, approval.tool_id)
        return risks(approval.arguments, tool.traits if tool is not None else None, before)

    async def _read_earlier(self, caller: str, tool: str) -> list[Mapping[str, Any]]:
        now = self._clock.now()
        read, found = self._habits.get((caller, tool), (0.0, []))
        if not 0 <= now - read < FRESH:
            await self._store.flush()
            found = await read_earlier(self._store, caller, tool, now - MONTH)
            if len(self._habits) >= MOST_HABITS:
                self._habits.clear()
            self._habits[caller, tool] = now, found
        return found
