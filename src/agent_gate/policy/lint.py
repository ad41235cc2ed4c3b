"""Faults of a permissions file that the file itself shows: rules that can never match, and rules that another always beats."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from agent_gate.core.tool import Tool
from agent_gate.policy.decide import ORDER
from agent_gate.policy.globs import compile_glob
from agent_gate.policy.names import head, listed_spelling, may_match, name_part, named_arguments
from agent_gate.policy.possible import fits_pairs, fits_tool
from agent_gate.policy.rule import Rule
from agent_gate.policy.steps import confines

FORM = (
    "A signature is name(key=value, key=value) with the keys in alphabetical order, or the tool's own template. "
    "In values write %3D for =, %2C for a comma, %28 and %29 for parentheses; leave @version and #hash off the name"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault in the rules: where it stands, what is wrong, what to do."""

    where: str
    message: str


@dataclass(frozen=True, slots=True)
class Unlisted:
    """A source whose tools are not known here: its namespace (None: any), how their names begin, and how rules that
    refuse or ask may also write that."""

    namespace: str | None = None
    starts: tuple[str, ...] = ("",)
    spelled: tuple[str, ...] = ()


def wider(outer: str, inner: str) -> bool:
    """Whether every signature `inner` matches is matched by `outer` too; false where that cannot be told."""
    return "?" not in outer and "[" not in outer and compile_glob(outer)(inner) is not None


def conditions_within(outer: Rule, inner: Rule) -> bool:
    """Whether `outer` asks for nothing that `inner` does not ask for as well."""
    asked = all(one.wider(inner.conditions.get(key)) for key, one in outer.conditions.items())
    covers = not outer.allows or (
        inner.allows and covers_extra(outer, inner) and not leads_past(outer, inner)
    )
    return asked and covers and wider(outer.pattern, inner.pattern)


def covers_extra(outer: Rule, inner: Rule) -> bool:
    """Whether `outer` covers the undeclared arguments that `inner` does; one that spells no argument covers those of
    every tool but the ones declared in YAML."""
    if not named_arguments(outer.pattern):
        return set(inner.extra) <= set(outer.extra)
    return named(inner) <= named(outer)


def named(rule: Rule) -> frozenset[str]:
    return rule.arguments().union(rule.extra, named_arguments(rule.pattern))


def leads_past(outer: Rule, inner: Rule) -> bool:
    """Whether `inner` spells a step up, which an allow for a folder or an address never covers."""
    return confines(outer.pattern.partition("(")[2]) and ".." in inner.pattern


def shadowed(rules: Sequence[Rule]) -> Iterable[Finding]:
    """Rules that come after a wider one, in the order in which they are looked at."""
    ordered = [rule for effect in ORDER for rule in rules if rule.action == effect]
    for index, rule in enumerate(ordered):
        for earlier in ordered[:index]:
            if conditions_within(earlier, rule) and not (earlier.action == "allow" and rule.action == "ask"):
                yield Finding(
                    rule.where,
                    f"{rule.label()!r} never decides: {earlier.label()!r} at {earlier.where} comes first",
                )
                break


def shadowed_defaults(defaults: Sequence[Rule]) -> Iterable[Finding]:
    for index, rule in enumerate(defaults):
        for earlier in defaults[:index]:
            if conditions_within(earlier, rule):
                yield Finding(
                    rule.where,
                    f"default {rule.label()!r} is never reached: {earlier.label()!r} at {earlier.where} comes first",
                )
                break


def dead(rules: Sequence[Rule], tools: Sequence[Tool], others: Sequence[Unlisted]) -> Iterable[Finding]:
    """Rules that fit no tool there is, or no signature that a call can have. With no tools, nothing can be said."""
    for rule in rules if tools or others else ():
        allows = rule.allows
        named = [tool for tool in meant(rule, tools) if may_match(rule.pattern, tool, allows=allows)]
        starts = [
            start
            for one in others
            if one.namespace is None or rule.reaches(one.namespace)
            for start in (one.starts if allows else one.starts + one.spelled)
        ]
        listed = listed_spelling(rule.pattern) if allows else None
        if listed is None and any(fits_pairs(rule.pattern, start) for start in starts):
            continue
        fitting = [tool for tool in named if fits_tool(rule.pattern, tool, allows=allows)]
        if fitting:
            yield from hopeless(rule, fitting)
        elif not named and (right := as_listed(rule, tools, starts, listed)):
            yield Finding(
                rule.where,
                f"{rule.label()!r} can never match: an allow rule needs the name as it is listed. Write {right}",
            )
        elif not named and (not others or fits_pairs(rule.pattern)):
            yield Finding(
                rule.where, f"{rule.label()!r} matches no tool; {what_there_is(rule, tools, others)}"
            )
        else:
            yield Finding(rule.where, f"{rule.label()!r} can never match. {form_of(named)}")


