"""`Policy.decide`: the decision on one call, with the rule that made it and where that rule stands."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent_gate.core.call import Decision
from agent_gate.core.rule import Rule
from agent_gate.core.tool import Json, Tool
from agent_gate.policy.accents import composed, composed_signature
from agent_gate.policy.globs import compile_glob
from agent_gate.policy.match import (
    also_seen,
    confines,
    cover_every_call,
    leads_out,
    names,
    names_alias,
    static_mismatch,
    undeclared,
    when_mismatch,
)

log = logging.getLogger("agent_gate.policy")
ORDER = ("deny", "allow", "ask")
OTHER_CALLS = "pattern does not match"
FALLBACK = Decision(effect="ask", reason="no rule matches, so a person is asked")
BROKEN = Decision(effect="deny", reason="the policy engine failed, so the call is denied")


@dataclass(frozen=True, slots=True)
class Compiled:
    """A rule with its pattern compiled and its decision made up front."""

    rule: Rule
    matches: Callable[[str], Any]
    decision: Decision
    by_alias: bool
    confines: bool


@dataclass(frozen=True, slots=True)
class Considered:
    """One line of an explanation: a rule, whether it matched, and why not where it did not."""

    rule: Rule
    matched: bool
    why: str


def compile_rule(rule: Rule) -> Compiled:
    decision = Decision(
        effect=rule.action,
        rule=rule.label(),
        where=rule.where,
        reason=rule.description or f"{'default' if rule.default else 'rule'} {rule.label()}",
        said=rule.description,
        lifetime=rule.lifetime,
        approvers=rule.approvers,
        via=rule.via,
    )
    confined = rule.action == "allow" and confines(rule.pattern.partition("(")[2])
    if rule.action != "allow":
        rule = replace(rule, pattern=composed_signature(rule.pattern), when=composed(rule.when))
    return Compiled(rule, compile_glob(rule.pattern), decision, names_alias(rule.pattern), confined)


def signature_matches(compiled: Compiled, tool: Tool, signature: str, more: tuple[str, ...]) -> bool:
    """The whole signature; a bare call of a tool without template also matches `name(*)`.

    An allow rule covers only what the signature shows; every other rule also sees `more`.
    """
    if compiled.matches(signature):
        return True
    forms = [signature]
    if more and compiled.rule.action != "allow":
        forms += more
    if tool.definition.template is None and tool.wire in forms:
        forms.append(f"{tool.wire}()")
    if compiled.by_alias or tool.full_wire:
        allows = compiled.rule.action == "allow"
        others = names(compiled.rule.pattern, tool, allows=allows)[1:]
        forms += [name + form[len(tool.wire) :] for form in forms for name in others]
    return any(map(compiled.matches, forms[1:]))


def mismatch(
    compiled: Compiled, tool: Tool, arguments: Mapping[str, Json], signature: str, more: tuple[str, ...]
) -> str | None:
    """Why this rule, which may apply to the tool, does not apply to the call; None when it does."""
    if not signature_matches(compiled, tool, signature, more):
        return OTHER_CALLS
    if compiled.rule.action == "allow" and (extra := undeclared(tool, arguments) - compiled.rule.extra):
        return f"argument {min(extra)[:64]} is not declared"
    if compiled.confines and any(map(leads_out, arguments.values())):
        return "a value leads out with .."
    return when_mismatch(compiled.rule, arguments) if compiled.rule.when else None


def almost(decision: Decision, near: str) -> Decision:
    """A question with what kept a rule from answering it, so that nobody has to look for a missing rule."""
    return replace(decision, near=near) if near and decision.effect == "ask" else decision


class Policy:
    """The rules of one permissions file, ready to decide. Immutable; a reload makes a new one."""

    def __init__(self, rules: Iterable[Rule] = (), defaults: Iterable[Rule] = ()) -> None:
        self.rules = tuple(rules)
        self.defaults = tuple(replace(rule, default=True) for rule in defaults)
        by_effect = [compile_rule(rule) for effect in ORDER for rule in self.rules if rule.action == effect]
        self._ordered = (*by_effect, *(compile_rule(rule) for rule in self.defaults))
        self._candidates: dict[tuple[str, str, str, str], tuple[Compiled, ...]] = {}

    def decide(self, tool: Tool, arguments: Mapping[str, Json], signature: str, caller: str) -> Decision:
        """Allow, ask or deny. Anything that goes wrong in here is a deny."""
        try:
            more: tuple[str, ...] | None = None
            near = ""
            for compiled in self._applicable(tool, caller):
                if more is None and compiled.rule.action != "allow":
                    more = also_seen(tool, arguments, signature)
                why = mismatch(compiled, tool, arguments, signature, more or ())
                if why is None:
                    return almost(compiled.decision, near) if near else compiled.decision
                if why is not OTHER_CALLS and compiled.rule.action == "allow":
                    near = near or f"{compiled.decision.rule} would allow it, but {why}"
        except Exception:
            log.exception("The policy engine failed on %s", tool.id)
            return BROKEN
        return almost(FALLBACK, near)

    def explain(self, tool: Tool, arguments: Mapping[str, Json], signature: str, caller: str) -> Decision:
        """The same decision, with every rule that was considered on the way, in the order they were."""
        decision = self.decide(tool, arguments, signature, caller)
        return replace(decision, considered=tuple(self._trail(tool, arguments, signature, caller)))

    def hides(self, tool: Tool, caller: str) -> bool:
        """Whether deny rules cover every call of this tool by this caller, so that it leaves the listings."""
        denied = [
            compiled.rule.pattern
            for compiled in self._applicable(tool, caller)
            if compiled.rule.action == "deny" and not compiled.rule.default and not compiled.rule.when
        ]
        return bool(denied) and cover_every_call(denied, tool)

    def denies(self, tool: Tool, arguments: Mapping[str, Json], caller: str) -> bool:
        """Whether a deny rule, and not only a default, covers this very call, so that it is not worth offering."""
        signature = tool.sign(arguments)
        more = also_seen(tool, arguments, signature)
        return any(
            compiled.rule.action == "deny"
            and not compiled.rule.default
            and mismatch(compiled, tool, arguments, signature, more) is None
            for compiled in self._applicable(tool, caller)
        )

    def visible(self, tools: Sequence[Tool], caller: str) -> list[Tool]:
        return [tool for tool in tools if not self.hides(tool, caller)]

    def _trail(
        self, tool: Tool, arguments: Mapping[str, Json], signature: str, caller: str
    ) -> Iterable[Considered]:
        more = also_seen(tool, arguments, signature)
        for compiled in self._ordered:
            why = static_mismatch(compiled.rule, tool, caller) or mismatch(
                compiled, tool, arguments, signature, more
            )
            yield Considered(compiled.rule, why is None, why or "matches")
            if why is None:
                return

    def _applicable(self, tool: Tool, caller: str) -> tuple[Compiled, ...]:
        """The rules that could apply to this tool and caller, found once per definition and name."""
        key = (tool.id, tool.pin, tool.wire, caller)
        found = self._candidates.get(key)
        if found is None:
            found = tuple(c for c in self._ordered if static_mismatch(c.rule, tool, caller) is None)
            if len(self._candidates) > 100_000:
                self._candidates.clear()
            self._candidates[key] = found
        return found
