"""What the page asks before it changes something, where it says what is wrong, and what becomes of a yes."""

import json

import pytest
from playwright.sync_api import expect
from tests.ui.ui_house import house, opened

PASSPHRASE = "approvers: {passphrase: open-sesame-all}\n"
EYES = """\
people:
  anna: {login: anna}
  ben: {login: ben}
"""
TWO = 'rules: [{pattern: "*", action: ask, approvers: {count: 2}}]\n'


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guarded")
    with house(folder, PASSPHRASE) as (gateway, _api):
        yield gateway, folder / "config.yaml"


def form(tab, gateway):
    page = opened(tab, gateway, "sources")
    page.click("button:has-text('Add a source')")
    return page


def test_a_program_is_added_with_the_passphrase_alone(tab, guarded):
    gateway, file = guarded
    page = form(tab, gateway)
    page.get_by_label("Name").fill("clock")
    page.get_by_label("Command").fill("/nonexistent/clock --utc")
    page.click("dialog button:has-text('See the change')")
    page.wait_for_selector("dialog >> text=Your passphrase is asked for.")
    for phrase, becomes in (
        ("wrong", "text=That is not the approver's passphrase"),
        ("open-sesame-all", "text=counts from now on"),
    ):
        assert "/nonexistent/clock" not in file.read_text()
        page.click("dialog button:has-text('Write it')")
        page.fill("dialog input[type=password]:visible", phrase)
        page.keyboard.press("Enter")
        page.wait_for_selector(becomes)
    assert "/nonexistent/clock" in file.read_text()
    page.wait_for_selector(".sources .row:has-text('clock')")


def test_a_program_without_a_passphrase_waits_and_the_page_says_for_what(tab, home):
    gateway, _api = home
    page = form(tab, gateway)
    page.get_by_label("Name").fill("clock")
    page.get_by_label("Command").fill("/nonexistent/clock")
    page.click("dialog button:has-text('See the change')")
    page.click("dialog button:has-text('Write it')")
    page.wait_for_selector("dialog pre:has-text('entries accept')")
    [held] = gateway.admin.get("/api/entries/held")
    expect(page.locator("dialog pre")).to_have_text(f"agent-gate entries accept {held['id']}")
    page.click("dialog button:has-text('Close')")
    page.wait_for_selector("dialog", state="detached")


def test_what_is_wrong_is_said_at_its_field(tab, home):
    gateway, _api = home
    page = form(tab, gateway)
    page.get_by_label("Name").fill("two words")
    page.click("dialog button:has-text('See the change')")
    page.wait_for_selector("label:has-text('Name') .wrong >> text=letters, digits")
    page.wait_for_selector("label:has-text('Address') .wrong >> text=Give it an address or a command")
    page.click("dialog button:has-text('Not now')")
    page.goto(f"{gateway.announced['admin']}/#/agents")
    page.click("button:has-text('New agent')")
    page.fill("[placeholder='such as kitchen-pi']", "pi")
    page.click("button:has-text('Make the agent')")
    page.wait_for_selector("label:has-text('Name') .wrong >> text=There is an agent named pi already")
    expect(page.locator("[placeholder='such as kitchen-pi']")).to_be_focused()
    expect(page.locator("[placeholder='such as kitchen-pi']")).to_have_attribute("aria-invalid", "true")


def test_a_dialog_is_left_by_the_escape_key_and_changes_nothing(tab, home):
    gateway, _api = home
    page = opened(tab, gateway, "agents")
    page.click("button:has-text('New agent')")
    page.fill("[placeholder='such as kitchen-pi']", "brief")
    page.click("button:has-text('Make the agent')")
    page.wait_for_selector(".secret code")
    page.click("button:has-text('Revoke its token')")
    dialog = page.get_by_role("dialog", name="Revoke the token of brief?")
    expect(dialog.get_by_role("button", name="Not now")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    assert "brief" in [agent["name"] for agent in gateway.admin.get("/api/agents")]
    page.click("button:has-text('Revoke its token')")
    dialog.get_by_role("button", name="Revoke", exact=True).click()
    page.wait_for_selector(".agents .row >> text=brief", state="hidden")


def test_a_suggestion_is_shown_as_a_difference_and_counts_once_it_is_written(tab, tmp_path):
    with house(tmp_path) as (gateway, _api):
        for _ in range(6):
            gateway.call("light_set", {"room": "often"}, wait=0)
            assert gateway.answer("approve")["became"]["state"] == "completed"
        page = opened(tab, gateway, "policy")
        page.click(".card:has-text('light_set(often)') >> text=Apply…")
        page.wait_for_selector(".card .plus >> text=light_set(often)")
        assert "light_set" not in (tmp_path / "permissions.yaml").read_text()
        page.click(".card button:has-text('Write it')")
        page.wait_for_selector("[aria-label=Rules] .row >> text=light_set(often)")
        assert gateway.call("light_set", {"room": "often"}, wait=5).status == 200
        expect(page.locator(".card:has-text('light_set(often)')")).to_have_count(0)


def as_(tab, gateway, login):
    link = gateway.admin.request("POST", "/api/logins", {"login": login})["url"]
    page = tab.log_in(link).page
    page.goto(f"{gateway.announced['admin']}/#/approvals")
    page.wait_for_selector(".detail h2:has-text('Set the light in hall?')")
    return page


def test_where_two_have_to_say_yes_each_sees_who_did(tab, tmp_path):
    with house(tmp_path, EYES, TWO) as (gateway, api):
        call = gateway.call("light_set", {"room": "hall"}, wait=0).json["call"]
        page = as_(tab, gateway, "anna")
        assert "nobody (0 of 2)" in page.inner_text(".detail dl.facts")
        page.click("[data-answer=once]:not([disabled])")
        page.wait_for_selector(".detail .answers >> text=You said yes. 1 other person has to say so too.")
        assert page.locator("[data-answer=once]").count() == 0
        assert api.requests == []
        page = as_(tab, gateway, "ben")
        assert "anna (1 of 2)" in page.inner_text(".detail dl.facts")
        page.click("[data-answer=once]:not([disabled])")
        page.wait_for_selector("text=No question waits for you")
        assert json.loads(gateway.request("GET", f"/api/calls/{call}?wait=10").body)["status"] == "executed"
