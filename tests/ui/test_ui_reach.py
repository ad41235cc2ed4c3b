"""The page for those who do not see it, who have only keys or only fingers, and whose line or login went away."""

import time

import pytest
from playwright.sync_api import expect
from tests.ui.chromium import PHONE
from tests.ui.ui_fixtures import NOW, approval
from tests.ui.ui_fixtures import question as whole
from tests.ui.ui_house import house, opened

from agent_gate.net.http import json_response

ROW = ".approvals .row"
READY = "[data-answer=once]:not([disabled])"


def long_question(gateway, room):
    gateway.call("light_set", {"room": room, "note": "\n".join("why" * 5 for _ in range(40))}, wait=0)


def test_the_page_that_is_open_is_named(tab, fixtures):
    page = tab.page
    page.goto(f"{fixtures.url}/#/tools")
    expect(page.get_by_role("heading", level=1)).to_have_text("Tools")
    expect(page.locator("#nav [aria-current]")).to_have_attribute("aria-current", "page")
    page.goto(f"{fixtures.url}/#/calls")
    expect(page.get_by_role("heading", level=1)).to_have_text("Calls")
    expect(page.locator("#nav [aria-current]")).to_have_text("Calls")


def test_on_a_phone_every_page_is_reached_and_nothing_scrolls_sideways(tab, fixtures):
    page = tab.page
    page.set_viewport_size(PHONE)
    page.goto(f"{fixtures.url}/#/now")
    page.wait_for_selector("#nav .badge:text-is('30')")
    more = page.get_by_role("button", name="More")
    for link in page.locator("#nav a").all():
        if not link.is_visible():
            more.click()
            expect(more).to_have_attribute("aria-expanded", "true")
        box = link.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["width"]
        assert box["height"] >= 40, "a thumb misses it"
        link.click()
        expect(page.get_by_role("heading", level=1)).to_have_text(link.text_content().rstrip("0123456789"))
        expect(more).to_have_attribute("aria-expanded", "false")
    assert page.evaluate("document.getElementById('nav').scrollWidth") <= PHONE["width"]
    page.get_by_role("link", name="operator").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("You")


def test_how_much_is_broken_is_known_on_every_page_at_once(tab, fixtures):
    page = tab.page
    page.goto(f"{fixtures.url}/#/secrets")
    expect(page.locator("#nav .broken")).to_have_text("24")


def test_a_question_that_comes_is_said_to_those_who_do_not_see_the_number(tab, home):
    gateway, _api = home
    page = opened(tab, gateway, "health")
    gateway.call("light_set", {"room": "hall"}, wait=0)
    news = page.locator("#top [role=status].news")
    expect(news).to_have_text("1 question waits for an answer")
    gateway.answer("deny")
    expect(news).to_have_text("")


