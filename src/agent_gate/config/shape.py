"""What a settings class says about itself: each field's name in the file, type, meaning, default and secrecy.

A field is `Annotated[type, "what it means", ...]`; the decoder, the JSON Schema and the documentation test all
read the same `Field` list.
"""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, get_args, get_origin

from agent_gate.core.notes import ADDRESS, AT_START, GIVEN, SECRET, AtLeast, AtMost, InFile

__all__ = [
    "ADDRESS",
    "AT_START",
    "GIVEN",
    "SECRET",
    "AtLeast",
    "AtMost",
    "Field",
    "InFile",
    "also",
    "fixed_at_start",
    "is_path",
    "keys",
    "shape",
]


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: Any
    doc: str
    default: Any
    factory: Any
    notes: tuple[Any, ...]

    @property
    def given(self) -> bool:
        return GIVEN in self.notes

    @property
    def secret(self) -> bool:
        return SECRET in self.notes

    @property
    def required(self) -> bool:
        return self.default is MISSING and self.factory is MISSING

    @property
    def in_file(self) -> InFile | None:
        return next((note for note in self.notes if isinstance(note, InFile)), None)

    @property
    def at_least(self) -> float | None:
        return next((note.value for note in self.notes if isinstance(note, AtLeast)), None)

    @property
    def at_most(self) -> float | None:
        return next((note.value for note in self.notes if isinstance(note, AtMost)), None)


SHAPES: dict[type, tuple[Field, ...]] = {}


def shape(cls: type) -> tuple[Field, ...]:
    """The fields of a settings class in the order they are written down."""
    if cls not in SHAPES:
        SHAPES[cls] = tuple(describe(found) for found in fields(cls))
    return SHAPES[cls]


def describe(found: Any) -> Field:
    if get_origin(found.type) is Annotated:
        kind, *notes = get_args(found.type)
        doc = next((note for note in notes if isinstance(note, str)), "")
        return Field(found.name, kind, doc, found.default, found.default_factory, tuple(notes))
    return Field(found.name, found.type, "", found.default, found.default_factory, ())


def fixed_at_start(cls: type, prefix: str = "") -> Iterator[str]:
    """The fields that count only at a start, each by its way from the class (`gateway.port`)."""
    for field in shape(cls):
        if AT_START in field.notes:
            yield f"{prefix}{field.name}"
        elif (block := block_class(field.type)) is not None:
            yield from fixed_at_start(block, f"{prefix}{field.name}.")


def block_class(kind: Any) -> type | None:
    """The settings class of a block, which may be null."""
    kinds = get_args(kind) if get_origin(kind) is UnionType else (kind,)
    return next((one for one in kinds if isinstance(one, type) and is_dataclass(one)), None)


def also(cls: type) -> Mapping[str, InFile]:
    """Keys that a file may have beside the fields of the class."""
    found: Mapping[str, InFile] = getattr(cls, "ALSO", {})
    return found


def keys(cls: type) -> tuple[str, ...]:
    """Every key that a mapping of this class may have in a file."""
    return tuple(field.name for field in shape(cls) if not field.given) + tuple(also(cls))


def is_path(kind: Any) -> bool:
    return kind is Path or Path in get_args(kind)
