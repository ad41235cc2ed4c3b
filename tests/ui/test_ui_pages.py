import json
import re
import subprocess
import time
from contextlib import nullcontext
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect
from tests.ui.chromium import DESKTOP, PHONE
from tests.ui.ui_fixtures import MANY, Fixtures, approval, call, change, source
from tests.waiting import wait_until

from agent_gate.approval.render import INVISIBLE, visible
from agent_gate.cli.arguments import parse_arguments
from agent_gate.cli.commands import request

PAGES = {
    "now": ("Nothing is broken", "Source 7 cannot be reached"),
    "approvals": ("No question waits for you", "mail_send(to=4@example.org)"),
    "calls": ("No call was made yet", "branch=b3, remote=origin"),
    "tools": ("There are no tools", "big__tool_3"),
    "sources": ("No source is configured", "source-1 (Source 1)"),
    "secrets": ("There is no secret", "secret-3"),
    "accounts": ("Nothing needs an account", "Account 3"),
    "peers": ("Nobody is paired", "peer-1"),
    "policy": ("There are no rules", "light_3(*)"),
    "agents": ("There is no agent", "agent-3"),
    "connect": ("No client is known", "Client 3"),
    "health": ("Nothing was measured yet", "370,000"),
}


@pytest.fixture(scope="module")
def fixtures():
    server = Fixtures().start()
    yield server
    server.stop()


def expect_to_fit(page, what):
    for width, size in (("phone", PHONE), ("desktop", DESKTOP)):
        page.set_viewport_size(size)
        overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(overflow) <= 0, f"{what} is wider than a {width}"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_words_for_nothing_and_for_failure_and_draws_few_of_ten_thousand_rows(tab, fixtures, name):
    page, (nothing, something) = tab.page, PAGES[name]
    fixtures.state = "empty"
    page.goto(f"{fixtures.url}/#/{name}")
    page.wait_for_selector(f"main >> text={nothing}")
    expect_to_fit(page, f"{name} (empty)")

    fixtures.state = "error"
    page.reload()
    page.wait_for_selector("main [role=alert] >> text=no space left on device")
    expect_to_fit(page, f"{name} (error)")
    fixtures.state = "some"
    alerts = page.locator("main [role=alert]:visible")
    before = alerts.count()
    alerts.first.get_by_role("button", name="Try again").click()
    expect(alerts).to_have_count(before - 1)

    fixtures.state = "many"
    page.reload()
    page.wait_for_selector(f"main >> text={something}")
    expect_to_fit(page, f"{name} (many)")
    assert page.locator("main *").count() < MANY


def test_scrolling_to_the_last_of_ten_thousand_rows_draws_only_what_is_seen(tab, fixtures):
    fixtures.state = "many"
    page = tab.page
    page.goto(f"{fixtures.url}/#/tools")
    page.wait_for_selector("text=big__tool_3")
    page.evaluate("document.querySelector('.list').scrollTop = 1e9")
    page.wait_for_selector("text=big__tool_9999")
    assert page.locator(".tools .row").count() < 60
    page.fill("input[type=search]", "number 4321")
    page.wait_for_selector("text=big__tool_4321")
    assert page.locator(".tools .row").count() == 1


def test_a_hundred_thousand_calls_are_read_in_pages_and_few_are_drawn(tab, fixtures):
    fixtures.state = "huge"
    page = tab.page
    page.goto(f"{fixtures.url}/#/calls")
    page.wait_for_selector("text=branch=b3,")
    for last in range(1, 25):
        page.evaluate("document.querySelector('.list').scrollTop = 1e9")
        page.wait_for_selector(f".row >> text=branch=b{last * 200},")
    assert page.locator(".calls .row").count() < 80
    page.evaluate("document.querySelector('.list').scrollTop = 0")
    page.wait_for_selector(".row >> text=branch=b0,")


