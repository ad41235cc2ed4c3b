"""What makes a question dangerous: what its tool does to the world, and how it differs from what was done before."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from agent_gate.core.traits import NO_TRAITS, Traits

Risk = Literal["destructive", "outward", "first", "unusual"]
SAID: Mapping[str, tuple[str, str]] = {
    "destructive": ("destructive", "it may destroy something"),
    "outward": ("reaches outside", "it goes beyond its source, as a mail does"),
    "first": ("first time", "no such call of this agent went well in the last 30 days"),
    "unusual": ("unusual arguments", "they differ from those of earlier calls"),
}
"""Each danger in two words, and what it means."""
ENOUGH = 5
"""As many earlier calls make a habit."""
FEW_VALUES = 3
FAR = 4
LONG = 200


def risks(
    arguments: Mapping[str, Any], traits: Traits | None, earlier: Sequence[Mapping[str, Any]]
) -> list[Risk]:
    """The dangers of one call; `earlier` are the arguments of those like it that went well."""
    return list(_risks(arguments, traits or NO_TRAITS, earlier))


def _risks(
    arguments: Mapping[str, Any], traits: Traits, earlier: Sequence[Mapping[str, Any]]
) -> Iterator[Risk]:
    yield from standing_risks(traits)
    if not earlier:
        yield "first"
    elif is_unusual(arguments, earlier):
        yield "unusual"


def standing_risks(traits: Traits) -> Iterator[Risk]:
    """The dangers of every call of a tool, whatever its arguments are."""
    if traits.destructive:
        yield "destructive"
    if traits.open_world:
        yield "outward"


def is_unusual(arguments: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the arguments break a habit: an argument never given before, or a value far from all earlier ones."""
    if len(earlier) < ENOUGH:
        return False
    known = set().union(*(call.keys() for call in earlier))
    if not arguments.keys() <= known:
        return True
    return any(
        stands_out(value, [call[name] for call in earlier if name in call])
        for name, value in arguments.items()
    )


def stands_out(value: Any, before: Sequence[Any]) -> bool:
    """A number or a length beyond everything before, or a new value where there were ever only a few."""
    if len(before) < ENOUGH:
        return False
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        numbers = [abs(one) for one in before if isinstance(one, (int, float)) and not isinstance(one, bool)]
        return len(numbers) == len(before) and abs(value) > FAR * max(numbers)
    distinct = {repr(one) for one in before}
    if len(distinct) <= FEW_VALUES:
        return repr(value) not in distinct
    size = len(value) if isinstance(value, (str, list, Mapping)) else 0
    sizes = [len(one) for one in before if isinstance(one, (str, list, Mapping))]
    return size > LONG and bool(sizes) and size > FAR * max(sizes)
