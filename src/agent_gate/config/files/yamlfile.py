"""A YAML 1.2 file into a `Node`: core schema, no tags, no merge keys, no duplicate keys, bounded aliases.

Built on the parser's events, because its composer would resolve `12:30` and dates into something else.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from agent_gate.config.files.nodes import Mark, Node, Scalar, fail
from agent_gate.config.files.pasted import straighten
from agent_gate.errors import ConfigError

MAX_BYTES = 4 << 20
MAX_DEPTH = 40
MAX_NODES = 100_000
WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
INTEGER = re.compile(r"[-+]?[0-9]{1,4000}")
OCTAL = re.compile(r"0o[0-7]+")
HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
TAGS = {"tag:yaml.org,2002:str", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq", "!"}

TAGGED = "tags are not supported; a text that begins with ! needs quotes"


def read_text(path: Path) -> str:
    """The text of a configuration file, or a `ConfigError` that says why there is none."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError("the file does not exist", where=str(path)) from None
    except OSError as error:
        raise ConfigError(f"the file cannot be read ({error.strerror})", where=str(path)) from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"the file is larger than {MAX_BYTES >> 20} MiB", where=str(path))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError("the file is not UTF-8", where=f"{path}:{line}") from None


def read_yaml(path: Path) -> Node:
    return parse_yaml(read_text(path), str(path))


def parse_yaml(text: str, name: str) -> Node:
    try:
        return compose(text, name)
    except MarkedYAMLError as fault:
        pasted = compose_pasted(text, name)
        if isinstance(pasted, Node):
            return pasted
        error = pasted or fault
        mark = (error.context_mark if unended(error) else None) or error.problem_mark or error.context_mark
        where = Mark(name, mark.line + 1, mark.column + 1) if mark else Mark(name)
        raise ConfigError(explain(error), where=str(where)) from None
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError("a control character does not belong into YAML", where=f"{name}:{line}") from None
    except YAMLError:
        raise ConfigError("this is not YAML", where=name) from None
    except RecursionError:
        raise ConfigError(f"nested deeper than {MAX_DEPTH} levels", where=name) from None


def compose(text: str, name: str) -> Node:
    return Composer(name, YAML(typ="safe", pure=True).parse(text)).document()


def compose_pasted(text: str, name: str) -> Node | MarkedYAMLError | None:
    """What a file with servers pasted from a client's JSON means, or where their JSON has no end; None where that is
    not what is wrong with it."""
    straight = straighten(text)
    try:
        return None if straight is None else compose(straight, name)
    except MarkedYAMLError as error:
        return error if unended(error) else None
    except (YAMLError, RecursionError):
        return None


def unended(error: MarkedYAMLError) -> bool:
    """Whether something that was opened is still open at the end of the file."""
    return any(words in str(error.problem) for words in ("end of stream", "<stream end>"))


MEANT = (
    ("expected <block end>", "this line is indented like none above it; indent it like those it belongs to"),
    ("mapping values are not", 'a second ": " in a line; put the text in quotes, or indent the line less'),
    ("expected ',' or", 'a comma is missing here, or quotes around a text such as "${NAME}"'),
    ("expected alphabetic or numeric", "a text that begins with * or & needs quotes"),
    ("that cannot start any token", "a text that begins with this sign needs quotes"),
)
"""What a person most often did where the parser has these words."""


def explain(error: MarkedYAMLError) -> str:
    """What is wrong, without a word of the value, which may be a secret that lacks its quotes."""
    problem = str(error.problem or error.context or "this is not YAML")
    if unended(error):
        return "not valid YAML: what begins here has no end; a quote or a bracket is missing"
    if "tag handle" in problem:
        return TAGGED
    if "\\t" in problem:
        return "a tab cannot indent YAML, use spaces"
    return f"not valid YAML: {next((meant for said, meant in MEANT if said in problem), problem)}"


def resolve(text: str) -> Scalar:
    """A plain scalar by YAML 1.2's core schema: `no`, `012` and `12:30` hold no surprises."""
    if text in WORDS:
        return WORDS[text]
    if INTEGER.fullmatch(text):
        return int(text)
    if OCTAL.fullmatch(text):
        return int(text[2:], 8)
    if HEXADECIMAL.fullmatch(text):
        return int(text[2:], 16)
    return float(text) if FLOAT.fullmatch(text) else text


class Composer:
    """Builds nodes from parser events; an alias shares its node, and its size is counted again."""

    def __init__(self, name: str, events: Iterator[Any]) -> None:
        self.name = name
        self.events = events
        self.anchors: dict[str, Node] = {}

    def mark(self, event: Any) -> Mark:
        return Mark(self.name, event.start_mark.line + 1, event.start_mark.column + 1)

    def document(self) -> Node:
        """The one document of the file; an empty file is a null node."""
        root: Node | None = None
        for event in self.events:
            if isinstance(event, DocumentStartEvent) and root is not None:
                fail(self.mark(event), "", "a second document (---) in one file")
            if isinstance(event, (ScalarEvent, MappingStartEvent, SequenceStartEvent, AliasEvent)):
                root = self.node(event, 0)
        return root or Node(None, Mark(self.name, 1, 1))

    def node(self, event: Any, depth: int) -> Node:
        mark = self.mark(event)
        if depth > MAX_DEPTH:
            fail(mark, "", f"nested deeper than {MAX_DEPTH} levels")
        if isinstance(event, AliasEvent):
            if event.anchor not in self.anchors:
                fail(
                    mark, "", "an alias without its anchor before it; a text that begins with * needs quotes"
                )
            return self.anchors[event.anchor]
        if event.tag is not None and event.tag not in TAGS:
            fail(mark, "", TAGGED)
        node = self.build(event, mark, depth)
        if node.size > MAX_NODES:
            fail(mark, "", f"aliases expand to more than {MAX_NODES} values")
        if event.anchor:
            self.anchors[event.anchor] = node
        return node

    def build(self, event: Any, mark: Mark, depth: int) -> Node:
        if isinstance(event, MappingStartEvent):
            return self.mapping(mark, depth)
        if isinstance(event, SequenceStartEvent):
            return self.sequence(mark, depth)
        plain = event.style is None and event.tag is None
        return Node(resolve(event.value) if plain else event.value, mark)

    def sequence(self, mark: Mark, depth: int) -> Node:
        found: list[Node] = []
        node = Node(found, mark)
        while not isinstance(event := next(self.events), SequenceEndEvent):
            item = self.node(event, depth + 1)
            found.append(item)
            node.size += item.size
        return node

    def mapping(self, mark: Mark, depth: int) -> Node:
        found: dict[str, Node] = {}
        node = Node(found, mark)
        while not isinstance(event := next(self.events), MappingEndEvent):
            key = self.key(event, node)
            node.keys[key] = self.mark(event)
            found[key] = self.node(next(self.events), depth + 1)
            node.size += found[key].size
        return node

    def key(self, event: Any, node: Node) -> str:
        mark = self.mark(event)
        if not isinstance(event, ScalarEvent):
            fail(mark, "", "a key must be plain text")
        key = str(event.value)
        if key == "<<" and event.style is None:
            fail(mark, "", "merge keys (<<) are not part of YAML 1.2; write the keys out")
        if key in node.keys:
            fail(mark, "", f'the key "{key}" is already given in line {node.keys[key].line}')
        return key