def test_the_filters_of_calls_stand_in_the_address_and_come_back_from_it(tab, fixtures):
    fixtures.state = "some"
    page = tab.page
    page.goto(f"{fixtures.url}/#/calls?agent=agent-3&state=failed&longer=1&text=b3")
    page.wait_for_selector("[aria-label=Agent] option >> nth=20", state="attached")
    assert page.input_value("[aria-label=Agent]") == "agent-3"
    assert page.input_value("[aria-label=State]") == "failed"
    assert page.input_value("[aria-label=Words]") == "b3"
    with page.expect_request(lambda request: "/api/calls?" in request.url) as sent:
        page.select_option("[aria-label=Time]", "yesterday")
    asked = parse_qs(urlsplit(sent.value.url).query)
    assert (asked["caller"], asked["state"], asked["longer"]) == (["agent-3"], ["failed"], ["1"])
    assert float(asked["until"][0]) - float(asked["since"][0]) in (82_800, 86_400, 90_000)
    assert "range=yesterday" in page.url
    assert "agent=agent-3" in page.url


def test_health_looks_back_over_the_range_that_is_chosen_and_keeps_it_in_the_address(tab, fixtures):
    fixtures.state = "some"
    page = tab.page
    page.goto(f"{fixtures.url}/#/health")
    page.wait_for_selector(".ticks")
    assert page.locator("svg title").first.text_content().endswith("40 calls, 0 failed or refused")
    for words in (
        "The source answered with an error",
        "UPSTREAM_ERROR",
        "agent-3",
        "fingerprint of the row before it",
    ):
        assert words in page.inner_text("main")
    with page.expect_request("**/api/trends?range=week"):
        page.click("button:has-text('Week')")
    page.wait_for_selector("button[aria-pressed=true]:has-text('Week')")
    with page.expect_request("**/api/trends?range=week&gateway=gate-2"):
        page.select_option("[aria-label=Gateway]", "gate-2")
    with page.expect_request("**/api/trends?range=week&gateway=gate-2"):
        page.reload()


def test_a_peer_whose_certificate_has_no_end_is_not_shown_as_one_whose_has_ended(tab, fixtures):
    fixtures.state = "some"
    tab.page.goto(f"{fixtures.url}/#/peers")
    tab.page.wait_for_selector("main .row >> text=peer-2")
    assert tab.page.locator("main >> text=certificate has ended").count() == 0


def test_two_calls_are_compared_side_by_side(tab, fixtures):
    fixtures.state = "some"
    page = tab.page
    page.goto(f"{fixtures.url}/#/calls/{1:032x}")
    page.wait_for_selector("pre.stack .wrong >> text=ValueError: no branch")
    page.click("button:has-text('Compare with another call')")
    page.click(".calls .row >> text=branch=b2,")
    page.wait_for_selector("tr.differs:has-text('argument branch') >> text=b1")
    page.wait_for_selector("tr.differs:has-text('argument branch') >> text=b2")
    page.wait_for_selector("tr.same >> text=git__push")
    assert f"with={1:032x}" in page.url


@pytest.mark.parametrize("link", ["tools/%", "calls/%E0%A4%A", "approvals/%ff"])
def test_a_broken_link_still_opens_its_page(tab, fixtures, link):
    fixtures.state = "some"
    tab.page.goto(f"{fixtures.url}/#/{link}")
    tab.page.wait_for_selector(f"#main.{link.partition('/')[0]} .detail [role=alert]")
    tab.page.wait_for_selector(".row >> nth=3")
    tab.page.wait_for_selector("#nav .badge:text-is('30')")
    assert tab.page.locator(".detail [role=alert]").count() == 1


@pytest.mark.parametrize("link", ["nowhere", "constructor", "__proto__", "toString/x"])
def test_a_link_to_no_page_opens_the_first_one(tab, fixtures, link):
    fixtures.state = "some"
    tab.page.goto(f"{fixtures.url}/#/{link}")
    tab.page.wait_for_selector("#main.now >> text=Source 7 cannot be reached")
    assert tab.page.get_by_role("heading", level=1).count() == 1


def test_the_link_to_the_content_stays_on_its_page(tab, fixtures):
    fixtures.state = "some"
    page = tab.page
    page.goto(f"{fixtures.url}/#/tools")
    page.wait_for_selector("text=big__tool_3")
    page.focus(".skip")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    assert page.url.endswith("#/tools")
    page.wait_for_selector("#main.tools >> text=big__tool_3")


def test_dark_and_light_are_both_readable(browser, fixtures):
    fixtures.state = "some"
    for scheme in ("light", "dark"):
        context = browser.new_context(viewport=DESKTOP, color_scheme=scheme)
        page = context.new_page()
        page.goto(f"{fixtures.url}/#/now")
        page.wait_for_selector("text=Source 7 cannot be reached")
        assert contrast(page, "#nav a:not([aria-current])") > 4.5
        assert contrast(page, ".need p") > 4.5
        context.close()


