"""What was met once is known again, and what came or went since is not missed."""

import pytest
import uvloop
from tests.browser.browser_house import page
from tests.browser.pages.reach import reader
from tests.gateway import Api
from tests.ui import chromium

from agent_gate.errors import GatewayError
from agent_gate.sources.browser import looking

GROWS = """<!doctype html><title>Grows</title><h1>Grows</h1><div id=list></div><div id=late style="min-height:40px"></div>
<button id=more>More</button><button id=shadow>Shadow</button><button id=fewer>Fewer</button><p id=said></p><script>
let n = 0;
function add() { const one = document.createElement('span'); one.textContent = 'Row ' + (++n); one.style.display = 'block';
  one.addEventListener('click', () => { said.textContent = 'pressed ' + one.textContent }); list.append(one) }
for (let i = 0; i < 40; i++) add();
more.onclick = add;
fewer.onclick = () => list.firstChild.remove();
shadow.onclick = () => { const root = late.attachShadow({mode: 'closed'});
  root.innerHTML = '<button style="height:80px">Hidden button</button>';
  root.firstChild.onclick = () => { said.textContent = 'pressed hidden' } };
</script>"""


class Reading:
    """A session whose steps are taken one after the other."""

    def __init__(self, loop, agent, url):
        self.loop, self.agent, self.url = loop, agent, url

    def open(self, path):
        return self.loop.run_until_complete(self.agent.open(self.url + path))

    def use(self, tool, **arguments):
        return self.loop.run_until_complete(self.agent.use(tool, **arguments))

    def ref(self, name):
        """The reference of what has that name, or shows it as its text, in a snapshot of now."""
        self.use("snapshot")
        known = self.agent.browsing.page().sight.actionable
        [found] = [
            node.ref for node in known if name in (node.name, node.text, *(one.text for one in node.children))
        ]
        return found


@pytest.fixture(scope="module")
def reading(tmp_path_factory):
    chromium.need()
    loop = uvloop.new_event_loop()
    made = reader(tmp_path_factory.mktemp("looks"))
    with Api() as site:
        site.replies["/grows"] = page(GROWS)
        agent = loop.run_until_complete(made.__aenter__())
        try:
            yield Reading(loop, agent, site.url)
        finally:
            loop.run_until_complete(made.__aexit__(None, None, None))
            loop.close()


@pytest.fixture
def asked(reading, monkeypatch):
    """The numbers that Chromium was asked about."""
    numbers, usual = [], looking.resolve

    async def resolve(world, number):
        numbers.append(number)
        return await usual(world, number)

    monkeypatch.setattr(looking, "resolve", resolve)
    return numbers


def test_a_second_look_asks_for_no_element_that_was_met_already(reading, asked):
    reading.open("/grows")
    assert len(asked) >= 40
    asked.clear()
    reading.use("snapshot")
    assert asked == []
    reading.use("click", ref=reading.ref("More"))
    assert len(asked) == 1


def test_what_came_since_is_seen_and_can_be_clicked(reading):
    reading.open("/grows")
    assert "Row 41" in reading.use("click", ref=reading.ref("More"))
    assert "pressed Row 41" in reading.use("click", ref=reading.ref("Row 41"))
    assert "Hidden button" in reading.use("click", ref=reading.ref("Shadow"))
    assert "pressed hidden" in reading.use("click", ref=reading.ref("Hidden button"))


def test_what_went_since_is_stale(reading):
    reading.open("/grows")
    first = reading.ref("Row 1")
    reading.use("click", ref=reading.ref("Fewer"))
    with pytest.raises(GatewayError, match="is stale: it was"):
        reading.use("click", ref=first)
    assert "pressed Row 2" in reading.use("click", ref=reading.ref("Row 2"))


def test_a_page_that_did_not_change_is_not_taken_apart_again(reading):
    reading.open("/grows")
    tab = reading.agent.browsing.page()
    before = tab.sight
    reading.use("snapshot")
    assert tab.sight is before
    reading.use("click", ref=reading.ref("More"))
    assert tab.sight is not before
