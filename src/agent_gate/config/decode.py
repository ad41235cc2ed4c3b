"""A `Node` into a settings class, driven by the class's own field types; everything unexpected is a `ConfigError`."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, is_dataclass
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin
from urllib.parse import urlsplit

from agent_gate.config.files.nodes import Mark, Node, empty, entries, fail, items, join, read_each
from agent_gate.config.files.variables import Variables
from agent_gate.config.shape import Field, is_path, keys, shape
from agent_gate.core.notes import AtLeast, AtMost, Filled, ReadBy, Treatment

T = TypeVar("T")
SECRET_NAME = re.compile(r"key|token|secret|pass|auth|cred|cookie", re.IGNORECASE)
LARGEST = 2**1023
SERVERS = "mcpServers"
SCALARS: dict[type, str] = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


@dataclass(slots=True)
class Reading:
    """One load in progress: the environment, and what is gathered on the way."""

    variables: Variables
    warnings: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    looked_for: list[Path] = field(default_factory=list)
    blank: list[Path] = field(default_factory=list)
    """Those that hold nothing at all, not even `{}`."""

    @property
    def watched(self) -> tuple[Path, ...]:
        """Every file whose change can change the outcome, whether it is there or not."""
        return tuple(dict.fromkeys(path.absolute() for path in (*self.files, *self.looked_for)))

    def open(self, path: Path, parse: Callable[[Path], Node]) -> Node:
        """What a file says; that it was read is kept in mind, and whether it says nothing."""
        self.files.append(path)
        root = parse(path)
        if root.value is None:
            self.blank.append(path)
        return root

    def warn(self, mark: Mark, path: str, message: str) -> None:
        self.warnings.append(f"{mark}: {path}: {message}" if path else f"{mark}: {message}")


def decode(
    node: Node, cls: type[T], path: str, reading: Reading, *, others: Iterable[str] = (), **given: Any
) -> T:
    """An instance of `cls`. `given` are fields that the caller has read itself, of keys of theirs or of `others`."""
    found = entries(node, path)
    refuse_unknown(node, (*keys(cls), *others), path)
    values = dict(given)

    def read(name: str, each: Field) -> None:
        item = found.get(name)
        if item is None or (item.value is None and not each.required):
            fill_absent(node, each, path, values, reading)
        else:
            values[name] = field_value(item, each, join(path, name), reading)

    wanted = [each for each in shape(cls) if not (each.name in given or each.given or each.in_file)]
    read_each(((each.name, each) for each in wanted), read)
    return cls(**values)


def refuse_unknown(node: Node, known: tuple[str, ...], path: str) -> None:

    def refuse(key: str, value: Node) -> None:
        if key not in known:
            hint = suggestion(key, known) or (SERVERS in known and misplaced(value)) or ""
            fail(node.key_mark(key), join(path, key), f"unknown key{hint}")

    read_each(entries(node, path).items(), refuse)


def misplaced(value: Node) -> str:
    """What to say of a key that stands where our own do, and is a server."""
    server = any(value.get(key) is not None for key in ("command", "url"))
    return f'; a server stands below "{SERVERS}:", two spaces further in' if server else ""


def suggestion(word: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(word, known, 1)
    return f', did you mean "{close[0]}"?' if close else ""


def fill_absent(node: Node, each: Field, path: str, values: dict[str, Any], reading: Reading) -> None:
    """Fill in a field that the file leaves out, so that default paths are relative to the file as well."""
    if each.required:
        fail(node.mark, path, f'the key "{each.name}" is missing')
    if isinstance(each.type, type) and is_dataclass(each.type) and each.factory is not MISSING:
        values[each.name] = decode(empty(node.mark), each.type, join(path, each.name), reading)
    elif isinstance(each.default, Path):
        values[each.name] = relative_to(node.mark, each.default)


def field_value(node: Node, each: Field, path: str, reading: Reading) -> Any:
    value = convert(node, each.type, path, reading)
    if each.secret:
        remember(value, reading)
    for note in each.notes:
        check_note(note, node, value, path)
    return value


def check_note(note: Any, node: Node, value: Any, path: str) -> None:
    """Refuse a value that is not what a note of its field says."""
    match note:
        case AtLeast(least) if isinstance(value, (int, float)) and value < least:
            fail(node.mark, path, f"must be at least {least:g}")
        case AtMost(most) if isinstance(value, (int, float)) and value > most:
            fail(node.mark, path, f"must be at most {most}")
        case Filled(reason) if not value:
            fail(node.mark, path, f"is empty, {reason}")
        case ReadBy(read, wanted) if value is not None:
            require_readable(node, read, wanted, path)
        case Treatment.ADDRESS if value is not None:
            require_address(node, path)


def require_readable(node: Node, read: Callable[[str], object], wanted: str, path: str) -> None:
    """Try it with the text, or with each one of a list."""
    for each in node.value if isinstance(node.value, list) else [node]:
        try:
            read(str(each.value))
        except (ValueError, LookupError, OSError):
            fail(each.mark, path, f"expected {wanted}")


def remember(value: Any, reading: Reading) -> None:
    """Note a literal secret, so that it is redacted like those from the environment.

    In a mapping (headers, a child's environment) the names say which values are secret.
    """
    named = value.items() if isinstance(value, Mapping) else [("secret", value)]
    for name, one in named:
        if isinstance(one, str) and SECRET_NAME.search(name):
            reading.variables.remember(one)


def convert(node: Node, kind: Any, path: str, reading: Reading) -> Any:
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Any:
        return node.plain()
    if origin in (Union, UnionType):
        return convert_union(node, parts, path, reading)
    if origin is Literal:
        return convert_choice(node, parts, path)
    if origin is tuple:
        return tuple(
            convert(item, parts[0], join(path, i), reading) for i, item in enumerate(items(node, path))
        )
    if origin is not None:
        return {
            key: convert(item, parts[1], join(path, key), reading)
            for key, item in entries(node, path).items()
        }
    if is_dataclass(kind) and isinstance(kind, type):
        return decode(node, kind, path, reading)
    return scalar(node, kind, path)


def convert_union(node: Node, parts: tuple[Any, ...], path: str, reading: Reading) -> Any:
    if node.value is None and NoneType in parts:
        return None
    wanted = [part for part in parts if part is not NoneType]
    if len(wanted) == 1:
        return convert(node, wanted[0], path, reading)
    if type(node.value) not in wanted:
        expected = " or ".join(SCALARS[part] for part in wanted)
        fail(node.mark, path, f"expected {expected}, found {node.kind}")
    return node.value


def convert_choice(node: Node, choices: tuple[Any, ...], path: str) -> Any:
    if node.value not in choices or isinstance(node.value, (dict, list)):
        shown = node.value if isinstance(node.value, str) and not node.filled else node.kind
        close = suggestion(str(shown), tuple(map(str, choices)))
        fail(node.mark, path, f"expected one of {', '.join(map(str, choices))}, found {shown}{close}")
    return node.value


def scalar(node: Node, kind: Any, path: str) -> Any:
    value = from_variable(node.value, kind) if node.filled else node.value
    if is_path(kind) and isinstance(value, str):
        return relative_to(node.mark, Path(value))
    if kind is float and type(value) is int and abs(value) <= LARGEST:
        return float(value)
    if type(value) is not kind or (isinstance(value, float) and not isfinite(value)):
        expected = "a path" if is_path(kind) else SCALARS[kind]
        bare = isinstance(value, dict) and all(part.value is None for part in value.values())
        quotes = "; a text that begins with { needs quotes" if bare else ""
        fail(node.mark, path, f"expected {expected}, found {node.kind}{quotes}")
    return value


def from_variable(value: Any, kind: Any) -> Any:
    """The environment holds only text, so where a number or a truth value is wanted it is read as one."""
    text = str(value).strip()
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), value)
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            return value
    return value


def relative_to(mark: Mark, path: Path) -> Path:
    """`path` seen from the folder of the file that names it."""
    return beside(mark, path).absolute()


def beside(mark: Mark, path: Path) -> Path:
    try:
        return Path(mark.file).parent / path.expanduser()
    except RuntimeError:
        fail(mark, "", f"the home folder in {path} is not known; write the path without ~")


def require_address(node: Node, path: str) -> None:
    """Refuse what cannot be the address of an HTTP server."""
    try:
        parts = urlsplit(str(node.value))
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known:
        fail(node.mark, path, "is no address; write http(s)://host[:port][/path]")


def existing(mark: Mark, file: Path, path: str, reading: Reading, kind: str = "file") -> Path:
    """`file`, which the place at `mark` names and which must be there."""
    reading.looked_for.append(file)
    try:
        there = file.is_file()
    except OSError as error:
        fail(mark, path, f"the {kind} {file} cannot be read ({error.strerror})")
    if not there:
        fail(mark, path, f"the {kind} {file} does not exist")
    return file
