"""What axe finds wrong with any page, and with whatever opens over one, at both widths and in both themes."""

import pytest
from tests.conformance.node_packages import installed
from tests.ui.chromium import DESKTOP, PHONE
from tests.ui.test_ui_pages import PAGES

from agent_gate.net.http import json_response

RUN = """([place, rules]) => axe.run(place, { resultTypes: ["violations"], ...rules })
  .then((found) => found.violations.map((one) => [one.id, one.nodes[0].html]))"""
SETTLED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
RULES = {"light": {}, "dark": {"runOnly": ["color-contrast", "link-in-text-block"]}}
"""All of them, and those that look at colours: nothing else differs between the themes."""
FAULTS = {
    "light": ("label", "document.querySelector('main').append(document.createElement('input'))"),
    "dark": ("color-contrast", "document.querySelector('h1').style.color = '#111'"),
}
"""What each of them finds, and how it is brought about."""


DIFF = {
    "file": "/srv/config.yaml",
    "diff": "--- a\n+++ b\n-enabled: true\n+enabled: false\n",
    "digest": "0" * 16,
}
QUESTION = f"approvals/{3:032x}"


def press(*keys):
    return lambda page: [page.keyboard.press(key) for key in keys]


def click(*names):
    return lambda page: [
        page.locator(f"main button:has-text('{name}'):visible").first.click() for name in names
    ]


def choose_all(page):
    page.get_by_label("Choose all").check()
    click("Approve once")(page)


OVER = {
    "the keys": ("now", press("?")),
    "the palette": ("now", press("Control+k")),
    "an answer to several": ("approvals", choose_all),
    "a passphrase": (QUESTION, click("Approve once")),
    "a rule": (QUESTION, press("e")),
    "a new source": ("sources", click("Add a source")),
    "a change of a file": ("sources/source-1", click("Pause…")),
    "what cannot be undone": ("sources/source-1", click("Disconnect")),
    "a new secret": ("secrets", click("Add a secret")),
}
"""What opens over a page, the page, and how it is opened."""


def guard(request):
    """Differences to show, and a passphrase to ask for."""
    if request.method == "POST":
        return json_response(200, DIFF | {"needs_trust": True})
    known = {"person": "anna", "channel": "page", "passphrase": True}
    return json_response(200, known) if request.path == "/api/me" else None


class Axe:
    """A page of some size; what is shown there is looked at in each theme, without loading it again."""

    def __init__(self, browser, size):
        self.page = browser.new_context(viewport=size, reduced_motion="reduce").new_page()
        self.wrong = {}
        self._script = (installed("axe") / "axe-core" / "axe.min.js").read_text()

    def find_faults(self, scheme, place="html"):
        self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        self.page.evaluate(SETTLED)
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(self._script)
        return self.page.evaluate(RUN, [place, RULES[scheme]])

    def look(self, name, place="html"):
        for scheme in RULES:
            if found := self.find_faults(scheme, place):
                self.wrong[name, scheme] = found


@pytest.fixture(params=[DESKTOP, PHONE], ids=["wide", "phone"])
def axe(browser, request):
    made = Axe(browser, request.param)
    yield made
    made.page.context.close()


def test_axe_finds_nothing_wrong_with_any_page(axe, fixtures):
    page = axe.page
    for name, (_, something) in PAGES.items():
        page.goto(f"{fixtures.url}/#/{name}")
        if name != "health":
            page.wait_for_selector(f"main.{name} >> text={something}", state="attached")
        axe.look(name)
    for name in ("login", "gallery"):
        page.goto(f"{fixtures.url}/{name}")
        page.wait_for_selector("h1")
        axe.look(name)
    assert axe.wrong == {}
    for scheme, (fault, made) in FAULTS.items():
        page.evaluate(made)
        assert fault in [name for name, _ in axe.find_faults(scheme)], "axe itself does not look"


def test_axe_finds_nothing_wrong_with_what_opens_over_a_page(axe, fixtures):
    page, fixtures.guard = axe.page, guard
    try:
        for name, (place, opened) in OVER.items():
            page.goto("about:blank")
            page.goto(f"{fixtures.url}/#/{place}")
            page.wait_for_selector("main :is(.row, .need, .detail h2):visible")
            page.wait_for_selector("main button:disabled", state="detached")
            opened(page)
            page.wait_for_selector("dialog[open] :is(button, input)")
            axe.look(name, "dialog[open]")
    finally:
        fixtures.guard = lambda _request: None
    assert axe.wrong == {}
