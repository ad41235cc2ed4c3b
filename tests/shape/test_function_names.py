"""What is held by `make check` beside lint and types: the names of types and of what acts; and that modules say what
they are for."""

import ast

import pytest
from tests.shape.program_copy import ROOT
from tools.class_names import find_types
from tools.failed_tests import failed_tests
from tools.function_names import find_nameless


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("async def opened() -> int: ...", ["opened"]),
        ("class Link:\n    async def _taken(self) -> bytes: ...", ["_taken"]),
        ("async def kept_rows() -> list[int]: ...", ["kept_rows"]),
        ("async def opened() -> None: ...", []),
        ("def filled(text: str) -> str: ...", []),
        ("class Desk:\n    def taken(self) -> int:\n        self.calls += 1\n        return 1", ["taken"]),
        (
            "class Desk:\n    def taken(self) -> int:\n        self.at[1], x = 1, 2\n        return x",
            ["taken"],
        ),
        ("class Desk:\n    def taken(self) -> int:\n        other = self.calls\n        return other", []),
        (
            "class Desk:\n    def __missing__(self, key: int) -> int:\n        self[key] = 1\n        return 1",
            [],
        ),
        ("async def open_stream() -> int: ...", []),
        ("async def feed_all() -> int: ...", []),
        ("async def tokens_of(agent: str) -> str: ...", ["tokens_of"]),
        ("async def link() -> str: ...", ["link"]),
        ("async def holds(key: str) -> bool: ...", []),
        ("async def press() -> int: ...", []),
        ("def tokens_of(agent: str) -> str: ...", []),
    ],
    ids=[
        "function",
        "method",
        "with-a-noun",
        "callback",
        "conversion",
        "counting",
        "keeping",
        "reading",
        "dunder",
        "verb",
        "looks-like-one",
        "plural",
        "noun",
        "yes-or-no",
        "no-plural",
        "pure-noun",
    ],
)
def test_a_function_that_acts_and_hands_something_back_is_a_verb(text, found):
    assert [name for _, name in find_nameless(text)] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("class Key: ...", ["Key"]),
        ("def make():\n    class Key: ...", ["Key"]),
        ("Key = tuple[str, str]", ["Key"]),
        ("KEY = 'k'", []),
        ("def make():\n    Key = tuple[str, str]", []),
    ],
    ids=["class", "class-inside", "alias", "constant", "local"],
)
def test_a_type_is_a_class_or_a_name_that_stands_for_one(text, found):
    assert list(find_types(text)) == found


def test_every_module_says_what_it_is_for():
    modules = (ROOT / "src").rglob("*.py")
    assert [str(one) for one in modules if not ast.get_docstring(ast.parse(one.read_text()))] == []


def test_what_failed_is_named_only_where_each_of_it_is_a_test(tmp_path):
    remembered = tmp_path / "lastfailed"
    assert failed_tests(remembered) == []
    remembered.write_text('{"tests/a/test_a.py::test_one": true}')
    assert failed_tests(remembered) == ["tests/a/test_a.py::test_one"]
    remembered.write_text('{"tests/a/test_a.py::test_one": true, "tests/a/test_b.py": true}')
    assert failed_tests(remembered) == []
