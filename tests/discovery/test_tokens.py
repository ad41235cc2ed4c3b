import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.waiting import PATIENCE

from agent_gate.discovery import tokens
from agent_gate.discovery.tokens import LONGEST, _merge, _pieces, _ranks, count, fits
from agent_gate.errors import Internal

tiktoken = pytest.importorskip("tiktoken")

PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)


@pytest.fixture(scope="module")
def reference():
    return tiktoken.Encoding("reference", pat_str=PATTERN, mergeable_ranks=_ranks(), special_tokens={})


def encode(text: str) -> list[int]:
    ranks = _ranks()
    return [ranks[part] for piece in _pieces(text) for part in ([piece] if piece in ranks else _merge(piece))]


def test_known_texts_have_their_known_tokens():
    assert encode("hello world") == [15339, 1917]
    assert count("") == 0


@settings(max_examples=300, deadline=None)
@given(text=st.text(max_size=60))
def test_any_text_in_any_script_is_cut_as_the_reference_cuts_it(reference, text):
    assert encode(text) == reference.encode_ordinary(text)


@settings(max_examples=300, deadline=None)
@given(text=st.text(alphabet="aZ é'sLL19 \t\r\n.!…第🙂{}\"_-", max_size=80))
def test_awkward_mixtures_are_cut_as_the_reference_cuts_them(reference, text):
    assert encode(text) == reference.encode_ordinary(text)


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=200), budget=st.integers(0, 40))
def test_a_limited_count_agrees_with_the_full_one(text, budget):
    assert (count(text, budget) <= budget) == (count(text) <= budget) == fits(text, budget)


def test_no_token_is_longer_than_the_bound_that_early_exits_rely_on():
    assert max(map(len, _ranks())) == LONGEST


def test_a_megabyte_is_refused_without_being_read():
    start = time.process_time()
    assert not fits("x" * 1_000_000, 80)
    assert not fits("第" * 1_000_000, 80)
    assert time.process_time() - start < 0.5


def test_lone_surrogates_are_counted_and_not_fatal():
    assert count("\ud800 broken") > 0


def test_damaged_ranks_are_refused(monkeypatch):
    monkeypatch.setattr(tokens, "RANKS_SHA256", "0" * 64)
    with pytest.raises(Internal, match="install agent-gate again"):
        tokens._ranks.__wrapped__()


def test_the_ranks_are_read_at_the_first_count():
    code = (
        "from agent_gate.discovery import browse, cards, tokens\n"
        "assert tokens._ranks.cache_info().currsize == 0\n"
        "assert tokens.count('hello') == 1\n"
        "assert tokens._ranks.cache_info().currsize == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)
