"""`python -m bench.phone`: from the push message to the recorded answer, on a page the size of a phone's.

An agent's call is asked, the gateway sends its message to a push service on this machine, and Debian's Chromium is handed
that message as its own push service would hand it over. Then a person's two taps: on the message, and on *Approve once*.
Counted is what the machine takes, from the message to the row that says the call was carried out; a person's reading is
not. Chromium opens a window only for a real tap, so for a page that is closed the address of the message is opened instead.
"""

import statistics
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright
from tests.approval.push_service import Subscription
from tests.gateway import Api
from tests.ui import chromium
from tests.ui.conftest import Tab
from tests.ui.test_ui_push import PUSH, worker_on
from tests.ui.ui_house import house
from tests.waiting import wait_until

TRIES = 7
READY = "[data-answer=once]:not([disabled])"


def asked(phone, service):
    """The messages that ask; others say how a question ended."""
    return [one for one in phone.messages(service) if not one["quiet"]]


def answer(gate, service, phone, tab, worker, number, *, closed):
    """Seconds from the message to the answer on record, and until the message was shown."""
    call = gate.call("light_set", {"room": f"room {number}"}, wait=0).json["call"]
    wait_until(lambda: len(asked(phone, service)) > number)
    message = asked(phone, service)[number]
    began = time.monotonic()
    worker.deliver(message)
    shown = time.monotonic() - began
    page = tab.page
    if closed:
        page = tab.page.context.new_page()
        page.goto(f"{gate.announced['admin']}{message['open']}", wait_until="commit")
    else:
        worker.tap()
    page.locator(f"h2:has-text('room {number}')").wait_for()
    page.click(READY)
    wait_until(lambda: gate.story(call)[-1] == "completed")
    took = time.monotonic() - began
    if closed:
        page.close()
    return took, shown


def main():
    with (
        tempfile.TemporaryDirectory() as name,
        Api() as service,
        house(Path(name), PUSH.format(url=service.url)) as (gate, _api),
        sync_playwright() as playwright,
    ):
        service.replies["*"] = (201, {}, b"")
        phone = Subscription(service.url, "phone")
        gate.admin.request("POST", "/api/devices", phone.body)
        browser = chromium.launch(playwright)
        tab = Tab(browser.new_context(viewport=chromium.PHONE).new_page())
        worker = worker_on(tab, gate)
        number = 0
        for title, closed in (("the page is open behind", False), ("the page is closed", True)):
            took = []
            for _ in range(TRIES):
                took.append(answer(gate, service, phone, tab, worker, number, closed=closed))
                number += 1
            whole, shown = zip(*took, strict=True)
            print(
                f"{title}: 2 taps, {statistics.median(whole):.2f} s to the recorded answer (slowest {max(whole):.2f} s), "
                f"of these {statistics.median(shown):.2f} s until the message shows"
            )
        browser.close()


if __name__ == "__main__":
    main()
