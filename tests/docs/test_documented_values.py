"""The numbers and tables of the pages are those of the program."""

import re
from pathlib import Path

import pytest

from agent_gate.app import accounts
from agent_gate.approval import pictures
from agent_gate.cli.commands import demo
from agent_gate.hosts import cron, publishing
from agent_gate.peers import authority, envelope, joining, leases, messages, pairing, records
from agent_gate.sources.accounts import credentials
from agent_gate.sources.browser.tools import TOOLS as BROWSER_TOOLS
from agent_gate.sources.remote import localevents, peering
from agent_gate.sources.remote import source as remote
from agent_gate.sources.web import fetching, search
from agent_gate.sources.web.source import TOOLS as WEB_TOOLS
from agent_gate.surfaces.peers import surface
from agent_gate.vault import flows

DOCS = Path(__file__).parents[2] / "docs"
KIB = 1 << 10
DAY = 86_400
NUMBERS = [
    ("peers", "A step has 10 seconds,", pairing.STEP_SECONDS, 10),
    ("peers", "installing 60, the whole 120.", (pairing.INSTALL_SECONDS, pairing.TOTAL_SECONDS), (60, 120)),
    ("peers", "text frames of at most 64 KiB", messages.MOST_BYTES, 64 * KIB),
    ("peers", "five a minute", pairing.HANDSHAKES_A_MINUTE, 5),
    ("peers", "no older than two minutes", joining.FRESH_SECONDS, 120),
    ("peers", "waits ten minutes", peering.WINDOW_SECONDS, 600),
    ("peers", "of its 30 days", authority.LEAF_LIFETIME.total_seconds(), 30 * DAY),
    ("peers", "It lasts 900 seconds, at most 3600", (leases.USUAL_SECONDS, leases.MOST_SECONDS), (900, 3600)),
    ("peers", "a peer has 32", leases.MOST_PER_PEER, 32),
    ("peers", "of at most 64 KiB and", envelope.MOST_EVENT_BYTES, 64 * KIB),
    ("peers", "600 a minute", surface.EVENTS_A_MINUTE, 600),
    ("peers", "sent again, at most twice", remote.TRIES, 3),
    ("peers", "at the latest seven minutes", records.UNCONFIRMED_SECONDS + accounts.FEW_MINUTES, 420),
    ("peers", "`all`, at most 100", cron.MOST_CAUGHT_UP, 100),
    ("peers", "less than a minute late", cron.PUNCTUAL, 60),
    ("peers", "10,000 of them at most", publishing.MOST_KEPT, 10_000),
    ("peers", "wait=25", localevents.WAIT_SECONDS, 25),
    ("credentials", "for ten minutes", flows.FLOW_SECONDS, 600),
    ("credentials", "at most five seconds late", credentials.KEPT_SECONDS, 5),
    ("credentials", "tokens of 30 seconds", demo.TOKEN_SECONDS, 30),
    ("browser", "at `http://127.0.0.1:8126`", demo.SHOP_PORT, 8126),
    ("browser", "within three seconds", pictures.SECONDS, 3),
    ("web", "up to ten times", fetching.MOST_HOPS, 10),
    ("web", "at most 20", search.MOST_RESULTS, 20),
]


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text()


@pytest.mark.parametrize(("name", "words", "found", "documented"), NUMBERS, ids=lambda value: str(value)[:40])
def test_a_number_on_a_page_is_the_programs(name, words, found, documented):
    assert words in page(name)
    assert found == documented


def test_a_revocation_is_looked_for_within_the_five_seconds_that_the_page_names():
    assert "follow within five seconds" in page("peers")
    assert accounts.FEW_SECONDS < 5


def rows(name: str) -> dict[str, str]:
    """The second cell of each row that begins with tools."""
    found = {}
    for line in page(name).splitlines():
        if re.match(r"\| `(browser|weather)_", line):
            tools, arguments = line.split("|")[1:3]
            found |= dict.fromkeys(re.findall(r"`(\w+)`", tools), arguments)
    return found


def arguments(cell: str) -> set[str]:
    """The arguments that a cell names, without what stands in brackets or after a colon."""
    return set(re.findall(r"`(\w+)`", re.sub(r"\(.*?\)|: each.*", "", cell)))


def test_every_tool_of_the_browser_stands_on_its_page_with_all_its_arguments():
    shown = {name: arguments(cell) for name, cell in rows("browser").items()}
    assert shown == {
        tool.definition.name: set(tool.definition.input_schema.get("properties", {}))
        for tool in BROWSER_TOOLS.values()
    }


def test_every_tool_of_the_web_stands_on_its_page_with_all_its_arguments():
    shown = {name: arguments(cell) for name, cell in rows("web").items()}
    assert shown == {tool.name: set(tool.input_schema["properties"]) for tool in WEB_TOOLS}


def test_every_fact_that_asks_stands_on_the_page_with_the_tools_it_is_of():
    table = re.findall(r"^\| `facts\.(\w+)` \| ([\w, ]+) \|", page("browser"), re.MULTILINE)
    asking = {fact: set(tools.split(", ")) for fact, tools in table}
    declared: dict[str, set[str]] = {}
    for tool in BROWSER_TOOLS.values():
        for fact in tool.definition.consequences:
            name = tool.definition.name.removeprefix("browser_")
            declared.setdefault(fact.removeprefix("facts."), set()).add(name)
    assert asking == declared
