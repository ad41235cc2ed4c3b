"""What axe finds wrong with any page, at both widths and in both themes."""

import pytest
from tests.conformance.node_packages import installed
from tests.ui.chromium import DESKTOP, PHONE
from tests.ui.test_ui_pages import PAGES

RUN = """(rules) => axe.run(document, { resultTypes: ["violations"], ...rules })
  .then((found) => found.violations.map((one) => [one.id, one.nodes[0].html]))"""
SETTLED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
RULES = {"light": {}, "dark": {"runOnly": ["color-contrast", "link-in-text-block"]}}
"""All of them, and those that look at colours: nothing else differs between the themes."""
FAULTS = {
    "light": ("label", "document.querySelector('main').append(document.createElement('input'))"),
    "dark": ("color-contrast", "document.querySelector('h1').style.color = '#111'"),
}
"""What each of them finds, and how it is brought about."""


def find_faults(page, axe, rules):
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe)
    return page.evaluate(RUN, rules)


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
