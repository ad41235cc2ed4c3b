"""What looks like a secret is masked, wherever it stands, and masking breaks nothing around it."""

import json
import logging
import re
import subprocess
import sys

import pytest
from tests.waiting import PATIENCE

from agent_gate.observe.log import Formatter
from agent_gate.observe.redact import Redactor, mask_arguments, secret_values

SECRET = "hunter2-hunter2"


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {SECRET}",
        f"authorization={SECRET}",
        f'{{"Authorization": "Basic {SECRET}"}}',
        f"password: {SECRET}",
        f'{{"api_key": "{SECRET}", "n": 1}}',
        json.dumps(f'{{"password": "{SECRET}", "n": 1}}'),
        json.dumps(f'{{"authorization": "Bearer {SECRET}"}}'),
        f"token={SECRET}&n=1",
        f"sent with bearer {SECRET}",
    ],
)
def test_what_looks_like_a_secret_is_masked(text):
    shown = Redactor().text(text)
    before, after = text.split(SECRET)
    scheme = re.sub("(Bearer|Basic) $", "", before)
    assert shown in (f"{before}•••{after}", f"{scheme}•••{after}")
    assert Redactor().known(text) == text


@pytest.mark.parametrize(
    "written",
    [
        'wJalr/ü+K7="MDENG',
        "wJalr%2F%C3%BC%2BK7%3D%22MDENG",
        "wJalr%2f%c3%bc%2bK7%3d%22MDENG",
        'wJalr/ü+K7=\\"MDENG',
        'wJalr\\/ü+K7=\\"MDENG',
        'wJalr\\/\\u00fc+K7=\\"MDENG',
        'wJalr/\\u00fc+K7=\\"MDENG',
    ],
)
def test_a_known_secret_is_masked_however_an_answer_writes_it(written):
    redactor = Redactor(['wJalr/ü+K7="MDENG', "short"])
    assert redactor.known(f"<{written}> short") == "<•••> short"
    assert redactor.text(f"<{written}> short") == "<•••> short"
    assert redactor.inside({written: [written, 5, None]}) == {"•••": ["•••", 5, None]}


def test_a_secret_that_holds_another_is_masked_whole():
    assert Redactor(["abcdef", "abcdef-and-more"]).known("abcdef-and-more abcdef") == "••• •••"


def test_a_number_or_a_value_at_any_depth_that_is_a_secret_is_masked():
    values = secret_values(
        {"pin": 12345678, "deep": {"a": [{"b": "hidden-value"}]}, "open": "in-the-open"},
        frozenset({"pin", "deep", "absent"}),
    )
    redactor = Redactor(values)
    shown = redactor.inside({"n": 12345678, "m": 1234567, "t": "hidden-value", "o": "in-the-open", "b": True})
    assert shown == {"n": "•••", "m": 1234567, "t": "•••", "o": "in-the-open", "b": True}


def test_only_the_arguments_that_are_declared_secret_are_masked():
    arguments = {"to": "a", "code": "b"}
    assert mask_arguments(arguments, frozenset({"code", "other"})) == {"to": "a", "code": "•••"}
    assert mask_arguments(arguments, frozenset({"other"})) is arguments
    assert mask_arguments(arguments, frozenset()) is arguments


@pytest.mark.parametrize(
    "value",
    [
        'token=abcdef"',
        'password: abcdef\\"x',
        "secret=abc\\",
        'box__push(token=abcd", "by": "x")',
        "token=a\nbcdef",
        "token=\nabcdef",
    ],
)
def test_a_line_of_the_log_stays_json_whatever_is_masked_in_it(value):
    record = logging.makeLogRecord({"msg": "Waiting", "signature": value, "by": "nobody"})
    event = json.loads(Formatter(Redactor(), as_json=True).format(record))
    assert (event["event"], event["by"]) == ("Waiting", "nobody")


def test_long_stretches_of_nothing_are_passed_in_one_go():
    program = (
        "from agent_gate.observe.redact import Redactor\n"
        "for start in 'authorization:', 'authorization', 'token:', 'bearer':\n"
        "    text = start + ' ' * 200_000 + '\"'\n"
        "    assert Redactor().text(text) == text"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=PATIENCE)
