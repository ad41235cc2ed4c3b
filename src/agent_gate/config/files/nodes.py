"""`Node`: a value read from a file together with the place where it stands, whatever the file's format."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, TypeVar

from agent_gate.errors import ConfigError

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")
Scalar = str | int | float | bool | None


class Mark(NamedTuple):
    """A place in a file, counted from 1; line 0 where only the file is known."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"


@dataclass(slots=True, eq=False)
class Node:
    """A scalar, a mapping of nodes or a list of nodes. `keys` says where each key of a mapping stands.

    `size` counts the nodes below with aliases followed; `filled` marks text that came from a variable.
    """

    value: "Scalar | dict[str, Node] | list[Node]"
    mark: Mark
    keys: dict[str, Mark] = field(default_factory=dict)
    size: int = 1
    filled: bool = False

    @property
    def kind(self) -> str:
        """What the value is, in the words of an error message."""
        return NAMES[type(self.value)]

    def plain(self) -> Any:
        """The value without its places."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def top(self) -> dict[str, Any]:
        """What a file says whose root this is; it has to be a mapping, and nothing at all is an empty one."""
        found = {} if self.value is None else self.plain()
        if not isinstance(found, dict):
            raise ConfigError("expected a mapping at the top", where=self.mark.file)
        return found

    def get(self, key: str) -> "Node | None":
        """The node under `key` of a mapping; None where it is absent, null, or this is no mapping."""
        found = self.value.get(key) if isinstance(self.value, dict) else None
        return None if found is None or found.value is None else found

    def key_mark(self, key: str) -> Mark:
        return self.keys.get(key, self.mark)


NAMES: dict[type, str] = {
    str: "text",
    int: "a number",
    float: "a number",
    bool: "true or false",
    type(None): "nothing",
    dict: "a mapping",
    list: "a list",
}


def empty(mark: Mark) -> Node:
    return Node({}, mark)


def fail(mark: Mark, path: str, message: str) -> NoReturn:
    raise ConfigError(f"{path}: {message}" if path else message, where=str(mark))


def join(path: str, key: str | int) -> str:
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def entries(node: Node, path: str) -> dict[str, Node]:
    """The entries of a mapping; nothing at all counts as an empty one."""
    if node.value is None:
        return {}
    if not isinstance(node.value, dict):
        fail(node.mark, path, f"expected a mapping, found {node.kind}")
    return node.value


def read_each(found: Iterable[tuple[K, V]], read: Callable[[K, V], T]) -> dict[K, T]:
    """What `read` makes of each of them; where some are wrong, one error with the faults of all."""
    done: dict[K, T] = {}
    faults: list[ConfigError] = []
    for key, value in found:
        try:
            done[key] = read(key, value)
        except ConfigError as error:
            faults += [error, *error.also]
    if faults:
        faults[0].also = tuple(faults[1:])
        raise faults[0]
    return done


def read_named(node: Node, path: str, read: Callable[[str, Node], T]) -> dict[str, T]:
    """What `read` makes of each entry of a mapping by names, each of which says something."""

    def read_one(name: str, item: Node) -> T:
        if item.value is None:
            said = "has nothing below it; what belongs to it is indented further than its name"
            fail(node.key_mark(name), join(path, name), said)
        return read(name, item)

    return read_each(entries(node, path).items(), read_one)


def items(node: Node, path: str) -> list[Node]:
    """The items of a list; nothing at all counts as an empty one."""
    if node.value is None:
        return []
    if not isinstance(node.value, list):
        fail(node.mark, path, f"expected a list, found {node.kind}")
    return node.value
