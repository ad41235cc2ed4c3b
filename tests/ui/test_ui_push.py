"""The page as an app on a phone: from a push message to the answer, in a real browser."""

import json

import pytest
from tests.approval.push_service import Subscription
from tests.gateway import Api
from tests.ui import chromium
from tests.ui.chromium import PHONE
from tests.ui.ui_house import house, opened
from tests.waiting import wait_until

PUSH = 'channels: [{{type: push, services: ["{url}"]}}]'
TAP = """() => self.registration.getNotifications().then(([shown]) =>
  self.dispatchEvent(new NotificationEvent("notificationclick", { notification: shown })))"""
ACTIVATED = """() => navigator.serviceWorker.ready.then(({ active }) => new Promise((done) => {
  const look = () => active.state === "activated" && done();
  active.addEventListener("statechange", look);
  look();
}))"""
"""A message to a worker that is still on its way to that state is lost."""
SHOWN = """async (tag) => {
  const worker = await navigator.serviceWorker.ready;
  for (const end = Date.now() + 3000; Date.now() < end; await new Promise((go) => setTimeout(go, 20))) {
    const shown = await worker.getNotifications({ tag });
    if (shown.length) return shown.map(({ title, body, tag }) => ({ title, body, tag }));
  }
}"""
TRIES = 10


@pytest.fixture(scope="module")
def browser():
    """The whole browser: a headless shell shows no messages."""
    with chromium.started(chromium.find()) as browser:
        yield browser


@pytest.fixture(scope="module")
def pushed(tmp_path_factory):
    with (
        Api() as service,
        house(tmp_path_factory.mktemp("push"), PUSH.format(url=service.url)) as (gate, api),
    ):
        service.replies["*"] = (201, {}, b"")
        yield gate, api, service


class Worker:
    """The page's service worker, and what the browser would hand to it."""

    def __init__(self, page, origin):
        self.page, self.origin = page, origin
        page.evaluate(
            "import(new URL('parts/device.js', document.scripts[0].src)).then((device) => device.register()).then(() => {})"
        )
        page.evaluate(ACTIVATED)
        self._line = page.context.new_cdp_session(page)
        self._known = []
        self._line.on("ServiceWorker.workerRegistrationUpdated", self._learn)
        self._line.send("ServiceWorker.enable")

    def _learn(self, event):
        self._known += [one["registrationId"] for one in event["registrations"]]

    def deliver(self, message):
        """As the browser does when its push service brings a message; what is then shown.

        Chromium drops one in some twenty that come soon after the worker's start, and tells nobody: it is brought again.
        """
        while not self._known:
            self.page.wait_for_function("true")
        given = {
            "origin": self.origin,
            "registrationId": self._known[-1],
            "data": json.dumps(message),
        }
        for _ in range(TRIES):
            self._line.send("ServiceWorker.deliverPushMessage", given)
            if shown := self.page.evaluate(SHOWN, message["tag"]):
                return shown
        raise AssertionError(f"The message was brought {TRIES} times and is not shown")

    def tap(self):
        self.page.context.service_workers[0].evaluate(TAP)


def worker_on(tab, gate, name="now"):
    origin = gate.announced["admin"]
    tab.page.context.grant_permissions(["notifications"], origin=origin)
    tab.page.set_viewport_size(PHONE)
    return Worker(opened(tab, gate, name), origin)


def test_a_push_message_leads_to_its_question_which_is_answered_there(pushed, tab):
    gate, api, service = pushed
    phone = Subscription(service.url, "phone")
    gate.admin.request("POST", "/api/devices", phone.body)
    worker = worker_on(tab, gate)
    call = gate.call("light_set", {"room": "hall"}, wait=0).json["call"]
    wait_until(lambda: phone.messages(service))
    [message] = worker.deliver(phone.messages(service)[0])
    assert message["title"] == "pi asks: Set the light in hall?"
    worker.tap()
    tab.page.wait_for_url(f"**/#/approvals/{message['tag']}")
    tab.page.get_by_role("button", name="Approve").first.click()
    wait_until(lambda: gate.story(call)[-1] == "completed")
    assert len(api.requests) == 1


def test_a_message_opens_nothing_but_a_place_on_the_page(pushed, tab):
    gate, _, _ = pushed
    worker = worker_on(tab, gate, "health")
    worker.deliver({"title": "x", "body": "", "tag": "t", "open": "https://evil.example/", "quiet": False})
    worker.tap()
    tab.page.wait_for_url("**/#/now")
    assert [page.url for page in tab.page.context.pages] == [tab.page.url]


def test_the_page_offers_to_tell_the_device_and_lists_the_ones_that_are_told(pushed, tab):
    gate, _, service = pushed
    gate.admin.request("POST", "/api/devices", Subscription(service.url, "a tablet").body)
    page = opened(tab, gate, "you")
    section = page.locator(".devices")
    section.get_by_text("Tell me on this device").wait_for()
    row = section.locator("tr", has_text="a tablet")
    outer, inner = section.bounding_box(), row.bounding_box()
    assert outer["x"] <= inner["x"]
    assert outer["y"] < inner["y"], "it lies over the head of the page"
    row.get_by_text("Tell it no more").click()
    row.wait_for(state="detached")


def test_the_page_can_be_installed_as_an_app(pushed, tab):
    gate, _, _ = pushed
    page = opened(tab, gate)
    line = page.context.new_cdp_session(page)
    manifest = line.send("Page.getAppManifest")
    assert manifest["errors"] == []
    assert json.loads(manifest["data"])["start_url"] == "/#/now"
    faults = line.send("Page.getInstallabilityErrors")["installabilityErrors"]
    assert {fault["errorId"] for fault in faults} <= {
        "in-incognito"
    }  # which every fresh profile of a test is
