"""The promises of docs/invariants.md."""

import re
from pathlib import Path

import msgspec
from tests.discovery.tools import HOME, catalog

from agent_gate.core.ids import format_tool_id, parse_tool_id
from agent_gate.discovery.browse import Browser, browse
from agent_gate.discovery.cards import ChoiceCard

ROOT = Path(__file__).parents[2]
HOME_CATALOG = catalog(HOME)
CARD_FIELDS = {
    "id",
    "name",
    "description",
    "tags",
    "kind",
    "namespace",
    "has_schema",
    "cost_hint",
    "side_effects",
    "score",
}


def test_a_card_never_carries_a_schema():
    assert set(ChoiceCard.__struct_fields__) == CARD_FIELDS
    browser = Browser(HOME_CATALOG.tools, HOME_CATALOG.titles())
    for card in browser.deck.cards.values():
        told = msgspec.to_builtins(card)
        assert isinstance(told["has_schema"], bool)
        assert not any(isinstance(value, dict) for value in told.values())
        for argument in browser.deck.sources[card.id].input_schema.get("properties", {}):
            assert f'"{argument}"' not in msgspec.json.encode(card).decode()


def test_every_tool_id_survives_parsing_and_formatting():
    assert HOME_CATALOG.tools
    for tool in HOME_CATALOG.tools:
        assert format_tool_id(parse_tool_id(tool.id)) == tool.id


def test_tool_ids_are_formatted_in_one_place():
    """Nobody else writes an f-string with the separators of an id between its parts."""
    made = re.compile(
        r'f"[^"\n]*\{[^}"]*\}[^"\n]*(?:#\{[^}"]*(?:hash|digest)[^}"]*\}|@\{[^}"]*version[^}"]*\})'
    )
    found = {
        str(file.relative_to(ROOT / "src/agent_gate"))
        for file in (ROOT / "src/agent_gate").rglob("*.py")
        for line in file.read_text().splitlines()
        if made.search(line)
    }
    assert found <= {"core/ids.py"}


def test_the_same_request_gives_the_same_bytes():
    first, again = (
        Browser(tools, HOME_CATALOG.titles()) for tools in (HOME_CATALOG.tools, HOME_CATALOG.tools[::-1])
    )
    for query in ("open a PR", "make a new folder"):
        assert msgspec.json.encode(browse(first, query=query)) == msgspec.json.encode(
            browse(again, query=query)
        )


def test_every_invariant_of_the_page_has_its_test():
    rows = re.findall(r"^\| [A-Z].*$", (ROOT / "docs/invariants.md").read_text(), re.MULTILINE)
    named = [re.findall(r"`(test_\w+)` \|$", row) for row in rows]
    assert rows
    assert all(test in globals() for [test] in named)
