"""What a tool's calls by an agent meet: allowed, asked about or denied, whatever their arguments, or depending on them."""

import asyncio
from collections.abc import Sequence
from typing import Any

from agent_gate.core.call import Caller
from agent_gate.core.tool import Tool
from agent_gate.policy import Policy
from agent_gate.policy.decide import ORDER
from agent_gate.policy.match import cover_every_call
from agent_gate.policy.rule import Rule
from agent_gate.surfaces.admin import shown

AT_A_TIME = 25
"""Tools that are looked at before calls have their turn again."""


def rules_for(policy: Policy, tool: Tool, caller: Caller) -> list[Rule]:
    """The rules that can decide on this tool for this caller, up to the first that decides every call."""
    ordered = [rule for effect in ORDER for rule in policy.rules if rule.action == effect]
    found = []
    for rule in (*ordered, *policy.defaults):
        if rule.excludes(tool, caller.name, caller.person, caller.groups) is None:
            found.append(rule)
            if not rule.per_call and cover_every_call((rule.pattern,), tool):
                return found
    return [*found, Rule(action="ask", description="no rule matches, so a person is asked", default=True)]


def standing(policy: Policy, tool: Tool, caller: Caller) -> dict[str, Any]:
    """One answer for all calls of this tool by this caller, or `depends` on their arguments; with the rules."""
    if not caller.sees(tool.namespace):
        return {"agent": caller.name, "effect": "unseen", "rules": []}
    rules = rules_for(policy, tool, caller)
    effects = {rule.action for rule in rules}
    effect = rules[0].action if len(effects) == 1 else "depends"
    return {"agent": caller.name, "effect": effect, "rules": [shown.rule(rule) for rule in rules]}


async def show_standings(policy: Policy, tools: Sequence[Tool], caller: Caller) -> list[dict[str, Any]]:
    """Each tool in a line, with what its calls by this caller meet; calls go on meanwhile."""
    rows = []
    for number, tool in enumerate(tools):
        if number % AT_A_TIME == 0:
            await asyncio.sleep(0)
        rows.append(shown.tool_row(tool) | {"effect": standing(policy, tool, caller)["effect"]})
    return rows
