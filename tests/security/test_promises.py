"""The security page promises nothing that no test holds: each of its sentences is an entry of `promises.toml`."""

import re
import tomllib
from pathlib import Path

import pytest
from tests.security.test_threats import PROOFS, ROOT, functions_in

PAGE = ROOT / "docs" / "security.md"
ENTRIES = tomllib.loads(Path(__file__).with_name("promises.toml").read_text("utf-8"))["statement"]
CODE = re.compile(r"```.*?```", re.DOTALL)
RULER = re.compile(r"[|\-: ]+")
MARKER = re.compile(r"^(?:- |\d+\. )")
SENTENCE_END = re.compile(r"(?<=\.) (?=[A-Z`\[*])")


def statements(page):
    """Every sentence, item and row of a page; headings and code promise nothing."""
    found = []
    for line in (line.strip() for line in CODE.sub("", page).splitlines()):
        if not line or line.startswith("#") or RULER.fullmatch(line):
            continue
        found += [line] if line.startswith("|") else SENTENCE_END.split(MARKER.sub("", line))
    return found


def of_threats(statement):
    """A row of the table whose tests are in `test_threats.py`."""
    return statement.startswith("|") and statement.split("|")[1].strip() in PROOFS


def test_every_sentence_of_the_security_page_has_its_entry():
    page = statements(PAGE.read_text("utf-8"))
    entries = [entry["says"] for entry in ENTRIES]
    unproved = [statement for statement in page if statement not in entries and not of_threats(statement)]
    assert unproved == [], "write a test, name it in promises.toml, or take the sentence out"
    assert [says for says in entries if says not in page] == [], "the page does not say this any more"
    assert len(entries) == len(set(entries))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: re.sub(r"\W+", "-", entry["says"])[:60])
def test_every_test_behind_a_promise_exists(entry):
    assert bool(entry.get("tests")) != bool(entry.get("promises_nothing"))
    for proof in entry.get("tests", ()):
        path, _, name = proof.partition("::")
        assert name in functions_in(path), f"{proof} does not exist"


def test_a_sentence_that_is_added_is_missed():
    page = PAGE.read_text("utf-8")
    grown = page.replace("Wrong tokens get slow.", "Wrong tokens get slow. The moon is made of cheese.")
    assert set(statements(grown)) - set(statements(page)) == {"The moon is made of cheese."}
