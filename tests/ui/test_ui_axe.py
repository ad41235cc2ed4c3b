"""What axe finds wrong with any page, at both widths and in both themes."""

import pytest
from tests.conformance.node_packages import installed
from tests.ui.chromium import DESKTOP, PHONE
from tests.ui.test_ui_pages import PAGES

RUN = "axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations.map((one) => [one.id, one.nodes[0].html]))"
SETTLED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def faults(page, axe):
    page.evaluate(axe)
    return page.evaluate(RUN)


@pytest.mark.parametrize("scheme", ["light", "dark"])
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
        found[name] = faults(page, axe)
    for name in ("login", "gallery"):
        page.goto(f"{fixtures.url}/{name}")
        page.wait_for_selector("h1")
        found[name] = faults(page, axe)
    page.evaluate("document.querySelector('main').append(document.createElement('input'))")
    assert "label" in [name for name, _ in faults(page, axe)], "axe itself does not look"
    context.close()
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
