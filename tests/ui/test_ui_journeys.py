"""What people come to the page for, from beginning to end, in a real browser in front of a real gateway."""

import subprocess

import pytest
from playwright.sync_api import expect
from tests.gateway import TOKEN, Api, in_front_of
from tests.ui.chromium import PHONE
from tests.ui.ui_house import CONFIG, PERMISSIONS, TOOLS, calling, house, opened
from tests.waiting import wait_until

pytestmark = pytest.mark.parametrize("browser", ["chromium", "firefox"], indirect=True, scope="module")


@pytest.fixture(scope="module")
def place(browser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("journeys")
    more = "results: {keep: all}\nservers:\n  gone: {command: /nonexistent/server}\n"
    rules = PERMISSIONS + '  - {pattern: "spare__*", action: allow}\n'
    with Api() as api, in_front_of(api, folder, CONFIG, TOOLS, rules, more=more) as gateway:
        yield gateway, folder


def test_a_question_that_comes_while_another_page_is_open_is_denied_with_a_reason_and_found_again(tab, place):
    gateway, _ = place
    page = opened(tab, gateway, "health")
    call = calling(gateway, "light_set", {"room": "vault", "note": "at night"}, wait=30)
    expect(page.locator("#nav .badge")).to_have_text("1")
    page.click("#nav a:has-text('Approvals')")
    page.wait_for_selector("h2:has-text('Set the light in vault?')")
    assert "first time" in page.inner_text(".detail .chips")
    assert "Set a light" in page.inner_text(".detail .described")
    page.fill("[aria-label='Reason for a denial']", "not at night")
    page.click("[data-answer=deny]:not([disabled])")
    assert "not at night" in call.reply().json["error"]["message"]
    page.click("[data-tab=history]")
    page.click(".approvals .row >> text=light_set(vault)")
    page.wait_for_selector(".detail >> text=not at night")


def test_a_broken_source_is_told_with_its_cause_and_what_mends_it(tab, place):
    gateway, _ = place
    page = opened(tab, gateway, "now")
    need = page.locator(".need.fail:has-text('gone does not run')")
    need.wait_for()
    assert "Install the program, or correct its command" in need.inner_text()
    assert "Install the program" in need.inner_text()
    assert "1 thing is broken" in page.inner_text(".glance")
    need.get_by_role("link", name="Details").click()
    page.wait_for_selector(".detail h2 >> text=gone")
    page.wait_for_selector(".detail dl.facts:has-text('/nonexistent/server')")


def test_a_source_that_broke_is_understood_and_mended_on_the_page(tab, place, tmp_path):
    gateway, _ = place
    with house(tmp_path) as (other, _api):
        auth = {"type": "bearer", "token": "vault:spare-key"}
        gateway.admin.request("PUT", "/api/secrets/spare-key", {"value": TOKEN})
        add_entry(gateway, "spare", {"url": f"{other.url}/mcp", "auth": auth})
        wait_until(lambda: gateway.call("spare__light_get", {"room": "cellar"}).status == 200)
        gateway.admin.request("PUT", "/api/secrets/spare-key", {"value": "a-token-that-was-revoked"})
        wait_until(lambda: gateway.call("spare__light_get", {"room": "cellar"}).status == 503)

        page = opened(tab, gateway, "now")
        need = page.locator(".need.fail:has-text('spare')")
        need.wait_for()
        assert "does not take its credential" in need.inner_text()
        assert "Replace spare-key" in need.inner_text()
        need.get_by_role("link", name="Replace it").click()
        page.wait_for_selector(".detail h2:has-text('spare')")
        page.wait_for_selector(".detail dl.facts:has-text('broken'):has-text('since')")
        page.wait_for_selector(".detail tr:has-text('pi'):has-text('spare:light_get')")
        page.wait_for_selector(".detail [aria-label='Last lines']:has-text('refuses the gateway')")
        page.click(".detail button:has-text('Replace spare-key…')")
        page.get_by_label("Value").fill(TOKEN)
        page.click("dialog button:has-text('Keep it')")
        page.wait_for_selector(".detail h2:has-text('ready')")
        assert gateway.call("spare__light_get", {"room": "cellar"}).status == 200
        assert TOKEN not in page.inner_text("body")
        add_entry(gateway, "spare", None)


def add_entry(gateway, key, entry):
    """Write an entry as the terminal does, or take it away."""
    path, change = f"/api/entries/servers/{key}", {"set": entry} if entry else {"remove": True}
    shown = gateway.admin.request("POST", path, change)
    gateway.admin.request("POST", path, {**change, "apply": True, "digest": shown["digest"]})


def test_what_an_agent_did_and_what_it_got_back_is_found_by_filters_that_can_be_pasted(tab, place):
    gateway, _ = place
    for room in ("attic", "porch"):
        gateway.call("light_get", {"room": room})
    page = opened(tab, gateway, "calls")
    page.select_option("[aria-label=Agent]", "pi")
    page.select_option("[aria-label=Time]", "today")
    page.fill("[aria-label=Words]", "attic")
    expect(page.locator(".calls .row")).to_have_count(1)
    page.click(".calls .row")
    page.wait_for_selector("h3:has-text('What it got back')")
    assert "/light/attic" in page.inner_text(".detail")
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector(".detail pre:has-text('/light/attic')")
    assert page.input_value("[aria-label=Words]") == "attic"


def test_an_answer_on_the_first_page_counts(tab, place):
    gateway, _ = place
    page = opened(tab, gateway, "now")
    call = calling(gateway, "light_set", {"room": "study"}, wait=30)
    need = page.locator(".need.wait:has-text('Set the light in study?')")
    need.get_by_role("button", name="Approve once").click()
    assert call.reply().json["status"] == "executed"
    need.wait_for(state="detached")


def test_on_a_phone_the_address_behind_a_push_message_shows_the_question_and_its_answer_in_one_view(
    tab, place
):
    gateway, _ = place
    page = opened(tab, gateway, "now")
    page.set_viewport_size(PHONE)
    call = calling(
        gateway, "light_set", {"room": "cellar", "note": "somebody is at the door. " * 40}, wait=60
    )
    [asked] = wait_until(lambda: gateway.admin.get("/api/approvals"))
    page.goto("about:blank")
    page.goto(f"{gateway.announced['admin']}/#/approvals/{asked['id']}")
    page.wait_for_selector(".detail h2:has-text('Set the light in cellar?')")
    for name in ("once", "deny"):
        box = page.locator(f"[data-answer={name}]").bounding_box()
        assert 0 <= box["y"] <= PHONE["height"] - box["height"], f"{name} has to be scrolled to"
    page.click("[data-answer=once]:not([disabled])")
    assert call.reply(60).json["status"] == "executed"


def test_a_newcomer_reads_off_the_page_what_waits_what_is_broken_why_and_how_to_stop_it(tab, place):
    """The five things a person comes for, each with the presses it takes from the first page."""
    gateway, _ = place
    gateway.call("light_get", {"room": "library"})
    call = calling(gateway, "light_set", {"room": "library"}, wait=60)
    page = opened(tab, gateway, "now")
    page.wait_for_selector(".glance >> text=1 question waits")
    page.wait_for_selector(".glance >> text=1 thing is broken")
    answer, fix = (page.locator(f"main > section:has(h2:has-text('{name}'))") for name in ("Answer", "Fix"))
    assert "Set the light in library?" in answer.inner_text()
    assert "gone does not run" in fix.inner_text()
    assert fix.bounding_box()["y"] < 400, "what is broken is seen without scrolling"

    answer.get_by_role("link", name="Details").click()
    page.wait_for_selector(".detail:has-text('Why a person is asked') >> text=The rule ask *")
    page.click("text=Do not ask again")
    stops = page.locator(".answers .choice").all_inner_texts()
    offered = ("Approve for one hour", "Approve always", "Make a rule from this…")
    assert [words.startswith(one) for words, one in zip(stops, offered, strict=True)] == [True] * 3, stops
    page.click("[data-answer=deny]:not([disabled])")
    assert call.reply(60).status == 403

    page.click("#nav a:has-text('Calls')")
    page.click(".calls .row:has-text('light_get'):has-text('library')")
    page.wait_for_selector(".detail h2:has-text('done')")
    told = page.inner_text(".detail")
    assert told.index("What it got back") < told.index("What was decided")
    assert "pi over rest" in told


def test_the_palette_leads_to_a_tool_by_a_few_letters(tab, place):
    gateway, _ = place
    page = opened(tab, gateway, "now")
    page.keyboard.press("Control+k")
    page.fill("dialog.palette input", "lght_g")
    page.wait_for_selector("dialog.palette li:has-text('light_get')[aria-selected=true]")
    page.keyboard.press("Enter")
    page.wait_for_url("**/#/tools/light_get")
    page.wait_for_selector(".detail >> text=Read a light")
    assert page.locator("dialog").count() == 0


def git(folder, *words):
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    return subprocess.run(
        ["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


def test_a_server_with_a_secret_is_added_tried_and_ruled_on_the_page_as_a_clean_difference(
    tab, place, tmp_path
):
    gateway, folder = place
    git(folder, "init", "-q")
    git(folder, "add", "config.yaml", "permissions.yaml")
    git(folder, "commit", "-qm", "before")
    with house(tmp_path) as (other, _api):
        page = opened(tab, gateway, "sources")
        page.click("button:has-text('Add a source')")
        page.click("dialog button:has-text('See the change')")
        page.wait_for_selector("dialog .wrong >> text=Give it an address or a command")
        page.get_by_label("Name").fill("lamps")
        page.get_by_label("Address").fill(f"{other.url}/mcp")
        page.get_by_label("Token, kept in the vault").fill(TOKEN)
        page.click("dialog button:has-text('See the change')")
        page.wait_for_selector("dialog .plus >> text=vault:lamps")
        page.click("dialog button:has-text('Write it')")
        page.click(".sources .row:has-text('lamps'):has-text('ready')")
        page.goto(f"{gateway.announced['admin']}/#/tools/lamps__light_get")
        page.fill("[aria-label='Arguments as JSON']", '{"room": "attic"}')
        page.click("button:has-text('Run')")
        page.click("text=Look and answer")
        page.click("text=Do not ask again")
        page.click("button:has-text('Make a rule from this')")
        page.click("dialog button:has-text('Write it')")
        page.wait_for_selector("text=permissions.yaml was changed")
        assert gateway.call("lamps__light_get", {"room": "attic"}, wait=5).status == 200
    changed = [line for line in git(folder, "diff", "-U0").splitlines() if line[:1] in "+-"]
    written = [line for line in changed if not line.startswith(("+++", "---"))]
    assert len(written) == 2
    assert all(line.startswith("+") for line in written)
    assert TOKEN not in "\n".join(written)
