"""Pages like those of the real web: small enough to think with, and every element on them reached and clicked."""

import pytest
from tests.browser.browser_house import need_browser, page
from tests.browser.pages import PAGES
from tests.browser.test_trim import reached
from tests.gateway import Api

from agent_gate.core.call import Call, Caller
from agent_gate.sources.browser.aiming import locate, locator, middle
from agent_gate.sources.browser.browsings import Browsings
from agent_gate.sources.browser.settings import BrowserSettings
from agent_gate.sources.browser.trim import Groups, budget_for, open_items, simplify
from agent_gate.sources.browser.whole import measure

CLICKED = 10
SHARDS = 4


def shard(number):
    return list(PAGES.items())[number::SHARDS]


def test_there_are_enough_pages_of_enough_kinds():
    assert len(PAGES) >= 25
    assert len({len(html) for html in PAGES.values()}) == len(PAGES)


@pytest.mark.parametrize("number", range(SHARDS))
async def test_every_element_is_reached_and_clicked_from_what_the_agent_sees(number, tmp_path):
    need_browser()
    with Api() as site:
        settings = BrowserSettings(allow_private=(site.url.partition("//")[2],))
        browsings = Browsings(settings, tmp_path.parent / "b")
        try:
            browsing = await browsings.open(Call(tool="", arguments={}, caller=Caller(name="a")))
            tab = await browsing.new_tab()
            for index, (name, html) in enumerate(shard(number)):
                site.replies[f"/{index}"] = page(html)
                await tab.page.goto(f"{site.url}/{index}")
                await check_page(name, tab)
        finally:
            await browsings.stop()


async def check_page(name, tab):
    sight, groups = await tab.look(), Groups()
    playwrights = len(await tab.page.aria_snapshot(mode="ai"))
    view = open_items(simplify(sight.root), groups, budget_for(measure(sight.root)))
    assert len(view.text) <= 5_000, name
    assert len(view.text) * 4 <= playwrights, name
    assert playwrights < 50_000 or len(view.text) * 10 <= playwrights, name
    seen, longest = reached(view, groups)
    acts = sight.actionable
    assert [node.ref for node in acts if node.ref not in seen] == [], name
    assert longest <= 5_000, name
    await tab.look()
    for node in acts[:: max(1, len(acts) // CLICKED)]:
        if node.states.get("disabled"):
            continue
        if node.details.backend:
            x, y = await middle(await locate(tab, node))
            assert x >= 0, name
            assert y >= 0, name
        else:
            await locator(tab, node).click(trial=True, timeout=5_000)
