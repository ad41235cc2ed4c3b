"""`people: [anna]` and `groups: [sre]`: only calls of agents that work for these people, or for members of these groups."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from agent_gate.policy.conditions.condition import Condition, ConditionKind, Misread

LIST_OF_TEXTS = {"type": ["array", "null"], "items": {"type": "string"}}


@dataclass(frozen=True, slots=True)
class ForPeople(Condition):
    wanted: tuple[str, ...]

    def label(self) -> str:
        return f"people {', '.join(self.wanted)}"

    def is_for_others(self, person: str, groups: frozenset[str]) -> str | None:
        if not person:
            return "the caller works for nobody by name"
        named = any(fnmatchcase(person, pattern) for pattern in self.wanted)
        return None if named else f"the caller works for {person}"

    def wider(self, inner: Condition | None) -> bool:
        return isinstance(inner, ForPeople) and set(inner.wanted) <= set(self.wanted)


@dataclass(frozen=True, slots=True)
class ForGroups(Condition):
    wanted: tuple[str, ...]

    def label(self) -> str:
        return f"groups {', '.join(self.wanted)}"

    def is_for_others(self, person: str, groups: frozenset[str]) -> str | None:
        named = any(fnmatchcase(group, pattern) for pattern in self.wanted for group in groups)
        said = f"is in {', '.join(sorted(groups)[:5])}" if groups else "is in no group"
        return None if named else f"the caller {said}"

    def wider(self, inner: Condition | None) -> bool:
        return isinstance(inner, ForGroups) and set(inner.wanted) <= set(self.wanted)


def check_named(written: tuple[str, ...]) -> tuple[str, ...]:
    if not written:
        raise Misread("names nobody; leave it out where the rule is for everybody")
    return tuple(written)


PEOPLE = ConditionKind(
    key="people",
    doc="Only agents that work for these people (globs); null: all.",
    type=tuple[str, ...],
    schema=LIST_OF_TEXTS,
    parse=lambda written: ForPeople(check_named(written)),
)
GROUPS = ConditionKind(
    key="groups",
    doc="Only agents of members of these groups (globs); null: all.",
    type=tuple[str, ...],
    schema=LIST_OF_TEXTS,
    parse=lambda written: ForGroups(check_named(written)),
)
