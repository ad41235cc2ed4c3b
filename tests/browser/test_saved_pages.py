"""Snapshots of pages like those of the real web: small, and nothing that can be acted on is lost in them."""

import asyncio
import re
from dataclasses import dataclass

import pytest
import uvloop
from playwright.async_api import Error
from tests.browser.pages import PAGES, TEXTS, served
from tests.browser.pages.reach import REFERENCE, reader
from tests.ui import chromium

from agent_gate.errors import GatewayError

MOST, LARGE, MOST_CLICKS, MANY = 5_000, 50_000, 3, 300
HIT = "mark => window.hits.includes(mark)"
HEADING = re.compile(r"^ *#{1,6} (.*?)(?: \[\w+\])?:?$", re.MULTILINE)
LANDMARK = re.compile(r"^ *(navigation|main|complementary|contentinfo|banner)\b", re.MULTILINE)
CLICKED = ("closed", "listener", "div", "button", "a", "summary")
WRITTEN = frozenset({"text", "search", "email", "number", "textarea", "select-one"})
LARGE_PAGES = frozenset(
    [
        "news",
        "encyclopedia",
        "forum",
        "repository",
        "shop",
        "table",
        "admin-list",
        "statistics",
    ]
)
HARDEST = {
    "dashboard": {("closed", "")},
    "portal": {("listener", "inner"), ("button", "inner"), ("listener", "elsewhere")},
}
"""Kinds that are hard to see, and the frame they are in."""


@dataclass(frozen=True)
class Visit:
    """A page as an agent saw it, and as it is. `raw` is Playwright's own tree. `marks` are the page's own numbers, by reference; `clicks` say for some
    of them what kept a click from reaching it."""

    name: str
    text: str
    full: str
    raw: str
    seen: dict[str, str]
    marks: dict[str, str]
    truth: list[dict]
    outline: list[str]
    landmarks: list[str]
    clicks: dict[str, str]

    @property
    def everything(self):
        return "\n".join(self.seen.values())


class House:
    """One browser, in which pages are visited."""

    def __init__(self, reader, url):
        self.reader, self.url = reader, url

    async def visit(self, name):
        agent = self.reader
        text = await agent.open(f"{self.url}/{name}")
        everything = await agent.open_groups()
        marks, truth = await agent.marks(everything), await agent.truth()
        return Visit(
            name=name,
            text=text,
            seen=dict(agent.seen),
            marks=marks,
            truth=truth,
            outline=await agent.page.evaluate("outline()"),
            landmarks=await agent.page.evaluate("landmarks()"),
            full=await agent.use("snapshot", full=True),
            raw=await agent.page.aria_snapshot(mode="ai"),
            clicks={mark: await self._click(marks, mark) for mark in samples(truth)},
        )

    async def _click(self, marks, mark):
        """Why clicking what has that number did not reach it; empty where it did."""
        agent = self.reader
        ref = next(ref for ref, found in marks.items() if found == mark)
        await agent.page.evaluate("window.hits.length = 0")
        try:
            said = await agent.use("click", ref=ref)
            await agent.page.wait_for_function(HIT, arg=mark, timeout=3_000)
        except (GatewayError, Error) as error:
            return f"{mark}: {error}"
        return "" if said.startswith("Clicked") else said


@pytest.fixture(scope="module")
def visiting(tmp_path_factory):
    """What visits a page by its name, in one browser for all of them."""
    chromium.need()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop, served(TEXTS) as url:
        made = reader(tmp_path_factory.mktemp("pages"))
        house = House(loop.run(made.__aenter__()), url)
        yield lambda name: loop.run(house.visit(name))
        loop.run(made.__aexit__(None, None, None))


@pytest.fixture(scope="module", params=PAGES)
def visit(visiting, request):
    """Every page visited once: the tests of one come one after the other."""
    return visiting(request.param)


def squeezed(text):
    return re.sub(r"\W", "", text)


def in_order(some, all_of):
    """Whether each of some is found in the others, after the one before."""
    rest = iter(all_of)
    return all(any(one in other for other in rest) for one in some)


def samples(truth):
    """The last of each kind, in groups and in frames too, first of those that are hardest to see; few on large pages."""
    chosen = {}
    for one in truth:
        if one["kind"] in CLICKED and one["tells"] and not one["disabled"] and "type" not in one:
            chosen[CLICKED.index(one["kind"]), one["mark"].rpartition(":")[0]] = one["mark"]
    return [chosen[key] for key in sorted(chosen)][: MOST_CLICKS if len(truth) < MANY else 1]


def test_a_page_takes_5000_characters_or_a_quarter_of_playwrights_tree_and_a_large_one_a_tenth(visit):
    assert len(visit.text) <= MOST
    assert all(len(shown) <= MOST for shown in visit.seen.values())
    assert len(visit.text) <= len(visit.raw) / 4
    if visit.name in LARGE_PAGES:
        assert len(visit.full) > LARGE
        assert REFERENCE.search(visit.text)
    if len(visit.full) > LARGE:
        assert len(visit.text) <= len(visit.full) / 10


def test_everything_that_can_be_acted_on_is_reached_from_what_the_agent_sees(visit):
    missed = [one for one in visit.truth if one["mark"] not in visit.marks.values()]
    assert missed == []
    assert len(visit.truth) > 1
    guessed = {ref for ref in REFERENCE.findall(visit.everything) if ref.startswith("x")}
    assert guessed <= visit.marks.keys(), "something that takes no clicks is said to"


def test_headings_and_landmarks_keep_their_order(visit):
    shown = [squeezed(found.removeprefix("link ")) for found in HEADING.findall(visit.text)]
    assert squeezed(visit.outline[0]) in shown
    assert in_order(shown, map(squeezed, visit.outline)), shown
    assert in_order(LANDMARK.findall(visit.text), visit.landmarks)
    assert "main" in LANDMARK.findall(visit.text)


def test_fields_keep_their_label_and_their_state(visit):
    refs = {mark: ref for ref, mark in visit.marks.items()}
    for one in visit.truth:
        if "type" not in one:
            continue
        said = re.search(rf'(?:"([^"\n]*)" )?\[{refs[one["mark"]]}\]([^\[\n]*)', visit.everything)
        assert squeezed(one["label"]) == squeezed(said[1] or ""), (one, said[0])
        if one["checked"]:
            assert said[2].startswith(" checked"), (one, said[0])
        if one["type"] in WRITTEN and one["value"]:
            assert f'= "{" ".join(one["value"].split())[:90]}' in said[2], (one, said[0])
        if one["type"] == "password":
            assert " secret" in said[2]
            assert one["value"] not in visit.everything + visit.full


def test_what_the_agent_sees_can_be_clicked(visit):
    assert visit.clicks
    assert [why for why in visit.clicks.values() if why] == []


@pytest.mark.parametrize("visit", HARDEST, indirect=True, scope="module")
def test_pages_with_closed_shadow_roots_frames_and_listeners_are_among_them(visit):
    kinds = {(one["kind"], one["mark"].rpartition(":")[0]) for one in visit.truth}
    assert kinds >= HARDEST[visit.name]


def test_at_least_eight_of_the_pages_are_large():
    assert len(PAGES) >= 25
    assert len(LARGE_PAGES) >= 8
