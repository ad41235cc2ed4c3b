"""Tests wait in one way: what it gives, what it says when it fails, and that nobody polls by hand or has less patience."""

import re
from itertools import chain, repeat
from pathlib import Path

import pytest
from tests.waiting import PATIENCE, until, wait_until

TESTS = Path(__file__).parents[1]
POLLING = re.compile(r"\n +while (?!True:)[^\n]*:\n +(?:await asyncio|time)\.sleep\((?!0\))")
"""A loop that does nothing but sleep; one that gives way to the event loop alone, turn by turn, is meant."""
OWN = {
    "chaos/checker.py": "it tells what has not ended, instead of failing",
    "cluster/tally_server.py": "a program, which a gateway starts by its path",
    "waiting.py": "the one way",
}
HASTY = re.compile(
    r"(?:asyncio\.timeout|\.(?:wait|join|acquire))\((?:timeout=)?([1-9][0-9.]*)\)|\brecv\((?:timeout=)?([1-9][0-9])\)"
    r"|\b(?:run|wait|communicate|urlopen|HTTPS?Connection|create_connection|AsyncClient|wait_procs|Barrier|acquire)"
    r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*?\btimeout=([1-9][0-9.]*)(?![0-9_])"
    r"|\b(?:wait_for|create_connection)\([^\n]*, ([1-9][0-9.]*)\)(?!,)"
)
"""A bound of its own, in seconds, for what is to happen; less than one is meant for what is not to happen."""
MEANT = {
    "app/test_docker.py": "each look at a container is one of several",
    "chaos/world.py": "what does not come to its failpoint, or hangs, is killed, which is the test",
    "cluster/test_notices.py": "the statement is held, and the test looks what others do meanwhile",
    "cluster/test_partitions.py": "what is cut off does not answer",
    "hosts/test_host_server.py": "a tool that hangs until it is let go",
    "proxies/test_behind_nginx.py": "each look at a port is one of several",
    "sign_in/connector.py": "a program, which is started by its path",
    "sources/plugin/plugins_for_tests.py": "plugins, which a gateway starts by their path",
    "sources/plugin/broker.py": "each look at a port is one of several",
    "typescript/gateway_process.py": "each look at a gateway is one of several",
}


async def test_the_first_true_value_is_given_back():
    looks = chain(repeat(0, 2), repeat("here"))

    async def look():
        return next(looks)

    assert wait_until(lambda: next(looks)) == "here"
    looks = chain([None], repeat("there"))
    assert await until(look) == "there"
    assert await until(lambda: "at once") == "at once"


async def test_a_wait_that_fails_says_for_what_how_long_and_what_was_there_instead(monkeypatch):
    monkeypatch.setattr("tests.waiting.PATIENCE", 0.01)
    told = r"^the question did not happen within 0.01 s: \[\]$"
    with pytest.raises(AssertionError, match=told):
        wait_until(list, "the question")
    with pytest.raises(AssertionError, match=told):
        await until(list, "the question")


async def test_an_error_of_the_condition_is_the_tests_own():
    with pytest.raises(ZeroDivisionError):
        wait_until(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        await until(lambda: 1 // 0)


def test_nobody_polls_by_hand():
    found = {str(file.relative_to(TESTS)) for file in TESTS.rglob("*.py") if POLLING.search(file.read_text())}
    assert found == set(OWN)


def test_nobody_waits_less_than_others_for_what_is_to_happen():
    found = {
        str(file.relative_to(TESTS))
        for file in TESTS.rglob("*.py")
        for match in HASTY.finditer(file.read_text())
        if float(match[match.lastindex]) < PATIENCE
    }
    assert found == set(MEANT)
