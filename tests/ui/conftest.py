import re

import pytest
from playwright.sync_api import expect
from tests.ui import chromium, firefox
from tests.ui.ui_fixtures import Fixtures
from tests.ui.ui_house import house
from tests.waiting import PATIENCE

BROWSERS = {"chromium": chromium, "firefox": firefox}
MILLISECONDS = PATIENCE * 1000
expect.set_options(timeout=MILLISECONDS)


@pytest.fixture(scope="module")
def browser(request):
    """Started per file: while it runs, its event loop is in the way of tests that run their own."""
    with BROWSERS[getattr(request, "param", "chromium")].started() as browser:
        yield browser


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with house(tmp_path_factory.mktemp("house")) as home:
        yield home


@pytest.fixture
def home(shared):
    """The shared gateway with nothing waiting and nothing called."""
    gateway, api = shared
    for approval in gateway.admin.get("/api/approvals"):
        gateway.admin.request("POST", f"/api/approvals/{approval['id']}", {"verdict": "deny"})
    api.reset()
    return gateway, api


@pytest.fixture(scope="module")
def fixtures():
    """A gateway made of data: the same on every run, with some of everything."""
    server = Fixtures().start()
    server.state = "some"
    yield server
    server.stop()


class Tab:
    """A page that remembers what went wrong in it and what it tried to reach."""

    def __init__(self, page):
        self.page, self.faults, self.reached = page, [], []
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", self.heard)
        page.on("request", lambda request: self.reached.append(request.url))

    def heard(self, message):
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.faults.append(message.text)

    def enter(self, link):
        """What following a login link comes to, without drawing the page that follows it."""
        origin, _, secret = link.partition("/login#")
        told = self.page.context.request.post(
            f"{origin}/api/session", data={"link": secret}, headers={"Origin": origin}
        )
        keep = f"localStorage.setItem('agent-gate-key', '{told.json()['key']}')"
        self.page.add_init_script(f"if (location.origin === '{origin}') {keep}")
        return origin

    def log_in(self, link):
        self.page.goto(link)
        self.page.wait_for_url(re.compile(r":\d+/(#.*)?$"))
        self.page.wait_for_selector("#nav a")
        return self


@pytest.fixture
def tab(browser):
    """A fresh browser profile with one page; nothing in it may fail, and nothing may be fetched from elsewhere."""
    context = browser.new_context(viewport=chromium.DESKTOP)
    context.set_default_timeout(MILLISECONDS)
    tab = Tab(context.new_page())
    yield tab
    context.close()
    assert tab.faults == []
    assert {
        url for url in tab.reached if not url.startswith(("http://127.0.0.1:", "blob:", "data:"))
    } == set()
