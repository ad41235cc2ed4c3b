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


def find_faults(page, axe, rules, place="html"):
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe)
    return page.evaluate(RUN, [place, rules])


@pytest.mark.parametrize("scheme", RULES)
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["wide", "phone"])
def test_axe_finds_nothing_wrong_with_any_page(browser, fixtures, size, scheme):
    axe = (installed("axe") / "axe-core" / "axe.min.js").read_text()
    context = browser.new_context(viewport=size, color_scheme=scheme)
    page = context.new_page()
    found = {}
    for name, (_, something) in PAGES.items():
        page.goto(f"{fixtures.url}/#/{name}")
        if name != "health":
            page.wait_for_selector(f"main.{name} >> text={something}", state="attached")
        page.evaluate(SETTLED)
        found[name] = find_faults(page, axe, RULES[scheme])
    for name in ("login", "gallery"):
        page.goto(f"{fixtures.url}/{name}")
        page.wait_for_selector("h1")
        found[name] = find_faults(page, axe, RULES[scheme])
    fault, made = FAULTS[scheme]
    page.evaluate(made)
    assert fault in [name for name, _ in find_faults(page, axe, RULES[scheme])], "axe itself does not look"
    context.close()
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize("scheme", RULES)
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["wide", "phone"])
def test_axe_finds_nothing_wrong_with_what_opens_over_a_page(browser, fixtures, size, scheme):
    axe = (installed("axe") / "axe-core" / "axe.min.js").read_text()
    context = browser.new_context(viewport=size, color_scheme=scheme)
    page = context.new_page()
    fixtures.guard, found = guard, {}
    try:
        for name, (place, opened) in OVER.items():
            page.goto("about:blank")
            page.goto(f"{fixtures.url}/#/{place}")
            page.wait_for_selector("main :is(.row, .need, .detail h2):visible")
            page.wait_for_selector("main button:disabled", state="detached")
            opened(page)
            page.wait_for_selector("dialog[open] :is(button, input)")
            page.evaluate(SETTLED)
            found[name] = find_faults(page, axe, RULES[scheme], "dialog[open]")
    finally:
        fixtures.guard = lambda _request: None
    context.close()
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