def meant(rule: Rule, tools: Iterable[Tool]) -> list[Tool]:
    """The tools that a rule can mean, as far as its conditions tell."""
    return [tool for tool in tools if rule.reaches(tool.namespace, tool.source)]


def as_listed(rule: Rule, tools: Sequence[Tool], starts: Sequence[str], listed: str | None) -> str | None:
    """What an allow rule in a server's own spelling has to be; None where that is not what is wrong with it."""
    if not rule.allows:
        return None
    wires = [tool.wire for tool in meant(rule, tools) if may_match(rule.pattern, tool)]
    if wires:
        rest = rule.pattern[len(name_part(rule.pattern)) :]
        return wires[0] + rest if len(wires) == 1 else " or ".join(wires[:3])
    return listed if listed and any(fits_pairs(listed, start) for start in starts) else None


def form_of(tools: Sequence[Tool]) -> str:
    """How a pattern has to look for one of these tools; one that is declared in YAML has a form of its own."""
    if len(tools) != 1 or (template := tools[0].definition.template) is None:
        return FORM
    name = tools[0].wire
    if not template:
        return f"Every call of {name} has the signature {name}, since its file gives no `signature`"
    return f"Calls of {name} have the signature {name}({template})"


def hopeless(rule: Rule, tools: Sequence[Tool]) -> Iterable[Finding]:
    """A rule that names these tools by a condition that no call of them meets. One for whatever there is may wait."""
    for key, condition in rule.conditions.items() if rule.points() else ():
        reasons = [condition.unmet(tool, rule.extra, allows=rule.allows) for tool in tools]
        if all(reasons):
            yield Finding(rule.where, f"the `{key}` of {rule.label()!r} can never hold: {reasons[0]}")


def idle(rules: Sequence[Rule], tools: Sequence[Tool], others: Sequence[Unlisted] = ()) -> Iterable[Finding]:
    """Rules that allow what tools of a kind do, where no tool that they name is said to be of that kind."""
    for rule in rules if not others else ():
        named = [tool for tool in meant(rule, tools) if may_match(rule.pattern, tool, allows=True)]
        reasons = [rule.lacks(tool) for tool in named] if rule.allows else []
        if reasons and all(reasons):
            yield Finding(
                rule.where,
                f"{rule.label()!r} allows nothing: {str(reasons[0]).replace('the tool', named[0].wire)}. "
                "What a tool does is what its file says of it; a GET is not taken for read-only",
            )


def bare(rules: Sequence[Rule], tools: Sequence[Tool]) -> Iterable[Finding]:
    """Rules that spell a name that is none of `tools` and nothing more: most calls have arguments, and go past them."""
    known = {tool.wire for tool in tools} | {tool.alias for tool in tools}
    for rule in rules:
        if head(rule.pattern) == rule.pattern and "(" not in rule.pattern and rule.pattern not in known:
            yield Finding(
                rule.where,
                f"{rule.label()!r} matches only calls without arguments; "
                f"write {rule.pattern}(*) for every call, or {rule.pattern}() for those",
            )


def what_there_is(rule: Rule, tools: Sequence[Tool], others: Sequence[Unlisted]) -> str:
    """What a rule could have named instead: a namespace where it names none there is, else a tool."""
    spaces = sorted({tool.namespace for tool in tools} | {one.namespace or "*" for one in others})
    hints = (condition.instead(spaces) for condition in rule.conditions.values())
    if hint := next(filter(None, hints), None):
        return hint
    names = [tool.wire for tool in tools] + [f"{start}…" for one in others for start in one.starts if start]
    near = get_close_matches(head(rule.pattern).partition("(")[0], names, n=1) or names[:1]
    return f"tools are named like {near[0]}" if near else "no name begins so"


def lint(
    rules: Sequence[Rule], defaults: Sequence[Rule], tools: Sequence[Tool], others: Sequence[Unlisted] = ()
) -> list[Finding]:
    """Faults in the rules. There are no tools but `tools` and those of `others`."""
    return [
        *dead([*rules, *defaults], tools, others),
        *shadowed(rules),
        *shadowed_defaults(defaults),
    ]
