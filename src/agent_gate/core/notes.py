"""What a field of a settings class may say beside its type and its meaning: `Annotated[type, "what it means", note]`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Treatment(Enum):
    """How a field is treated beside its plain reading."""

    GIVEN = "set while loading, never written in a file"
    SECRET = "kept out of logs, errors and representations"  # noqa: S105
    AT_START = "counts only at a start; a reload that changes it says so"
    ADDRESS = "the address of an HTTP server"


GIVEN, SECRET, AT_START, ADDRESS = Treatment.GIVEN, Treatment.SECRET, Treatment.AT_START, Treatment.ADDRESS


@dataclass(frozen=True, slots=True)
class InFile:
    """A field whose form in the file differs from its type: the loader reads it, `schema` describes it."""

    schema: Mapping[str, Any]
    doc: str = ""


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The smallest number a field takes."""

    value: float


@dataclass(frozen=True, slots=True)
class AtMost:
    """The largest number a field takes."""

    value: float


@dataclass(frozen=True, slots=True)
class ReadBy:
    """A text, or a list of texts, that `read` must be able to read; `wanted` says to people what it may be."""

    read: Callable[[str], object]
    wanted: str


@dataclass(frozen=True, slots=True)
class Filled:
    """A list that must not be empty; `reason` says why."""

    reason: str
