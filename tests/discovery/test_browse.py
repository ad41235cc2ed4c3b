import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.discovery.tools import HOME, catalog

from agent_gate.core.catalog import Catalog
from agent_gate.core.tool import Definition
from agent_gate.discovery.browse import Browser, SeenBySession, SeenTools, browse
from agent_gate.discovery.cards import BREAKPOINT, CAP, MAX_ID, render
from agent_gate.discovery.tokens import count
from agent_gate.errors import InvalidArgs, PathInvalid, PathNotFound


@pytest.fixture(scope="module")
def home() -> Catalog:
    return catalog(HOME, {"github": "Repositories and issues on GitHub"})


@pytest.fixture(scope="module")
def browser(home: Catalog) -> Browser:
    return Browser(home.tools, home.titles())


def ids(page) -> list[str]:
    return [card.id for card in page.cards]


def short(page) -> list[str]:
    return [card.id.partition("#")[0] for card in page.cards]


@pytest.mark.parametrize("arguments", [{}, {"top_k": 3}])
def test_a_browse_for_nothing_is_refused(browser, arguments):
    with pytest.raises(InvalidArgs):
        browse(browser, **arguments)


def test_a_query_with_a_path_finds_only_what_lies_below_it(browser):
    found = short(browse(browser, query="read a file", path="/files"))
    assert found
    assert all(one.startswith("files:") for one in found)
    assert short(browse(browser, query="read a file", path="/files/read_file")) == ["files:read_file"]
    assert browse(browser, query="read a file", path="/") == browse(browser, query="read a file")


def test_the_root_lists_namespaces_whose_card_ids_are_paths(browser):
    page = browse(browser, path="/")
    assert ids(page) == ["/files", "/github", "/sheets", "/weather"]
    assert all(card.kind == "internal" and not card.has_schema for card in page.cards)
    assert "Repositories and issues on GitHub" in page.text
    assert [browse(browser, path=id_) for id_ in ids(page)]


def test_a_namespace_that_says_no_more_than_its_name_does_not_say_it_twice(browser):
    said = {card.id: card.description for card in browse(browser, path="/").cards}
    assert said["/github"].endswith(". Repositories and issues on GitHub")
    assert not said["/files"].endswith("files")


def test_a_leaf_answers_its_one_card(browser):
    assert short(browse(browser, path="/files/read_file")) == ["files:read_file"]


def test_bad_and_absent_paths_are_different_errors(browser):
    with pytest.raises(PathInvalid):
        browse(browser, path="/Files")
    with pytest.raises(PathNotFound):
        browse(browser, path="/absent")


def test_cards_come_by_falling_score_then_by_id(browser):
    page = browse(browser, query="create an issue", top_k=5)
    assert short(page)[0] == "github:create_issue"
    assert [(-card.score, card.id) for card in page.cards] == sorted(
        (-card.score, card.id) for card in page.cards
    )


def test_the_text_has_one_line_per_card_and_no_score(browser):
    page = browse(browser, query="create an issue", top_k=3)
    assert len(page.text.splitlines()) == len(page.cards)
    assert "score" not in page.text


def test_a_query_that_matches_nothing_says_where_to_look(browser):
    page = browse(browser, query="zzzzqqqq")
    assert page.cards == ()
    assert "path /" in page.text


@settings(max_examples=60, deadline=None)
@given(query=st.text(max_size=80), top_k=st.integers(1, 50))
def test_any_query_is_answered_within_the_budget(browser, query, top_k):
    page = browse(browser, query=query, top_k=top_k)
    assert len(page.cards) <= top_k
    assert count(page.text) <= CAP * len(page.cards) + 32
    assert browse(browser, query=query, top_k=top_k) == page


def test_the_order_of_the_tools_does_not_matter(home, browser):
    shuffled = list(home.tools)
    random.Random(7).shuffle(shuffled)
    other = Browser(shuffled, home.titles())
    for query in ("create", "weather in Oslo", "chart a csv"):
        assert browse(other, query=query) == browse(browser, query=query)


def test_first_sight_has_no_marker_and_is_ordered_by_id(browser):
    page = browse(browser, query="create", session=SeenTools())
    assert ids(page) == sorted(ids(page))
    assert BREAKPOINT not in ids(page)


