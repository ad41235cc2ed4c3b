"""A request that no tool serves is told so, and gets no cards; one that a tool serves gets them all the same."""

from types import SimpleNamespace

import pytest
from bench.everyday import NAMED, catalog, nothing

from agent_gate.discovery.browse import Browser, browse
from agent_gate.discovery.rank import Index


@pytest.fixture(scope="module")
def browser() -> Browser:
    everyday = catalog()
    return Browser(everyday.tools, everyday.titles())


def test_a_request_for_nothing_there_is_gets_words_and_no_cards(browser):
    page = browse(browser, query="launch a rocket to the moon")
    assert page.cards == ()
    assert page.text.startswith("No good match")


@pytest.mark.parametrize("name", ["nothing.jsonl", "nothing_unseen.jsonl"])
def test_most_requests_that_nothing_serves_are_told_so(browser, name):
    queries = nothing(name)
    said = [query for query in queries if not browse(browser, query=query).cards]
    assert len(said) >= 0.6 * len(queries)


@pytest.mark.parametrize(("query", "right"), NAMED.items())
def test_what_people_ask_in_their_own_words_is_among_the_first_three(browser, query, right):
    found = [card.id for card in browse(browser, query=query, top_k=3).cards]
    assert any(one.startswith(right) for one in found), found


def test_one_part_that_is_served_is_enough(browser):
    assert browse(browser, query="launch a rocket to the moon and then list my calendar events").cards


class Near:
    """An encoder that places one tool as near to every request as it is told."""

    def __init__(self, cosine: float) -> None:
        self.cosine = cosine

    def place(self, texts):
        placed = [self.cosine if "chart" in text else 0.0 for text in texts]
        return SimpleNamespace(similarities=lambda _query: placed)


@pytest.mark.parametrize(("cosine", "shown"), [(0.2, False), (0.5, True)])
def test_the_encoder_speaks_up_for_what_the_words_do_not_find(cosine, shown):
    everyday = catalog()
    index = Index(everyday.tools, everyday.titles(), semantic=Near(cosine))
    assert bool(index.search("launch a rocket to the moon", 3)) is shown


@pytest.mark.parametrize("size", [1, 2, 5])
def test_in_a_small_catalog_a_tool_is_found_by_its_own_words(size):
    tools = catalog().tools[:size]
    index = Index(tools, {})
    for tool in tools:
        assert index.search(tool.name.replace("_", " "), 1), tool.name
