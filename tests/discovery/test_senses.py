import hashlib
import re
from importlib.resources import files

import pytest
from tests.discovery.tools import catalog

from agent_gate.core.tool import Definition
from agent_gate.discovery.rank import Index
from agent_gate.discovery.senses import MOST, WIDTH, Sense, lanes, rows
from agent_gate.discovery.text import terms
from agent_gate.discovery.thesaurus import thesaurus


def sense(text: str) -> Sense:
    return Sense(lanes(terms(text)))


def test_texts_of_like_meaning_point_the_same_way():
    photo = sense("take a photograph of the screen")
    assert photo.likeness(sense("capture an image of the display")) > 0.4
    assert photo.likeness(sense("transfer money between bank accounts")) < 0.2
    assert photo.likeness(photo) > 0.999


def test_a_text_without_known_words_is_like_nothing():
    assert sense("qxzw 東京").likeness(sense("weather forecast")) == 0.0
    assert sense("").length == 0.0


def test_adding_up_words_is_exact_up_to_the_limit():
    numbers = list(sense("weather").numbers)
    many = Sense(lanes(["weather"] * MOST))
    assert list(many.numbers) == [MOST * number for number in numbers]
    assert list(sense("weather forecast").numbers) == [
        one + other for one, other in zip(numbers, sense("forecast").numbers, strict=True)
    ]


def test_there_is_a_row_for_every_word_of_the_thesaurus():
    assert len(rows()._table) == WIDTH * len(thesaurus().places)


def test_the_tables_of_words_are_those_that_the_notice_names():
    data = files("agent_gate.discovery") / "data"
    notice = (data / "NOTICE").read_text("utf-8")
    for name in ("related.bin", "vectors.bin"):
        (named,) = re.findall(
            rf"^{re.escape(name)}\n(?:    .*\n)*?    sha256 ([0-9a-f]{{64}})", notice, re.MULTILINE
        )
        assert hashlib.sha256((data / name).read_bytes()).hexdigest() == named


def test_meaning_orders_tools_that_share_as_many_words():
    tools = catalog(
        {
            "a": [
                Definition(name="order_lunch", description="Order a meal from a restaurant nearby."),
                Definition(name="order_parts", description="Order a component from a warehouse nearby."),
            ]
        }
    )
    found = Index(tools.tools, {}).search("order something for my hungry stomach", 2)
    assert [hit.tool.name for hit in found] == ["order_lunch", "order_parts"]


@pytest.mark.parametrize("word", ["spreadsheet", "invoice", "refund", "playlist", "screenshot", "config"])
def test_words_that_the_encoder_splits_have_neighbours_and_a_sense(word):
    assert thesaurus().related(terms(word)[0])
    assert sense(word).length > 0


def test_such_words_point_where_others_of_their_meaning_do():
    assert sense("spreadsheet").likeness(sense("excel worksheet")) > 0.4
    assert sense("spreadsheet").likeness(sense("rain tomorrow")) < 0.2
