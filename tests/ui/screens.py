"""The screenshots of the docs: `make screens` draws every page anew, from a busy house that is made up.

With `--all` every page is drawn at both widths and in both themes, of a busy house and of an empty one: what a person
looks at one by one before the page is called good.
"""

import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright
from tests.ui import chromium
from tests.ui.test_ui_pages import PAGES
from tests.ui.ui_fixtures import Fixtures
from tests.ui.ui_scene import CALLS, QUESTIONS, busy

OPENED = {
    "approvals": QUESTIONS[0]["id"],
    "calls": CALLS[3]["call"],
    "sources": "mail",
    "tools": "files__write_file",
}
MORE = {
    "calls-table": "calls",
    "call-asked": f"calls/{CALLS[6]['call']}",
    "question-long": f"approvals/{QUESTIONS[2]['id']}",
    "question-two": f"approvals/{QUESTIONS[1]['id']}",
    "approvals-list": "approvals",
    "sources-list": "sources",
    "changed": "sources/files",
}
SIZES = {"wide": chromium.DESKTOP, "phone": chromium.PHONE}
SETTLED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def draw(page: Page, url: str, place: str, file: Path) -> None:
    page.goto("about:blank")
    page.goto(f"{url}/#/{place}")
    page.wait_for_selector(f"main.{place.partition('/')[0]}")
    page.wait_for_selector(
        "main :is(.row, .card, .need, .tile, .state, .steps, .detail h2, section > h2 + *) >> visible=true"
    )
    page.wait_for_selector("main [data-answer]:disabled, main .need button:disabled", state="detached")
    page.evaluate(SETTLED)
    page.screenshot(path=file)


def places(state: str) -> dict[str, str]:
    if state == "empty":
        return {name: name for name in PAGES}
    return {name: f"{name}/{OPENED[name]}" if name in OPENED else name for name in [*PAGES, "you"]}


def draw_all(browser: Browser, server: Fixtures, folder: Path) -> None:
    for width, size in SIZES.items():
        for scheme in ("light", "dark"):
            page = browser.new_context(viewport=size, color_scheme=scheme).new_page()
            for state in ("busy", "empty"):
                server.state = state
                for name, place in (places(state) | (MORE if state == "busy" else {})).items():
                    draw(page, server.url, place, folder / f"{name}-{state}-{width}-{scheme}.png")
            page.goto(f"{server.url}/login")
            page.screenshot(path=folder / f"login-{width}-{scheme}.png")
            page.context.close()


def main(folder: Path, every: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    server = Fixtures().start()
    server.know("busy", busy())
    with sync_playwright() as playwright:
        browser = chromium.launch(playwright)
        if every:
            draw_all(browser, server, folder)
        else:
            page = browser.new_context(viewport=chromium.DESKTOP).new_page()
            for name, place in places("busy").items():
                draw(page, server.url, place, folder / f"{name}.png")
        browser.close()
    server.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), "--all" in sys.argv)
