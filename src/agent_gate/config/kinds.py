"""What a kind of source brings to the configuration: a key of its own in config.yaml, and what stands below it.

Kinds are installed, the built-in ones too: `config/` names none of them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Generic, Protocol, TypeVar, cast

from agent_gate.config.decode import Reading, decode
from agent_gate.config.files.nodes import Node, entries, join, read_each
from agent_gate.config.settings import Settings
from agent_gate.config.shape import InFile, shape
from agent_gate.core.tool import Definition
from agent_gate.errors import ConfigError

GROUP = "agent_gate.sources"


class SourceEntry(Protocol):
    """One source as a file has it; `where` is the place of its key."""

    @property
    def where(self) -> str: ...


E_co = TypeVar("E_co", bound=SourceEntry, covariant=True)


def no_code(_: Settings) -> Iterable[Path]:
    return ()


@dataclass(frozen=True, slots=True)
class Section(Generic[E_co]):
    """The sources below one key of config.yaml, each under its namespace.

    `read` gets the whole file. `keys` are the keys it takes at the top level, as the schema and the docs have them;
    `classes` are what these refer to, `code` the files of code that it names, which count after a restart. `tools` are
    the tools of each of its sources, where the files alone tell.
    """

    name: str
    read: Callable[[Node, Reading], Mapping[str, E_co]]
    keys: Mapping[str, InFile]
    classes: tuple[type, ...] = ()
    code: Callable[[Settings], Iterable[Path]] = no_code
    tools: Callable[[Settings], Mapping[str, Sequence[Definition]]] | None = None

    def of(self, settings: Settings) -> Mapping[str, E_co]:
        """What the files say of it."""
        return cast("Mapping[str, E_co]", settings.sources.get(self.name, {}))


def section(key: str, cls: type[E_co], doc: str) -> Section[E_co]:
    """A section whose entries are plain settings: `key` in the file, a mapping of `cls` below it.

    Its fields `name` (the entry's own key) and `where` are given.
    """

    def read(root: Node, reading: Reading) -> Mapping[str, E_co]:
        found = root.get(key)
        if found is None:
            return {}
        return read_each(
            entries(found, key).items(),
            lambda name, node: read_entry(
                node, cls, join(key, name), reading, name=name, where=str(found.key_mark(name))
            ),
        )

    schema = {"type": ["object", "null"], "additionalProperties": {"$ref": f"#/$defs/{cls.__name__}"}}
    return Section(key, read, {key: InFile(schema, doc)}, (cls,))


def read_entry(node: Node, cls: type[E_co], path: str, reading: Reading, **own: str) -> E_co:
    given = {each.name for each in shape(cls) if each.given}
    return decode(node, cls, path, reading, **{name: value for name, value in own.items() if name in given})


class Kind(Protocol):
    """A kind of source as far as files are concerned. Kinds that answer for the same entries share a section."""

    name: str
    section: Section[SourceEntry] | None


@cache
def kinds() -> tuple[Kind, ...]:
    """Every kind of source that is installed, the built-in ones among them."""
    points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    return tuple(load_kind(point) for point in points)


def load_kind(point: EntryPoint) -> Kind:
    """An installed kind. Its package is a stranger's, and must not end a running gateway at a reload."""
    try:
        return cast("Kind", point.load())
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        raise ConfigError(
            f"The source kind {point.name} ({point.value}) cannot be loaded: {type(error).__name__}. "
            "Mend or remove the package that brings it"
        ) from error


def sections() -> list[Section[SourceEntry]]:
    """What all kinds bring, each once; two kinds cannot bring the same key."""
    found: list[Section[SourceEntry]] = []
    for kind in kinds():
        if kind.section is None or kind.section in found:
            continue
        for other in found:
            if shared := other.keys.keys() & kind.section.keys.keys():
                raise ConfigError(
                    f"two kinds of source bring the key {min(shared)}: {other.name}, {kind.name}"
                )
        found.append(kind.section)
    return found
