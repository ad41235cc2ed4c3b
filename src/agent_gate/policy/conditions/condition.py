"""What a condition of a rule is: a key in the file, how it is read, what it then asks for, how it is said and checked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_gate.core.tool import Json, Tool


class Misread(ValueError):
    """A value that means nothing. `path` leads from the condition's own value to what is wrong, a key or its value."""

    def __init__(self, message: str, *path: str, of_key: bool = False, tells_kind: bool = False) -> None:
        super().__init__(message)
        self.path, self.of_key, self.tells_kind = path, of_key, tells_kind


class Condition:
    """One thing that a rule asks for beside its pattern; immutable, and equal to its like.

    `allows` says of which rule it is: one that allows is held to what is sure, every other one errs on the safe side.
    A condition overrides what it has to say; this one asks for nothing.
    """

    __slots__ = ()
    per_call = False
    """Whether calls of one tool by one caller can differ in it, so that it is looked at with each of them."""
    names_tools = False
    """Whether it says by itself which tools a rule is for."""

    def label(self) -> str:
        """It in few words, for a person; nothing where a rule is told without it."""
        return ""

    def prepared(self, *, allows: bool) -> "Condition":
        """It as it is looked at in a rule that allows, or one that does not."""
        return self

    def arguments(self) -> frozenset[str]:
        """The arguments that it looks at."""
        return frozenset()

    def reaches(self, namespace: str, source: str, *, allows: bool) -> bool:
        """Whether it can mean tools of this namespace, whose source the file spells so."""
        return True

    def lacks(self, tool: Tool, *, allows: bool) -> str | None:
        """Which of the traits that it asks for the tool does not have; None where it has them."""
        return None

    def excludes(self, tool: Tool, caller: str, *, allows: bool) -> str | None:
        """Why it holds for no call of this tool by this caller; None where it may."""
        return self.lacks(tool, allows=allows)

    def is_for_others(self, person: str, groups: frozenset[str]) -> str | None:
        """Why it holds for no caller that works for this person, who is in these groups; None where it may."""
        return None

    def mismatch(self, arguments: Mapping[str, Json], *, allows: bool) -> str | None:
        """Why it does not hold for this call; None where it does."""
        return None

    def wider(self, inner: "Condition | None") -> bool:
        """Whether it asks for nothing that `inner`, the same condition of another rule, does not ask for as well."""
        return self == inner

    def unmet(self, tool: Tool, extra: Sequence[str], *, allows: bool) -> str | None:
        """Why no call of this tool can meet it; None where one can, or where that cannot be told."""
        return None

    def strangers(self, agents: Sequence[str]) -> tuple[str, ...]:
        """Whom it is for, where that is none of these agents."""
        return ()

    def instead(self, namespaces: Sequence[str]) -> str | None:
        """What it could have named instead, where it means nothing there is."""
        return None


@dataclass(frozen=True, slots=True)
class ByName(Condition):
    """A condition that holds for whoever one of the globs in `wanted` names."""

    wanted: tuple[str, ...]

    def wider(self, inner: Condition | None) -> bool:
        return type(inner) is type(self) and set(inner.wanted) <= set(self.wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionKind:
    """A condition as files know it: its key, what that means, the form of its value, and how that becomes one."""

    key: str
    doc: str
    type: Any
    schema: Mapping[str, Any]
    parse: Callable[[Any], Condition | None] = field(compare=False)
    """From a value of `type`; None where that asks for nothing, a `Misread` where it means nothing."""


def naming(key: str, doc: str, condition: type[ByName], all_of_them: str) -> ConditionKind:
    """The kind whose value is a list of globs, which may not be empty."""

    def parse(written: tuple[str, ...]) -> ByName:
        if not written:
            raise Misread(f"names nobody; leave it out where the rule is for {all_of_them}")
        return condition(tuple(written))

    schema = {"type": ["array", "null"], "items": {"type": "string"}}
    return ConditionKind(key=key, doc=doc, type=tuple[str, ...], schema=schema, parse=parse)
