"""The page for those who are not logged in: why they are here, the way in, and back to where they wanted to be."""

import re

import pytest
from tests.ui.ui_house import opened

from agent_gate.net.http import refusal


def test_a_pasted_link_asks_to_log_in_and_leads_on_to_what_it_was_about(tab, home):
    gateway, _api = home
    page = tab.page
    page.goto(f"{gateway.announced['admin']}/#/calls?agent=pi")
    page.wait_for_selector("h1:has-text('Log in')")
    assert page.is_visible("text=agent-gate login")
    tab.log_in(gateway.admin.request("POST", "/api/logins", {})["url"])
    page.wait_for_url("**/#/calls?agent=pi")


def test_a_link_that_was_used_says_so_and_how_to_get_another(tab, home):
    gateway, _api = home
    link = gateway.admin.request("POST", "/api/logins", {})["url"]
    page = tab.log_in(link).page
    page.context.clear_cookies()
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("h1:has-text('That link did not log you in')")
    assert page.is_visible("text=agent-gate login")
    assert not re.search(r"#.", page.url)


def test_whoever_may_not_even_look_is_told_so_and_can_log_out(tab, fixtures):
    fixtures.guard = lambda request: (
        refusal(403, "FORBIDDEN", "vic may not look at this") if request.path == "/api/me" else None
    )
    try:
        tab.page.goto(f"{fixtures.url}/#/now")
        tab.page.wait_for_selector("text=vic may not look at this")
        assert tab.page.is_visible("button:has-text('Log out')")
    finally:
        fixtures.guard = lambda _request: None


@pytest.mark.parametrize("place", ["tools/big__tool_7", "agents/agent-2", "peers/peer-4"])
def test_what_is_chosen_and_searched_for_stands_in_the_address(tab, fixtures, place):
    page, (name, _, key) = tab.page, place.partition("/")
    page.goto(f"{fixtures.url}/#/{name}?text={key}")
    page.wait_for_selector(f".{name} .row >> text={key}")
    assert page.input_value("input[type=search]") == key
    page.click(f".{name} .row >> text={key}")
    page.wait_for_url(f"**/#/{place}?text={key}")


def test_the_list_of_tools_follows_the_agent_that_is_chosen(tab, home):
    gateway, _api = home
    page = opened(tab, gateway, "tools")
    page.wait_for_selector(".tools .row:has-text('light_get') .word.good:has-text('allow')")
    page.wait_for_selector(".tools .row:has-text('light_set') .word.wait:has-text('ask')")
    gateway.admin.request("POST", "/api/agents", {"name": "blind", "namespaces": ["elsewhere"]})
    page.reload()
    page.select_option("[aria-label='What the rules say for']", "blind")
    page.wait_for_selector(".tools .row:has-text('light_get') >> text=not seen")
    assert "agent=blind" in page.url


def test_tools_of_several_sources_stand_below_the_names_of_their_sources(tab, fixtures):
    page = tab.page
    rows = [
        {"id": f"{source}:{n}", "name": f"{source}__{n}", "source": source, "description": "", "available": True,
         "bytes": 4, "effect": "ask"}
        for source in ("house", "mail") for n in range(2)
    ]  # fmt: skip
    page.route("**/api/tools?*", lambda route: route.fulfill(json={"tools": rows}))
    page.goto(f"{fixtures.url}/#/tools")
    page.wait_for_selector(".row.group >> text=mail")
    shown = [text.split("\n")[0] for text in page.locator(".tools .row").all_inner_texts()]
    assert shown == ["house", "house__0", "house__1", "mail", "mail__0", "mail__1"]
