"""The screenshots of the docs: `make screens` draws every page anew, from the data of the page's tests."""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright
from tests.ui import chromium
from tests.ui.test_ui_pages import PAGES
from tests.ui.ui_fixtures import Fixtures

OPENED = {"approvals": f"approvals/{0:032x}", "calls": f"calls/{1:032x}", "sources": "sources/source-1"}


def draw(folder: Path) -> None:
    server = Fixtures().start()
    server.state = "some"
    with sync_playwright() as playwright:
        browser = chromium.launch(playwright)
        page = browser.new_context(viewport=chromium.DESKTOP).new_page()
        for name in PAGES:
            page.goto(f"{server.url}/#/{OPENED.get(name, name)}")
            page.wait_for_selector(f"main.{name}")
            page.wait_for_selector("main .row, main .card, main .need, main .tile")
            page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            page.screenshot(path=folder / f"{name}.png")
        browser.close()
    server.stop()


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
