"""What looks like a secret is masked, wherever it stands, and masking breaks nothing around it."""

import json
import logging
import subprocess
import sys

import pytest

from agent_gate.observe.log import Formatter
from agent_gate.observe.redact import Redactor

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
    assert SECRET not in shown
    assert "•••" in shown


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
    subprocess.run([sys.executable, "-c", program], check=True, timeout=20)
