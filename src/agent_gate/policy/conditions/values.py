"""What a `when` may ask of one argument: a value, a list of values, or predicates such as `{min: 1, max: 9}`.

`PREDICATES` has one entry each: the operand it takes, what it means, and the kinds of values it can hold for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_gate.core.tool import Json
from agent_gate.policy.conditions.condition import Misread
from agent_gate.policy.globs import compile_glob

KINDS = frozenset({"string", "integer", "number", "boolean"})
NUMBERS = frozenset({"integer", "number"})


@dataclass(frozen=True, slots=True)
class Predicate:
    """`takes` are the types of its operand, called `called`; `of` the kinds of values that it can hold for, None
    where that is told by its operand, which then is one or more of them."""

    takes: tuple[type, ...]
    called: str
    holds: Callable[[Json, Any], bool]
    of: frozenset[str] | None = None


def same(value: Json, wanted: Any) -> bool:
    """Equal and of one kind; 5 and 5.0 are one number, true is none."""
    alike = type(value) is type(wanted) or (is_number(value) and is_number(wanted))
    return alike and value == wanted


def is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


PREDICATES = {
    "glob": Predicate(
        (str,),
        "text",
        lambda value, pattern: isinstance(value, str) and compile_glob(pattern)(value) is not None,
        frozenset({"string"}),
    ),
    "in": Predicate((list,), "a list", lambda value, items: any(same(value, item) for item in items)),
    "min": Predicate((int, float), "a number", lambda value, low: is_number(value) and value >= low, NUMBERS),
    "max": Predicate(
        (int, float), "a number", lambda value, high: is_number(value) and value <= high, NUMBERS
    ),
}


def holds(wanted: Any, value: Json) -> bool:
    if isinstance(wanted, Mapping):
        return all(PREDICATES[name].holds(value, operand) for name, operand in wanted.items())
    if isinstance(wanted, list | tuple):
        return any(same(value, item) for item in wanted)
    return same(value, wanted)


def check_written(wanted: Any, argument: str) -> None:
    """Raise a `Misread` for what asks nothing of the argument, or cannot be asked."""
    if wanted in ({}, []):
        raise Misread("says nothing about the argument; give a value, or leave it out", argument)
    for name, operand in wanted.items() if isinstance(wanted, Mapping) else ():
        if name not in PREDICATES:
            raise Misread(f"unknown predicate, use {', '.join(PREDICATES)}", argument, name, of_key=True)
        predicate = PREDICATES[name]
        if not isinstance(operand, predicate.takes) or isinstance(operand, bool):
            raise Misread(f"expected {predicate.called}", argument, name, tells_kind=True)


def is_possible(wanted: Any, kind: str, enum: Any) -> bool:
    """Whether a value of this kind can be what is wanted."""
    if isinstance(wanted, Mapping):
        return all(
            is_possible(operand, kind, enum) if (of := PREDICATES[name].of) is None else kind in of
            for name, operand in wanted.items()
        )
    listed = wanted if isinstance(wanted, list | tuple) else [wanted]
    return any(is_of(value, kind) and (not enum or is_enumerated(value, enum)) for value in listed)


def is_enumerated(value: Json, enum: Any) -> bool:
    """Accents may be spelled in other ways than in the file, so of such texts nothing is said."""
    return not str(value).isascii() or any(same(value, one) for one in enum)


def is_of(value: Json, kind: str) -> bool:
    if kind in NUMBERS:
        return is_number(value)
    return isinstance(value, bool if kind == "boolean" else str)
