"""`callers: [coder-*]`: only calls of these agents, as globs.

The name of an agent that signed in has a slash (`claude/ada`), and its first half is what a client says of itself. So a
pattern without a slash means agents of the configuration alone, except `*`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from agent_gate.core.tool import Tool
from agent_gate.policy.conditions.condition import ByName, naming


def means(pattern: str, agent: str) -> bool:
    if "/" in agent and "/" not in pattern and pattern != "*":
        return False
    return fnmatchcase(agent, pattern)


@dataclass(frozen=True, slots=True)
class ByCallers(ByName):
    def excludes(self, tool: Tool, caller: str, *, allows: bool) -> str | None:
        return f"caller is {caller}" if self.strangers((caller,)) else None

    def strangers(self, agents: Sequence[str]) -> tuple[str, ...]:
        named = any(means(pattern, agent) for pattern in self.wanted for agent in agents)
        return () if named else self.wanted


CALLERS = naming("callers", "Only these agents (globs); null: all.", ByCallers, "all agents")
