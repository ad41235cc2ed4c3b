"""The page behind a link in a message, in a real browser."""

import json
import threading

import pytest
from tests.gateway import Api
from tests.ui.chromium import PHONE
from tests.ui.ui_house import house
from tests.waiting import PATIENCE

HOOK = 'channels: [{{type: webhook, url: "{url}/hook"}}]'


class Receiver(Api):
    """Takes what is posted to it; `links` waits for those of the next question."""

    def __init__(self):
        super().__init__()
        self._asked, self._links = threading.Semaphore(0), []
        self.replies["*"] = self._take

    def _take(self, _handler, body):
        message = json.loads(body)
        if message["event"] == "asked":
            self._links.append(message["answer"])
            self._asked.release()

    def links(self):
        assert self._asked.acquire(timeout=PATIENCE), "no question was posted"
        return self._links.pop()


@pytest.fixture
def hooked(tmp_path):
    with Receiver() as receiver, house(tmp_path, HOOK.format(url=receiver.url)) as (gateway, api):
        yield gateway, api, receiver


def asked(gateway, receiver, **arguments):
    call = gateway.call("light_set", {"room": "hall", **arguments}, wait=0).json["call"]
    return call, receiver.links()


def test_enter_in_the_field_for_the_reason_answers_nothing(tab, hooked):
    gateway, api, receiver = hooked
    call, links = asked(gateway, receiver)
    page = tab.page
    for choice in ("choose", "once", "deny"):
        page.goto(links[choice])
        page.fill("[name=reason]", "no, not at night")
        page.press("[name=reason]", "Enter")
    assert gateway.story(call) == ["pending"]
    page.click("button:has-text('Deny')")
    page.wait_for_selector("h1:has-text('Denied by operator on webhook')")
    assert gateway.story(call) == ["pending", "denied"]
    assert api.requests == []


def test_a_link_that_says_yes_leads_to_a_page_that_can_say_no(tab, hooked):
    gateway, api, receiver = hooked
    call, links = asked(gateway, receiver, area_id="everything")
    page = tab.page
    page.set_viewport_size(PHONE)
    page.goto(links["hour"])
    assert 'area_id = "everything"' in page.inner_text("pre")
    names = [button.strip() for button in page.locator("button:visible").all_inner_texts()]
    assert names == ["Approve for one hour", "Deny"]
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    page.click("button:has-text('Deny')")
    page.wait_for_selector("h1:has-text('Denied')")
    assert gateway.story(call) == ["pending", "denied"]
    assert api.requests == []


def test_a_wrong_passphrase_behind_a_link_can_be_typed_again(tab, tmp_path):
    with Receiver() as receiver:
        more = f"{HOOK.format(url=receiver.url)}\napprovers: {{passphrase: open-sesame-all}}"
        with house(tmp_path, more) as (gateway, _api):
            call, links = asked(gateway, receiver)
            page = tab.page
            page.goto(links["once"])
            page.fill("[name=reason]", "for the guests")
            page.fill("[name=passphrase]", "wrong")
            page.click("button:has-text('Approve once')")
            page.wait_for_selector("[role=alert]:has-text('Not answered yet')")
            assert page.input_value("[name=reason]") == "for the guests"
            page.fill("[name=passphrase]", "open-sesame-all")
            page.click("button:has-text('Approve once')")
            page.wait_for_selector("h1:has-text('Approved once by operator on webhook')")
            assert gateway.request("GET", f"/api/calls/{call}?wait=10").json["status"] == "executed"
