"""`explain` of a tool whose calls are about what only its source knows, such as a click in a page."""

import pytest

from agent_gate.cli.commands.explain import explanation, offline

CONFIG = """\
agents: {pi: {token: "0123456789abcdef"}}
permissions: permissions.yaml
browser: {}
"""
RULES = """\
rules:
  - {pattern: "browser_click(https://shop.example, Find)", action: allow, extra: [facts.submits]}
  - {pattern: "browser_click(https://bank.example, *)", action: deny}
defaults: [{pattern: "*", action: ask}]
"""


@pytest.fixture
def explain(tmp_path):
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "permissions.yaml").write_text(RULES)
    return lambda *pairs: offline(tmp_path / "config.yaml", None, "browser_click", ("ref=e12", *pairs), None)


def test_what_is_not_known_without_a_page_is_named_and_fits_no_rule_about_its_value(explain):
    found = explain()
    assert (found["signature"], found["effect"]) == ("browser_click(<facts.origin>, <facts.element>)", "ask")
    assert "to try something, add facts.origin=… facts.element=…" in explanation(found)


@pytest.mark.parametrize(
    ("origin", "element", "effect"),
    [
        ("https://shop.example", "Find", "allow"),
        ("https://shop.example", "Order", "ask"),
        ("https://bank.example", "Find", "deny"),
    ],
)
def test_what_is_known_of_a_page_can_be_said(explain, origin, element, effect):
    found = explain(f"facts.origin={origin}", f"facts.element={element}")
    assert (found["signature"], found["effect"]) == (f"browser_click({origin}, {element})", effect)
    assert found["unsaid"] == []


def test_a_consequence_that_is_said_counts_as_in_a_call(explain):
    seen = ("facts.origin=https://shop.example", "facts.element=Find", "facts.downloads=a file")
    assert explain(*seen)["effect"] == "ask"
