"""`people: [anna]` and `groups: [sre]`: only calls of agents that work for these people, or for members of these groups."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from agent_gate.policy.conditions.condition import ByName, naming


@dataclass(frozen=True, slots=True)
class ForPeople(ByName):
    def label(self) -> str:
        return f"people {', '.join(self.wanted)}"

    def is_for_others(self, person: str, groups: frozenset[str]) -> str | None:
        if not person:
            return "the caller works for nobody by name"
        named = any(fnmatchcase(person, pattern) for pattern in self.wanted)
        return None if named else f"the caller works for {person}"


@dataclass(frozen=True, slots=True)
class ForGroups(ByName):
    def label(self) -> str:
        return f"groups {', '.join(self.wanted)}"

    def is_for_others(self, person: str, groups: frozenset[str]) -> str | None:
        named = any(fnmatchcase(group, pattern) for pattern in self.wanted for group in groups)
        said = f"is in {', '.join(sorted(groups)[:5])}" if groups else "is in no group"
        return None if named else f"the caller {said}"


PEOPLE = naming(
    "people", "Only agents that work for these people (globs); null: all.", ForPeople, "everybody"
)
GROUPS = naming(
    "groups", "Only agents of members of these groups (globs); null: all.", ForGroups, "everybody"
)
