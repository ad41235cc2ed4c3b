"""A JSON file into a `Node`. Comments and trailing commas are read too, because editors write them."""

import re
from dataclasses import dataclass
from json import JSONDecodeError, JSONDecoder
from pathlib import Path

from agent_gate.config.files.nodes import Mark, Node, Scalar, fail
from agent_gate.config.files.yamlfile import MAX_DEPTH, read_text

DECODER = JSONDecoder()
SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,400})(\.[0-9]+)?([eE][-+]?[0-9]+)?")
WORDS: dict[str, Scalar] = {"null": None, "true": True, "false": False}


@dataclass(slots=True)
class Member:
    """`"key": value` of an object; `start` is at the key's quote, `end` behind the value."""

    key: str
    start: int
    value: "JsonSpan"

    @property
    def end(self) -> int:
        return self.value.end


@dataclass(slots=True)
class JsonSpan:
    """A value between `start` and `end`; `members` are there only for an object."""

    start: int
    end: int
    members: list[Member] | None = None

    def member(self, key: str) -> Member | None:
        return next((one for one in self.members or () if one.key == key), None)


def read_json(path: Path) -> Node:
    return parse_json(read_text(path), str(path))


def parse_json(text: str, name: str) -> Node:
    return JsonReader(text, name).whole() or Node(None, Mark(name, 1, 1))


def locate_json(text: str) -> JsonSpan | None:
    """Where the value of `text` stands, and in it its members; None where there is none."""
    reader = JsonReader(text, "")
    return reader.span if reader.whole() else None


class JsonReader:
    """A cursor over JSON text; each method reads one thing and leaves the cursor behind it.

    `span` is where the value that was read last stands.
    """

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self.at = 1 if text.startswith("\ufeff") else 0
        self.span = JsonSpan(self.at, self.at)

    def whole(self) -> Node | None:
        """The only value of the text; None where there is nothing but space and remarks."""
        self.skip()
        if self.at == len(self.text):
            return None
        node = self.value(0)
        self.skip()
        if self.at != len(self.text):
            fail(self.mark(), "", "something follows the end of the JSON value")
        return node

    def mark(self) -> Mark:
        begin = self.text.rfind("\n", 0, self.at) + 1
        return Mark(self.name, self.text.count("\n", 0, self.at) + 1, self.at - begin + 1)

    def skip(self) -> None:
        found = SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def value(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            fail(self.mark(), "", f"nested deeper than {MAX_DEPTH} levels")
        opening = self.text[self.at : self.at + 1]
        if opening == "{":
            return self.mapping(depth)
        if opening == "[":
            return self.sequence(depth)
        mark, start = self.mark(), self.at
        node = Node(self.string() if opening == '"' else self.word(), mark)
        self.span = JsonSpan(start, self.at)
        return node

    def string(self) -> str:
        try:
            text, self.at = DECODER.raw_decode(self.text, self.at)
        except JSONDecodeError as error:
            self.at = error.pos
            fail(self.mark(), "", "not valid JSON: a text that does not end or holds a bad character")
        return str(text)

    def word(self) -> Scalar:
        for word, value in WORDS.items():
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return value
        found = NUMBER.match(self.text, self.at)
        if found is None:
            fail(self.mark(), "", "not valid JSON: expected a value")
        self.at = found.end()
        return float(found[0]) if found[1] or found[2] else int(found[0])

    def more(self, closing: str) -> bool:
        """Whether another member follows; steps over one comma, and over `closing` where nothing follows."""
        self.skip()
        if self.text.startswith(",", self.at):
            self.at += 1
            self.skip()
        if self.text.startswith(closing, self.at):
            self.at += 1
            return False
        return True

    def sequence(self, depth: int) -> Node:
        found: list[Node] = []
        node, start = Node(found, self.mark()), self.at
        self.at += 1
        while self.more("]"):
            found.append(self.value(depth + 1))
            self.expect_end("]")
        self.span = JsonSpan(start, self.at)
        return node

    def mapping(self, depth: int) -> Node:
        found: dict[str, Node] = {}
        node, start = Node(found, self.mark()), self.at
        members: list[Member] = []
        self.at += 1
        while self.more("}"):
            begin = self.at
            key = self.key(node)
            found[key] = self.value(depth + 1)
            members.append(Member(key, begin, self.span))
            self.expect_end("}")
        self.span = JsonSpan(start, self.at, members)
        return node

    def key(self, node: Node) -> str:
        mark = self.mark()
        if not self.text.startswith('"', self.at):
            fail(mark, "", "not valid JSON: expected a key in quotes")
        key = self.string()
        if key in node.keys:
            fail(mark, "", f'the key "{key}" is already given in line {node.keys[key].line}')
        node.keys[key] = mark
        self.skip()
        if not self.text.startswith(":", self.at):
            fail(self.mark(), "", 'not valid JSON: expected ":"')
        self.at += 1
        self.skip()
        return key

    def expect_end(self, closing: str) -> None:
        self.skip()
        if self.text[self.at : self.at + 1] not in (",", closing):
            fail(self.mark(), "", f'not valid JSON: expected "," or "{closing}"')
