"""Every page in a second real browser: what one engine forgives, the other may not."""

import pytest
from tests.ui.chromium import PHONE
from tests.ui.test_ui_pages import PAGES

pytestmark = pytest.mark.parametrize("browser", ["firefox"], indirect=True, scope="module")
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def test_firefox_draws_every_page_without_a_fault_and_without_reaching_elsewhere(tab, fixtures):
    fixtures.state = "some"
    page = tab.page
    for name, (_, something) in PAGES.items():
        page.goto(f"{fixtures.url}/#/{name}")
        page.wait_for_selector(f"main >> text={'1,110' if name == 'health' else something}")
        assert tab.faults == [], name
    page.set_viewport_size(PHONE)
    for name in PAGES:
        page.goto(f"{fixtures.url}/#/{name}")
        page.wait_for_selector(f"main.{name} *")
        assert page.evaluate(WIDER) <= 0, name


def test_firefox_draws_every_part_in_every_state(tab, fixtures):
    page = tab.page
    page.goto(f"{fixtures.url}/gallery")
    page.wait_for_selector("body[data-ready]")
    assert page.locator("[data-part]").count() > 10


def test_firefox_keeps_the_pages_content_policy(browser, fixtures):
    """The driver's exception is for evaluated text alone: what the page must not load is still refused."""
    fixtures.state = "some"
    page = browser.new_page()
    page.goto(f"{fixtures.url}/#/now")
    page.wait_for_selector("#nav a")
    refused = page.evaluate(
        """new Promise((done) => {
          addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective), { once: true });
          new Image().src = "http://127.0.0.1:9/x.png";
        })"""
    )
    page.close()
    assert refused == "img-src"