def contrast(page, selector):
    """The contrast of an element's text to the first ground behind it."""
    colours = page.evaluate(
        """(selector) => {
          const node = document.querySelector(selector);
          let ground = node;
          while (getComputedStyle(ground).backgroundColor === "rgba(0, 0, 0, 0)") ground = ground.parentElement;
          return [getComputedStyle(node).color, getComputedStyle(ground).backgroundColor];
        }""",
        selector,
    )
    light, dark = sorted(map(luminance, colours), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")[:3]]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def caught(page, held, count):
    """The routes once there are as many."""

    def enough():
        page.evaluate("new Promise(requestAnimationFrame)")
        return held if len(held) >= count else None

    return wait_until(enough, f"a request number {count} of the page")


def answered(route, value):
    """The answer given, and seen by the page."""
    with route.request.frame.page.expect_event("requestfinished", lambda done: done == route.request):
        route.fulfill(json=value)
    route.request.frame.page.evaluate("new Promise(requestAnimationFrame)")


def test_a_browser_that_was_here_before_fetches_no_script_and_no_style_again(tab, fixtures):
    fixtures.state = "some"
    page = tab.page
    sizes = """Object.fromEntries(performance.getEntriesByType("resource")
      .filter(({ name }) => /\\.(js|css)$/.test(name)).map(({ name, transferSize }) => [name, transferSize]))"""
    visits = []
    for _ in range(2):
        page.goto(f"{fixtures.url}/#/tools")
        page.wait_for_selector("text=big__tool_3")
        visits.append(page.evaluate(sizes))
        page.goto("about:blank")
    first, second = visits
    assert len(first) > 10
    assert all(first.values())
    assert {name: second[name] for name in first} == dict.fromkeys(first, 0)


def test_a_page_that_does_not_come_says_so_and_comes_when_tried_again(tab, fixtures):
    fixtures.state = "some"
    page = tab.page
    page.route("**/pages/tools.js", lambda route: route.abort())
    page.goto(f"{fixtures.url}/#/tools")
    page.wait_for_selector("main [role=alert] >> text=Is the gateway running?")
    page.unroute("**/pages/tools.js")
    page.click("text=Try again")
    page.wait_for_selector("text=big__tool_3")
    assert "Is the gateway running?" not in page.locator("main").inner_text()


def test_of_two_pages_that_were_asked_for_the_last_one_opens(tab, fixtures):
    fixtures.state = "some"
    page, held = tab.page, []
    page.route("**/pages/peers.js", lambda route: held.append(route))
    page.goto(f"{fixtures.url}/#/peers")
    [slow] = caught(page, held, 1)
    page.evaluate("location.hash = '#/tools'")
    page.wait_for_selector("text=big__tool_3")
    with page.expect_event("requestfinished", lambda done: done == slow.request):
        slow.continue_()
    page.evaluate("import(new URL('pages/peers.js', document.scripts[0].src)).then(() => {})")
    page.wait_for_selector("#main.tools >> text=big__tool_3")
    assert page.locator("text=peer-3").count() == 0


@pytest.mark.parametrize(
    ("name", "claim"), [("now", "Nothing waits for you"), ("approvals", "No question waits for you")]
)
def test_nothing_is_said_of_questions_before_they_are_known(tab, fixtures, name, claim):
    fixtures.state = "empty"
    page, held = tab.page, []
    page.route("**/api/approvals?brief=1", lambda route: held.append(route))
    with page.expect_response("**/api/now") if name == "now" else nullcontext():
        page.goto(f"{fixtures.url}/#/{name}")
    [questions] = caught(page, held, 1)
    page.wait_for_selector("main >> text=Loading…")
    assert page.locator(f"main >> text={claim}").count() == 0
    questions.continue_()
    page.wait_for_selector(f"main >> text={claim}")


def test_a_slow_search_does_not_replace_the_one_after_it(tab, fixtures):
    fixtures.state = "some"
    page = tab.page
    page.goto(f"{fixtures.url}/#/calls")
    page.wait_for_selector("text=b3, remote")
    held = []
    page.route("**/api/calls?*", lambda route: held.append(route))
    page.fill("input[type=search]", "one")
    [first] = caught(page, held, 1)
    page.fill("input[type=search]", "two")
    _, second = caught(page, held, 2)
    answered(second, {"calls": [call(2)], "next": None})
    page.wait_for_selector("text=b2, remote")
    answered(first, {"calls": [call(1)], "next": None})
    assert "branch=b2, remote=origin" in page.locator(".calls .row").all_inner_texts()[0]


def test_a_search_whose_time_was_up_says_how_far_it_came_and_goes_on_when_told(tab, fixtures):
    fixtures.state = "some"
    page = tab.page
    page.goto(f"{fixtures.url}/#/calls")
    page.wait_for_selector("text=b3, remote")
    held = []
    page.route("**/api/calls?*", lambda route: held.append(route))
    page.fill("input[type=search]", "nowhere")
    [first] = caught(page, held, 1)
    answered(first, {"calls": [], "next": "ab", "back_to": 1_780_000_000})
    page.wait_for_selector("text=Nothing found yet")
    assert "Looked back to " in page.inner_text(".state")
    page.click("text=Look further back")
    _, second = caught(page, held, 2)
    assert "cursor=ab" in second.request.url
    answered(second, {"calls": [call(7)], "next": "cd", "back_to": 1_770_000_000})
    page.wait_for_selector("text=b7, remote")
    assert "Looked back to " in page.inner_text(".further")
    page.click("text=Look further back")
    *_, third = caught(page, held, 3)
    answered(third, {"calls": [], "next": None, "back_to": None})
    page.wait_for_selector(".further", state="hidden")
    assert page.is_visible("text=b7, remote")


def test_a_slow_history_is_not_taken_for_grants(tab, fixtures):
    fixtures.state = "some"
    page = tab.page
    page.goto(f"{fixtures.url}/#/approvals")
    page.wait_for_selector(".approvals .row >> nth=3")
    held = []
    page.route("**/api/approvals?state=answered*", lambda route: held.append(route))
    page.click("button:has-text('History')")
    [history] = caught(page, held, 1)
    page.click("button:has-text('Grants')")
    page.wait_for_selector("text=Nothing is remembered")
    answered(history, [approval(1, "approved")])
    assert page.locator(".approvals .row").count() == 0
    assert page.is_visible("text=Nothing is remembered")


@pytest.mark.parametrize("hours", [-2, 2])
def test_the_time_left_is_the_gateways_also_where_the_browsers_clock_is_wrong(tab, fixtures, hours):
    fixtures.state = "some"
    page = tab.page
    page.clock.install(time=time.time() + hours * 3600)
    soon = [approval(0) | {"asked_at": time.time() - 630, "expires_at": time.time() + 600}]
    page.route("**/api/approvals?brief=1", lambda route: route.fulfill(response=route.fetch(), json=soon))
    page.goto(f"{fixtures.url}/#/approvals")
    row = page.inner_text(".approvals .row")
    assert re.search(r"\b(9:|10:0)\d+ left", row), row
    page.goto(f"{fixtures.url}/#/now")
    page.wait_for_selector(".need >> text=asked 10 min ago")


def test_a_question_that_comes_while_the_list_is_on_its_way_stays(tab, fixtures):
    fixtures.state = "empty"
    page = tab.page
    told = [approval(5), approval(6), approval(6, "denied")]
    events = "".join(f"event: approval\ndata: {json.dumps(one)}\n\n" for one in told)
    stream = "event: missed\ndata: {}\n\n" + events
    held = []
    page.route("**/api/approvals?brief=1", lambda route: held.append(route))
    page.route("**/api/events?*", lambda route: route.fulfill(body=stream), times=1)
    page.goto(f"{fixtures.url}/#/approvals")
    first = caught(page, held, 1)[0]
    first.fulfill(json=[])
    second = caught(page, held, 2)[1]
    page.wait_for_selector(".approvals .row >> text=to=5@")
    answered(second, [approval(6)])
    page.wait_for_selector("#nav .badge:text-is('1')")
    assert "to=5@" in page.inner_text(".approvals .row")


@pytest.mark.parametrize("name", ["tools", "calls"])
def test_tools_and_calls_are_loaded_again_after_the_gateway_was_away(tab, fixtures, name):
    fixtures.state = "empty"
    page, held = tab.page, []
    page.route("**/api/events?*", lambda route: held.append(route))
    page.goto(f"{fixtures.url}/#/{name}")
    page.wait_for_selector(f"main >> text={PAGES[name][0]}")
    caught(page, held, 1)[0].fulfill(body=": gone\n\n")
    caught(page, held, 2)
    fixtures.state = "some"
    held[1].continue_()
    page.wait_for_selector(f"main >> text={PAGES[name][1]}")
    assert len(held) == 2


REDRAW = """import(new URL('inbox.js', document.scripts[0].src)).then(async ({ reload }) => {
  await reload();
  for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
})"""


def press(page, node, button="left"):
    node.wait_for()
    page.evaluate(REDRAW)
    box = node.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down(button=button)


def test_news_between_press_and_release_take_no_click_away(tab, fixtures):
    fixtures.state = "some"
    page = tab.page
    page.goto(f"{fixtures.url}/#/now")
    page.wait_for_selector("#nav .badge:text-is('30')")
    press(page, page.locator("button:has-text('Try now')").first)
    page.evaluate(REDRAW)
    with page.expect_request("**/api/sources/source-0/connect") as tried:
        page.mouse.up()
    assert tried.value.method == "POST"

    page.goto(f"{fixtures.url}/#/approvals")
    press(page, page.locator(".approvals .row [type=checkbox]").nth(2))
    page.evaluate(REDRAW)
    page.mouse.up()
    page.wait_for_selector("text=1 chosen")
    press(page, page.locator(".approvals .row .asked").nth(3))
    page.evaluate(REDRAW)
    with page.expect_request(f"**/api/approvals/{12:032x}"):
        page.mouse.up()


def test_a_press_that_opens_a_menu_holds_no_news_back(tab, fixtures):
    """The menu takes the release, so the page never hears of it."""
    fixtures.state = "some"
    page = tab.page
    page.goto(f"{fixtures.url}/#/approvals")
    page.wait_for_selector("#nav .badge:text-is('30')")
    row = page.locator(".approvals .row .asked").nth(3)
    press(page, row, button="right")
    drawn = row.element_handle()
    page.evaluate(REDRAW)
    assert not drawn.evaluate("node => node.isConnected")
    page.mouse.up(button="right")


def test_news_leave_the_keyboard_where_it_is(tab, fixtures):
    fixtures.state = "some"
    page = tab.page
    page.goto(f"{fixtures.url}/#/approvals")
    page.locator(".approvals .row [type=checkbox]").nth(2).focus()
    page.evaluate(REDRAW)
    page.keyboard.press("Space")
    page.wait_for_selector("text=1 chosen")
    page.evaluate(REDRAW)
    page.keyboard.press("Space")
    page.wait_for_selector("text=1 chosen", state="hidden")
    page.keyboard.press("j")
    page.wait_for_selector(".approvals .row[aria-selected=true] >> text=to=4@")
    assert page.locator(".approvals .row[aria-selected=true]").count() == 1


def test_all_of_a_long_change_can_be_seen_before_it_is_accepted(tab, fixtures):
    fixtures.state = "some"
    page = tab.page
    lines = [*(f"+  line {n}" for n in range(3_000)), "+++ not a heading", "+  the last word"]
    long = change(1) | {"diff": "\n".join(["--- accepted", "+++ now", *lines])}
    page.route("**/api/changes", lambda route: route.fulfill(json=[long]))
    page.goto(f"{fixtures.url}/#/sources/source-0")
    page.click("button:has-text('Show all 3,002 lines')")
    assert page.inner_text("pre.diff").split("\n") == lines


WORDS = 'Traceback\n  File "x.py", line 3\nModuleNotFoundError: No module named notes'


def test_what_a_source_printed_before_it_died_can_be_read_on_a_phone(tab, fixtures):
    fixtures.state = "some"
    page = tab.page
    page.set_viewport_size(PHONE)
    reason = f"notes is not available: it exited with code 1; its last words were:\n{WORDS}"
    dead = source(1) | {"key": "notes", "reason": reason}
    need = {"problem": "notes cannot be reached", "reason": reason, "page": "sources/notes", "action": None}
    page.route("**/api/sources", lambda route: route.fulfill(json=[dead]))
    page.route("**/api/now", lambda route: route.fulfill(json={"running": [], "needs": [need]}))
    page.goto(f"{fixtures.url}/#/now")
    page.wait_for_selector(".need >> text=it exited with code 1")
    assert page.inner_text(".need .printed") == WORDS
    page.click(".need:has-text('notes cannot be reached') >> text=Details")
    page.wait_for_selector(".detail >> text=it exited with code 1")
    assert page.inner_text(".detail .printed") == WORDS
    assert "\\n" not in page.inner_text("main")


def test_all_of_a_long_signature_is_on_the_first_page(tab, fixtures):
    fixtures.state = "some"
    page = tab.page
    page.set_viewport_size(PHONE)
    long = f"notes__add(body={'x' * 300})"
    asked = approval(1) | {"sentence": "", "signature": long, "line": long}
    page.route("**/api/approvals?*", lambda route: route.fulfill(json=[asked]))
    page.goto(f"{fixtures.url}/#/now")
    page.wait_for_selector(".need >> text=Let coder call mail_send?")
    assert page.inner_text(".need code") == long
    assert page.evaluate(
        "document.querySelector('.needs').scrollWidth <= document.querySelector('.needs').clientWidth"
    )


def test_a_changed_definition_is_marked_in_the_list_and_found_on_a_phone(tab, fixtures):
    fixtures.state = "some"
    page = tab.page
    page.set_viewport_size(PHONE)
    page.route("**/api/changes", lambda route: route.fulfill(json=[change(1), change(2)]))
    page.goto(f"{fixtures.url}/#/sources")
    page.click(".row:has-text('definition changed')")
    page.locator(".card:has-text('read_2')").get_by_role("button", name="Accept").click()
    page.wait_for_selector("dialog >> text=Accept the new read_2?")
    assert "read_1" not in page.locator("dialog").inner_text()


def test_what_was_accepted_is_kept_first_and_a_new_definition_is_accepted_after_a_second_yes(tab, fixtures):
    fixtures.state = "some"
    page, accepted = tab.page, []
    page.route("**/api/changes", lambda route: route.fulfill(json=[change(2)]))
    page.route("**/api/changes/accept", lambda route: [accepted.append(1), route.fulfill(json={})])
    page.goto(f"{fixtures.url}/#/sources/source-0")
    page.wait_for_selector(".card >> text=Agents still see what you accepted")
    assert page.locator(".card button").all_inner_texts() == [
        "Keep the old one",
        "Pause…",
        "Accept the new one…",
    ]
    assert page.locator(".card button.strong").all_inner_texts() == ["Keep the old one"]
    old, new = (page.locator(f".card .{kind}").first.evaluate(COLOURS) for kind in ("minus", "plus"))
    assert (old[0] != new[0], old[1] != new[1], old[2]) == (True, True, "line-through")
    page.click("text=Accept the new one")
    page.click("dialog >> text=Not now")
    assert accepted == []
    page.click("text=Accept the new one")
    page.click("dialog button:text-is('Accept')")
    page.wait_for_selector("text=Accepted read_2")
    assert accepted == [1]


COLOURS = "(node) => { const s = getComputedStyle(node); return [s.color, s.backgroundColor, s.textDecorationLine]; }"


def test_the_loudest_button_of_a_source_is_the_one_that_mends_it(tab, fixtures):
    fixtures.state = "some"
    page = tab.page
    troubles = [("program", "Change…"), ("credential", "Replace secret-1…"), ("address", "Try now")]
    for trouble, loud in troubles:
        broken = source(1) | {"trouble": trouble, "fix": f"How to mend {trouble}"}
        page.route("**/api/sources", lambda route, _, broken=broken: route.fulfill(json=[broken]))
        page.goto("about:blank")
        page.goto(f"{fixtures.url}/#/sources/source-1")
        page.wait_for_selector(f".detail >> text=How to mend {trouble}")
        assert page.locator(".detail .strong").all_inner_texts() == [loud]
    assert "Some failed before it broke" in page.inner_text(".detail")


def test_on_a_phone_every_number_of_health_has_its_word(tab, fixtures):
    fixtures.state = "some"
    page = tab.page
    page.goto(f"{fixtures.url}/#/health")
    page.wait_for_selector(".scale")
    assert page.locator(".scale").first.inner_text().split() == ["100", "50", "0"]
    ends = "[document.querySelector('.health .card'), document.querySelector('#main')].map((n) => n.getBoundingClientRect().right)"
    card, whole = page.evaluate(ends)
    assert whole - card < 60, "the page leaves an empty strip at its side"
    page.set_viewport_size(PHONE)
    words = "[...document.querySelectorAll('td.number')].map((n) => getComputedStyle(n, '::before').content)"
    heads = "calls|failed|refused|mean time|running|hears after"
    found = page.evaluate(words)
    assert found
    assert [one for one in found if not re.search(heads, one)] == []


def test_the_page_and_the_messages_write_out_the_same_letters(tab, fixtures):
    tab.page.goto(f"{fixtures.url}/#/now")
    ranges = (range(0xA0, 0x3000), range(0xA000, 0xD800), range(0xF900, 0x10000), range(0x1D400, 0x1D800))
    letters = [f"a{chr(code)}" for codes in ranges for code in codes]
    on_the_page = tab.page.evaluate(
        "(words) => import('/dom.js').then(({ visible }) => words.filter((word) => visible(word).length > 1))",
        letters,
    )
    unseen = [word for word in letters if not word.isprintable() or INVISIBLE.search(word)]
    in_messages = [word for word in letters if visible(word) != word]
    assert set(on_the_page) - set(unseen) == set(in_messages) - set(unseen)
    assert len(in_messages) > len(unseen)


HOSTILE_CALLS = {
    "options": ("light_set", {"--url": "ws://evil.example", "room": "hall"}),
    "a file": ("light_set", {"@/etc/hostname": "x"}),
    "standard input": ("light_set", {"-": "x"}),
    "names with signs": ("light_set", {"a=b": "c", "d:": "e", "f:=": 1}),
    "an option for a tool": ("--url=ws://evil.example", {"room": "hall"}),
    "quotes": ("light_set", {"room": 'it\'s $(id) `id` \\ "x"', "n": 1, "list": ["it's"]}),
    "keys of a terminal": ("light_set", {"room": "a\x1b[201~\n'id\\\x03\x7f\u009b1", "more": ["\u009b"]}),
}


@pytest.mark.parametrize("name", HOSTILE_CALLS)
def test_a_copied_command_makes_the_call_it_was_copied_from(tab, fixtures, name):
    tool, arguments = HOSTILE_CALLS[name]
    tab.page.goto(f"{fixtures.url}/#/now")
    copied = tab.page.evaluate(
        "(call) => import('/format.js').then(({ copies }) => copies(...call, 'http://127.0.0.1:1'))",
        [tool, arguments],
    )
    pasted = copied["CLI"]
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", pasted + copied["curl"])
    shown = """agent-gate() { printf '%s\\0' "$@"; [ "${@: -1}" != - ] || cat; }; """
    said = subprocess.run(["bash", "-c", shown + pasted], capture_output=True, check=True).stdout.decode()
    words = said.split("\0")
    tail = words.pop()
    context = request.command.make_context("request", words[1:], resilient_parsing=True)
    assert (context.params["tool"], context.params["url"]) == (tool, None)
    given = context.params["arguments"]
    assert (json.loads(tail) if given == ("-",) else parse_arguments(given)) == arguments


def test_a_session_that_ended_says_how_to_log_in_again(tab, fixtures):
    fixtures.state = "empty"
    page = tab.page
    page.goto(f"{fixtures.url}/#/now")
    page.wait_for_selector("text=Nothing is broken")
    fixtures.state = "logged out"
    page.evaluate("location.hash = '#/calls'")
    page.wait_for_selector("text=You are logged out")
    page.reload()
    page.wait_for_selector("text=agent-gate login")
    assert page.locator("#nav a").count() == 0


def test_every_page_is_reached_by_keys_and_the_keys_are_shown(tab, fixtures):
    fixtures.state = "some"
    page = tab.page
    page.goto(f"{fixtures.url}/#/now")
    for key, name in {"a": "approvals", "c": "calls", "t": "tools", "h": "health", "n": "now"}.items():
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_selector(f"#main.{name}")
    page.keyboard.press("g")
    page.keyboard.press("a")
    page.wait_for_selector("#main.approvals")
    page.keyboard.press("?")
    assert "approve for one hour" in page.inner_text("dialog")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.type") == "search"
