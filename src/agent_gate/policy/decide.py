"""`Policy.decide`: the decision on one call, with the rule that made it and where that rule stands."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent_gate.core.call import Decision
from agent_gate.core.facts import PREFIX
from agent_gate.core.tool import Json, Tool
from agent_gate.policy.accents import composed_signature
from agent_gate.policy.conditions import Condition
from agent_gate.policy.globs import compile_glob, glob
from agent_gate.policy.match import cover_every_call
from agent_gate.policy.names import is_named, may_mean, named_arguments, names
from agent_gate.policy.rule import Rule
from agent_gate.policy.steps import confines, leads_out
from agent_gate.policy.subject import NOTHING_MORE, Subject, matches_without

log = logging.getLogger("agent_gate.policy")
ORDER = ("deny", "allow", "ask")
NO_GROUPS = frozenset[str]()
OTHER_CALLS = "pattern does not match"
FALLBACK = Decision(effect="ask", reason="no rule matches, so a person is asked")
BROKEN = Decision(effect="deny", reason="the policy engine failed, so the call is denied")


@dataclass(frozen=True, slots=True)
class Compiled:
    """A rule with its pattern compiled and its decision made up front.

    `spells` are the arguments that its pattern names; `conditions` those that are looked at with each call; `names` what
    else than its wire name it can mean of one tool.
    """

    rule: Rule
    matches: Callable[[str], Any]
    decision: Decision
    allows: bool
    confines: bool
    spells: tuple[str, ...]
    conditions: tuple[Condition, ...]
    names: tuple[str, ...] = ()


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
        count=rule.count,
        own=rule.own,
        not_own=rule.not_own,
        via=rule.via,
    )
    allows = rule.allows
    if not allows:
        rule = replace(rule, pattern=composed_signature(rule.pattern))
    return Compiled(
        rule,
        compile_glob(rule.pattern),
        decision,
        allows=allows,
        confines=allows and confines(rule.pattern.partition("(")[2]),
        spells=named_arguments(rule.pattern),
        conditions=tuple(one.prepared(allows=allows) for one in rule.per_call),
    )


def bound(compiled: Compiled, tool: Tool) -> Compiled:
    """The rule as it is for one tool: with the names of it that its pattern can mean."""
    pattern = compiled.rule.pattern
    others = names(pattern, tool, allows=compiled.allows)[1:]
    meant = tuple(name for name in others if may_mean(pattern, name))
    return replace(compiled, names=meant) if meant else compiled


def signature_matches(compiled: Compiled, subject: Subject) -> bool:
    """The whole signature, under every name that is meant; a bare call of a tool without template also matches
    `name(*)`. An allow rule covers only what the signature shows; every other rule also sees what else there is."""
    tool, matches = subject.tool, compiled.matches
    if matches(subject.signature):
        return True
    seen = NOTHING_MORE if compiled.allows else subject.see()
    shown = subject.signature[len(tool.wire) :]
    bare = not shown and tool.definition.template is None
    if not (bare or seen.endings or compiled.names):
        return False
    endings = (shown, *seen.endings, "()") if bare else (shown, *seen.endings)
    called = (tool.wire, *compiled.names)
    if any(matches(name + ending) for name in called for ending in endings):
        return True
    one = glob(compiled.rule.pattern)
    return any(matches_without(one, name, pieces) for name in called for pieces in seen.loose)


def uncovered(rule: Rule, spells: Sequence[str], tool: Tool, arguments: Mapping[str, Json]) -> list[str]:
    """The undeclared arguments that an allow rule leaves to a person.

    Of a tool declared in YAML it covers those in `extra`. Of any other it covers those that it names at all, and a rule
    whose pattern spells no argument covers every call.
    """
    by_file = tool.definition.declared is not None
    if arguments.keys() <= tool.declared.names or not (by_file or spells):
        return []
    others = tool.declared.others(arguments).difference(rule.extra)
    if not by_file:
        others = frozenset(name for name in others - rule.arguments() if not is_named(name, spells))
    return sorted(others)


def unnamed(rule: Rule, tool: Tool, facts: Mapping[str, str]) -> tuple[str, str] | None:
    """A consequence of the call that an allow rule does not name, with what its source said of it."""
    found = tool.definition.consequences & facts.keys()
    return next(
        ((name, facts[name][:80]) for name in sorted(found) if f"{PREFIX}{name}" not in rule.extra), None
    )


def mismatch(compiled: Compiled, subject: Subject) -> str | None:
    """Why this rule, which may apply to the tool, does not apply to the call; None when it does."""
    if not signature_matches(compiled, subject):
        return OTHER_CALLS
    arguments, tool = subject.arguments, subject.tool
    if (
        compiled.allows
        and not arguments.keys() <= tool.declared.names
        and (extra := uncovered(compiled.rule, compiled.spells, tool, arguments))
    ):
        return f"argument {extra[0][:64]} is not declared"
    if compiled.allows and subject.facts and (heavy := unnamed(compiled.rule, subject.tool, subject.facts)):
        return (
            f"it also {heavy[0]} ({heavy[1]}), which an allow covers only with `extra: [{PREFIX}{heavy[0]}]`"
        )
    if compiled.confines and any(map(leads_out, arguments.values())):
        return "a value leads out with .."
    for condition in compiled.conditions:
        if why := condition.mismatch(arguments, allows=compiled.allows):
            return why
    return None


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
        self._candidates: dict[tuple[str, str, str, str, str, frozenset[str]], tuple[Compiled, ...]] = {}

    def decide(self, subject: Subject) -> Decision:
        """Allow, ask or deny. Anything that goes wrong in here is a deny."""
        try:
            near = ""
            for compiled in self._applicable(subject.tool, subject.caller, subject.person, subject.groups):
                why = mismatch(compiled, subject)
                if why is None:
                    return almost(compiled.decision, near) if near else compiled.decision
                if why is not OTHER_CALLS and compiled.allows:
                    near = near or f"{compiled.decision.rule} would allow it, but {why}"
        except Exception:
            log.exception("The policy engine failed on %s", subject.tool.id)
            return BROKEN
        return almost(FALLBACK, near)

    def explain(self, subject: Subject) -> Decision:
        """The same decision, with every rule that was considered on the way, in the order they were."""
        return replace(self.decide(subject), considered=tuple(self._trail(subject)))

    def hides(self, tool: Tool, caller: str, person: str = "", groups: frozenset[str] = NO_GROUPS) -> bool:
        """Whether deny rules cover every call of this tool by this caller, so that it leaves the listings."""
        return self.against_every_call(tool, caller, person, groups) is not None

    def against_every_call(
        self, tool: Tool, caller: str, person: str = "", groups: frozenset[str] = NO_GROUPS
    ) -> Decision | None:
        """What is said to any call of a tool that is hidden from this caller; None where it is not."""
        denied = [
            compiled
            for compiled in self._applicable(tool, caller, person, groups)
            if compiled.rule.action == "deny" and not compiled.rule.default and not compiled.conditions
        ]
        if not denied or not cover_every_call([compiled.rule.pattern for compiled in denied], tool):
            return None
        return denied[0].decision

    def denies(
        self,
        tool: Tool,
        arguments: Mapping[str, Json],
        caller: str,
        person: str = "",
        groups: frozenset[str] = NO_GROUPS,
    ) -> Decision | None:
        """What a deny rule, and not only a default, says of this very call, so that it is not worth offering."""
        subject = Subject(tool, arguments, tool.sign(arguments), caller, None, person, groups)
        for compiled in self._applicable(tool, caller, person, groups):
            denying = compiled.rule.action == "deny" and not compiled.rule.default
            if denying and mismatch(compiled, subject) is None:
                return compiled.decision
        return None

    def _trail(self, subject: Subject) -> Iterable[Considered]:
        for compiled in self._ordered:
            why = compiled.rule.excludes(subject.tool, subject.caller, subject.person, subject.groups)
            why = why or mismatch(bound(compiled, subject.tool), subject)
            yield Considered(compiled.rule, why is None, why or "matches")
            if why is None:
                return

    def _applicable(
        self, tool: Tool, caller: str, person: str, groups: frozenset[str]
    ) -> tuple[Compiled, ...]:
        """The rules that could apply to this tool and caller, found once per definition and name."""
        key = (tool.id, tool.pin, tool.wire, caller, person, groups)
        found = self._candidates.get(key)
        if found is None:
            applying = (c for c in self._ordered if c.rule.excludes(tool, caller, person, groups) is None)
            found = tuple(bound(c, tool) for c in applying)
            if len(self._candidates) > 100_000:
                self._candidates.clear()
            self._candidates[key] = found
        return found
