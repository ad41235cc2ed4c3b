"""What the revisions of the protocol do is known in one module; every other asks for the feature it means."""

import ast
import re
from pathlib import Path

import pytest

import agent_gate
from agent_gate.mcp import revisions
from agent_gate.mcp.revisions import BY_HEADER, NEWEST, NEWEST_WITH_SESSIONS, REVISIONS, UNSAID, agreed

SOURCE = Path(agent_gate.__file__).parent
DATES = {revision.name for revision in REVISIONS}
MODULES = sorted(set(SOURCE.rglob("*.py")) - {Path(revisions.__file__)})


def words_of(node: ast.AST) -> list[str]:
    """The identifiers that stand in a node itself."""
    fields = ("id", "attr", "arg", "name", "asname")
    return [word for field in fields if isinstance(word := getattr(node, field, None), str)]


def knows_a_revision(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            found += [f"line {node.lineno}: {text}" for _ in DATES & {text}]
        found += [word for word in words_of(node) if re.search("modern", word, re.IGNORECASE)]
    return found


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_names_a_date_or_calls_a_revision_modern(module: Path) -> None:
    assert knows_a_revision(ast.parse(module.read_text())) == []


@pytest.mark.parametrize(
    "text", ["era == '2026-07-28'", "modern = True", "f(modern=1)", "x.is_modern", "b'2025-11-25'"]
)
def test_the_search_finds_each_way_of_knowing(text: str) -> None:
    assert knows_a_revision(ast.parse(text))


def test_a_handshake_settles_on_what_was_asked_for_or_the_newest_that_has_one() -> None:
    assert [agreed(one.name) for one in REVISIONS if one.has_sessions] == [
        one for one in REVISIONS if one.has_sessions
    ]
    assert agreed(NEWEST.name) is agreed("2099-01-01") is NEWEST_WITH_SESSIONS


def test_a_revision_is_found_by_its_header_and_one_is_meant_without() -> None:
    assert all(BY_HEADER[one.name.encode()] is one for one in REVISIONS)
    assert BY_HEADER[None] is UNSAID