def test_seen_cards_come_first_and_frozen_then_the_marker_then_new_ones(browser):
    session = SeenTools()
    first = browse(browser, query="weather forecast", top_k=1, session=session)
    second = browse(browser, query="create forecast", top_k=4, session=session)
    at = ids(second).index(BREAKPOINT)
    assert second.cards[:at] == first.cards
    assert ids(second)[at + 1 :] == sorted(ids(second)[at + 1 :])
    assert len(second.cards) == 5


def test_a_page_of_only_seen_cards_has_no_marker_and_the_same_bytes(browser):
    session = SeenTools()
    first = browse(browser, query="create issue", top_k=3, session=session)
    again = browse(browser, query="create issue", top_k=3, session=session)
    assert again == first


def test_a_hydrated_tool_counts_as_seen_and_takes_its_score_when_first_shown(browser):
    session = SeenTools()
    weather = browse(browser, query="weather", top_k=1).cards[0]
    session.record(weather.id)
    page = browse(browser, query="weather or create file", top_k=4, session=session)
    assert page.cards[0].id == weather.id
    assert page.cards[1].id == BREAKPOINT
    assert isinstance(page.cards[0].score, float)


def test_a_changed_definition_is_shown_although_its_card_was_frozen(home):
    session = SeenTools()
    before = Browser(home.tools, home.titles())
    browse(before, query="weather", session=session)
    renewed = {**HOME, "weather": [Definition(name="get_forecast", description="Weather, now with wind.",
                                              input_schema=HOME["weather"][0].input_schema)]}  # fmt: skip
    changed = catalog(renewed)
    page = browse(Browser(changed.tools, changed.titles(), before), query="weather", session=session)
    assert "now with wind" in page.text


def test_paths_are_ordered_stably_too(browser):
    session = SeenTools()
    browse(browser, path="/github/search_code", session=session)
    page = browse(browser, path="/github", session=session)
    assert short(page)[:2] == ["github:search_code", BREAKPOINT]


def test_sessions_are_kept_apart_by_caller_and_key_and_bounded():
    sessions = SeenBySession(most=2)
    sessions.get("pi", "a").record("x:y#00000000")
    assert sessions.get("pi", "a").seen
    assert not sessions.get("coder", "a").seen
    assert not sessions.get("pi", "b").seen
    assert not sessions.get("pi", "a").seen


def cards_below(browser, path):
    for card in browse(browser, path=path).cards:
        yield card
        if card.kind == "internal":
            yield from cards_below(browser, card.id)


def gibberish(rng, size):
    return "".join(rng.choices("bcdfghjkmpqvwxz0123456789", k=size))


def unlike(rng, many):
    return [gibberish(rng, 26) for _ in range(many)]


def alike_in_pairs(rng, many):
    """Names that share a word of gibberish, and then another."""
    return [
        f"{word}_{other}_{n}"
        for word in unlike(rng, many // 40)
        for other in unlike(rng, 2)
        for n in range(20)
    ]


@pytest.mark.parametrize("made", [unlike, alike_in_pairs])
@pytest.mark.parametrize("server", ["lab", "q" + "x7z9kq3v" * 4])
def test_every_path_answers_within_the_budget_also_where_names_are_gibberish(made, server):
    shown = catalog({server: [Definition(name=name) for name in made(random.Random(7), 2000)]})
    browser = Browser(shown.tools, shown.titles())
    cards = list(cards_below(browser, "/"))
    assert browser.deck.cards.keys() <= {card.id for card in cards}
    assert all(count(render(card)) <= CAP and len(card.id) <= MAX_ID for card in cards)


def test_twenty_thousand_tools_can_be_browsed():
    things = [
        f"{a}_{b}" for a in ("blue", "red", "old", "new") for b in ("lamp", "door", "pump", "fan", "lock")
    ]
    servers = {
        f"site{number}": [
            Definition(
                name=f"{action}_{thing}_{floor}",
                description=f"{action} the {thing} on floor {floor} of {number}",
            )
            for action in ("open", "close", "read", "reset", "test")
            for thing in things
            for floor in range(10)
        ]
        for number in range(20)
    }
    big = catalog(servers)
    browser = Browser(big.tools, big.titles())
    assert len(browser.deck.cards) == 20_000
    page = browse(browser, query="reset the blue pump on floor 7 of 13", top_k=5)
    assert len(page.cards) == 5
    assert short(page)[0] == "site13:reset_blue_pump_7"
    assert len(browse(browser, path="/").cards) == 20