def test_choosing_all_leaves_the_keyboard_where_it_is(tab, fixtures):
    page = tab.page
    page.goto(f"{fixtures.url}/#/approvals")
    page.wait_for_selector(ROW)
    page.locator(".bar [type=checkbox]").focus()
    page.keyboard.press("Space")
    page.wait_for_selector("text=30 chosen")
    page.keyboard.press("Tab")
    expect(page.locator(".bar button:text-is('Approve once')")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    page.wait_for_selector("text=30 chosen", state="hidden")
    assert page.is_hidden(".bar button:text-is('Approve once')")


def test_a_row_that_can_be_chosen_is_a_row_of_cells(tab, fixtures):
    page = tab.page
    page.goto(f"{fixtures.url}/#/approvals")
    grid = page.get_by_role("grid", name="Approvals")
    expect(grid).to_have_attribute("aria-rowcount", "30")
    chosen = grid.get_by_role("checkbox", name="Choose mail_send(to=4@example.org)")
    chosen.check()
    assert chosen.evaluate("node => node.parentElement.getAttribute('role')") == "gridcell"
    assert page.locator("[role=option] input, [role=option] button").count() == 0


def test_the_next_question_is_read_from_its_beginning(tab, home):
    gateway, _api = home
    page = opened(tab, gateway)
    for room in ("first", "second"):
        long_question(gateway, room)
    page.click(f"{ROW} >> text=light_set(first)")
    page.wait_for_selector(READY)
    page.locator("text=Where it comes from").scroll_into_view_if_needed()
    assert page.evaluate("document.querySelector('.over').scrollTop") > 0
    page.keyboard.press("j")
    page.wait_for_selector("h2:has-text('Set the light in second?')")
    page.wait_for_selector(READY)
    assert page.evaluate("document.querySelector('.over').scrollTop") == 0


def test_the_arrows_scroll_what_is_read_and_walk_through_the_list_elsewhere(tab, home):
    gateway, _api = home
    page = opened(tab, gateway)
    for room in ("first", "second"):
        long_question(gateway, room)
    page.wait_for_selector(f"{ROW} >> text=light_set(second)")
    page.wait_for_selector("h2:has-text('Set the light in first?')")
    page.wait_for_selector(READY)
    page.focus(".over")
    scrolled = "window.scrolled = new Promise((done) => document.querySelector('.over').addEventListener('scroll', () => done(), { once: true }))"
    page.evaluate(f"{scrolled}; undefined")
    page.keyboard.press("ArrowDown")
    page.evaluate("window.scrolled")
    assert page.is_visible("h2:has-text('Set the light in first?')")
    page.focus(".list")
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("h2:has-text('Set the light in second?')")


def test_on_a_phone_the_keyboard_goes_to_the_question_and_back_to_the_list(tab, home):
    gateway, _api = home
    page = opened(tab, gateway)
    page.set_viewport_size(PHONE)
    for room in ("first", "second"):
        gateway.call("light_set", {"room": room}, wait=0)
    page.click(f"{ROW} >> text=light_set(first)")
    expect(page.locator(".over")).to_be_focused()
    page.click("button:has-text('Back to the list')")
    expect(page.locator(".list")).to_be_focused()
    page.click(f"{ROW} >> text=light_set(first)")
    page.click("[data-answer=deny]:not([disabled])")
    expect(page.locator(".list")).to_be_focused()
    expect(page.locator(ROW)).to_have_count(1)


def test_letters_that_answer_can_be_switched_off(tab, home):
    gateway, api = home
    page = opened(tab, gateway)
    gateway.call("light_set", {"room": "hall"}, wait=0)
    page.wait_for_selector(ROW)
    page.click("#top button:has-text('Keys')")
    page.get_by_label("letters and signs act").uncheck()
    page.click("dialog button:has-text('Close')")
    page.reload()
    page.wait_for_selector(ROW)
    page.keyboard.press("ArrowDown")
    page.wait_for_selector(READY)
    for key in "adhwg?":
        page.keyboard.press(key)
    assert page.locator("dialog").count() == 0
    assert len(gateway.admin.get("/api/approvals")) == 1
    assert api.requests == []


def test_a_passphrase_that_is_not_given_on_a_phone_leaves_the_question_open(tab, tmp_path):
    with house(tmp_path, "approvers: {passphrase: open-sesame-all}") as (gateway, _api):
        page = opened(tab, gateway)
        page.set_viewport_size(PHONE)
        gateway.call("light_set", {"room": "hall"}, wait=0)
        page.click(f"{ROW} >> text=light_set(hall)")
        page.click(READY)
        page.click("dialog button:has-text('Not now')")
        page.wait_for_selector("text=Not answered: no passphrase was given")
        assert len(gateway.admin.get("/api/approvals")) == 1


def test_an_answer_after_the_login_ended_counts_for_nothing_and_breaks_nothing(tab, home):
    gateway, api = home
    page = opened(tab, gateway)
    gateway.call("light_set", {"room": "hall"}, wait=0)
    page.click(f"{ROW} >> text=light_set(hall)")
    page.wait_for_selector(READY)
    page.context.clear_cookies()
    page.click(READY)
    page.wait_for_selector("text=You are logged out")
    page.evaluate("new Promise(requestAnimationFrame)")  # what the page throws is heard before the test ends
    assert len(gateway.admin.get("/api/approvals")) == 1
    assert api.requests == []


def test_a_line_that_fell_silent_is_opened_again(tab, fixtures):
    page = tab.page
    page.clock.install()
    with page.expect_request("**/api/events?*"):
        page.goto(f"{fixtures.url}/#/now")
    page.wait_for_selector("#nav .badge:text-is('30')")
    with page.expect_request("**/api/events?*") as again:
        page.clock.run_for(60_000)
    assert again.value.method == "GET"


def question(number, **more):
    return approval(number) | {"not_in_signature": [], "count": 1, "yeses": []} | more


ASKED = [
    question(0),
    question(1, count=2, yeses=["ben"]),
    question(2, not_in_signature=["cc"]),
    question(3),
    question(4, expires_at=NOW - 1),
]


@pytest.fixture
def asking(fixtures):
    fixtures.guard = lambda request: json_response(200, ASKED) if request.path == "/api/approvals" else None
    yield fixtures
    fixtures.guard = lambda _request: None


def test_all_that_can_be_approved_unseen_are_those_whose_row_shows_everything(tab, asking):
    page = tab.page
    page.goto(f"{asking.url}/#/approvals")
    expect(page.locator("#nav .badge")).to_have_text("4")
    page.wait_for_selector(f"{ROW} >> text=1 of 2 said yes")
    page.get_by_label("Choose all").check()
    page.click(".bar button:text-is('Approve once')")
    listed = page.locator("dialog li code")
    assert listed.all_inner_texts() == ["mail_send(to=0@example.org)", "mail_send(to=3@example.org)"]
    page.wait_for_selector("dialog >> text=1 of them dangerous")


def test_the_number_of_dangers_leads_to_just_these(tab, asking):
    page = tab.page
    page.goto(f"{asking.url}/#/now")
    page.click(".glance >> text=3 of them dangerous")
    expect(page.locator(ROW)).to_have_count(3)


def test_a_question_whose_time_runs_out_can_be_answered_no_more(tab, asking):
    ends = {"expires_at": time.time() + 1}
    replies = {"/api/approvals": [question(0, **ends)], f"/api/approvals/{0:032x}": whole(0) | ends}
    asking.guard = lambda request: (
        json_response(200, replies[request.path]) if request.path in replies else None
    )
    page = tab.page
    page.goto(f"{asking.url}/#/approvals/{0:032x}")
    page.wait_for_selector(".detail >> text=Its time is over")
    expect(page.locator("[data-answer]")).to_have_count(0)
    expect(page.locator("#nav .badge")).to_be_hidden()


def test_the_tabs_of_the_inbox_and_the_filters_of_calls_are_found_and_seen(tab, fixtures):
    page = tab.page
    page.goto(f"{fixtures.url}/#/now")
    page.wait_for_selector("#nav .badge:text-is('30')")
    page.keyboard.press("Control+k")
    page.fill("dialog input", "grants")
    page.keyboard.press("Enter")
    page.wait_for_selector("main >> text=Nothing is remembered")
    page.set_viewport_size(PHONE)
    page.goto(f"{fixtures.url}/#/calls?agent=codex&range=today")
    page.wait_for_selector("button:text-is('Filters (2)')")
    assert page.locator("main").inner_text().count("Filters") == 1
