"""The rules as an operator reads them: the file, each rule with what is wrong with it, and why a call is decided so."""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from agent_gate.access.view import check_sees
from agent_gate.core.call import Caller
from agent_gate.core.catalog import Catalog
from agent_gate.core.facts import PREFIX, beside, signed_facts
from agent_gate.core.signature import placeholders
from agent_gate.core.tool import Tool
from agent_gate.errors import InvalidArgs, ToolNotFound
from agent_gate.policy import Policy, Subject
from agent_gate.policy.decide import ORDER
from agent_gate.policy.rule import Rule
from agent_gate.surfaces.admin import shown
from agent_gate.surfaces.admin.admin import Admin
from agent_gate.surfaces.admin.routing import OBJECT, TEXT, OperatorRequest, Route, RouteAnswer

LINE = re.compile(r":(\d+)(?::\d+)?$")
LONGEST_FILE = 1 << 20


def line_of(where: str) -> int | None:
    found = LINE.search(where)
    return int(found[1]) if found else None


def read_text(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return path.read_text(encoding="utf-8")[:LONGEST_FILE]
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgs(f"{path} cannot be read: {error}") from None


def meant(callers: Sequence[Caller], name: object = None) -> Caller:
    """The agent of that name; where none is given, the only one there is."""
    found = [caller for caller in callers if name in (None, caller.name)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(caller.name for caller in callers)
    if name is None:
        raise InvalidArgs(f"Rules may tell agents apart, so say which one would call (--as): {known}")
    raise InvalidArgs(f"There is no agent named {str(name)[:64]}. There are: {known}")


def unknown(name: str, catalog: Catalog, advice: str = "") -> ToolNotFound:
    """No such tool; the nearest name is the advice, since an operator may see them all."""
    near = get_close_matches(name[:120], [tool.wire for tool in catalog.tools], n=1)
    said = f"Did you mean {near[0]}?" if near else advice
    return ToolNotFound("\n".join(filter(None, [f"Unknown tool: {name[:120]}", said])))


def explained(policy: Policy, tool: Tool, arguments: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
    """Check the arguments as a call would be checked, then show every rule on the way. What only the source knows of a
    call may be given as `facts.NAME`; what is not given is named in the signature, and fits no rule about its value."""
    facts = {name.removeprefix(PREFIX): str(arguments[name]) for name in arguments if name.startswith(PREFIX)}
    given = {name: value for name, value in arguments.items() if not name.startswith(PREFIX)}
    filled = {**tool.defaults, **given}
    tool.validate(filled)
    named = [name for name in placeholders(tool.definition.template or "") if name.startswith(PREFIX)]
    unsaid = [name for name in named if name.removeprefix(PREFIX) not in facts]
    signature = tool.sign({**beside(filled, signed_facts(facts)), **{name: f"<{name}>" for name in unsaid}})
    subject = Subject(tool, filled, signature, caller.name, facts or None, caller.person, caller.groups)
    told = shown.decision(policy.explain(subject))
    return {"tool": tool.wire, "signature": signature, "caller": caller.name, "unsaid": unsaid, **told}


class PolicyRoutes:
    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET",
                "/api/policy",
                self._show_file,
                "The rules, where they stand, and what is wrong with them",
            ),
            Route(
                "POST",
                "/api/explain",
                self._explain,
                "Why a call would be allowed, asked or denied",
                body={"tool": TEXT, "arguments": OBJECT, "caller": TEXT},
                required=("tool",),
                role="viewer",
            ),
        ]

    async def _show_file(self, _ask: OperatorRequest) -> RouteAnswer:
        policy, path = self._admin.setup.policy(), self._admin.setup.configuration.permissions()
        faults: dict[str, list[str]] = {}
        for finding in self._admin.setup.policy_faults.lint():
            faults.setdefault(finding.where, []).append(finding.message)
        ordered = [rule for effect in ORDER for rule in policy.rules if rule.action == effect]
        rules = [self._rule(rule, faults) for rule in (*ordered, *policy.defaults)]
        return {"file": str(path) if path else None, "text": read_text(path), "rules": rules}

    def _rule(self, rule: Rule, faults: dict[str, list[str]]) -> dict[str, Any]:
        return shown.rule(rule) | {"line": line_of(rule.where), "faults": faults.get(rule.where, [])}

    async def _explain(self, ask: OperatorRequest) -> RouteAnswer:
        body = ask.body()
        name, arguments = str(body.get("tool", "")), body.get("arguments", {})
        caller = meant(self._admin.who.callers(), body.get("caller"))
        tool = self._admin.shelf.catalog.find(name)
        if tool is None:
            raise unknown(name, self._admin.shelf.catalog)
        if not isinstance(arguments, dict):
            raise InvalidArgs("arguments must be an object")
        check_sees(caller, tool)
        return explained(self._admin.setup.policy(), tool, arguments, caller)
