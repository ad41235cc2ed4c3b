"""`python -m bench.page CALLS`: is the page quick in front of a long record, and smooth with 100,000 rows?

Makes a record of so many calls over the last month, starts a gateway on it, and opens every page in Debian's Chromium
or Firefox over loopback: the time from the request for the page until what it is about is on the screen and can be used,
in a browser that was here before and in one that was not. Then it scrolls a list of 100,000 rows, and looks back over
each range of *Health*.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop
from playwright.sync_api import Page, sync_playwright
from tests.gateway import Api, in_front_of
from tests.ui import chromium, firefox
from tests.ui.test_ui_pages import PAGES
from tests.ui.ui_house import CONFIG, PERMISSIONS, TOOLS

from agent_gate.audit import Sealer, ensure_key
from agent_gate.audit.counting import Trends
from agent_gate.core.ports import SystemClock
from agent_gate.observe.metrics import Metrics
from agent_gate.observe.trends import RANGES
from agent_gate.store import StoreSettings, open_store
from bench.record import AT_ONCE, rows_of

MONTH = 30 * 86_400.0
TRIES = 7
ENGINES = {"chromium": chromium, "firefox": firefox}
ROWS = 100_000
WATCH = """(() => {
  const ABOUT = "main .row, main .card, main .tile, main .state:not(.soft), main .need";
  let drawn;
  window.usable = new Promise((resolve) => (drawn = resolve));
  const watch = new MutationObserver(() => {
    if (![...document.querySelectorAll(ABOUT)].some((node) => node.getClientRects().length)) return;
    watch.disconnect();
    requestAnimationFrame(() => setTimeout(() => drawn(performance.now())));
  });
  watch.observe(document, { subtree: true, childList: true, attributes: true });
})()"""
"""Notes when the first thing that is more than `Loading…` was drawn: in the page, so that no driver's time counts."""
SCROLL = """async (rows) => {
  const { List } = await import("/parts/list.js");
  const { callRow } = await import("/parts/rows.js");
  const call = (n) => ({ call: `c${n}`, at: n, state: "completed", caller: "pi", tool: "t", signature: `t(${n})`, seconds: 0.1, count: 1 });
  const list = new List({ row: callRow, key: (one) => one.call, label: "many" });
  const main = document.getElementById("main");
  list.node.style.height = "700px";
  main.replaceChildren(list.node);
  const began = performance.now();
  list.set(Array.from({ length: rows }, (_, n) => call(n)));
  await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  const first = performance.now() - began;
  const costs = [];
  for (let step = 0; step < 300; step += 1) {
    list.node.scrollTop = (step * 7919 * 52) % (rows * 52);
    const before = performance.now();
    list.draw();
    list.node.getBoundingClientRect();
    costs.push(performance.now() - before);
    await new Promise(requestAnimationFrame);
  }
  return { first, costs, drawn: list.drawn.size };
}"""


async def fill(path: Path, key: Path, calls: int) -> None:
    """The record, and the numbers that a gateway adds up meanwhile."""
    store = open_store(StoreSettings(path=path, chain="home"))
    trends, began = Trends(store, Metrics(), SystemClock()), time.time() - MONTH
    try:
        async with Sealer(store, ensure_key(key)):
            for first in range(0, calls, AT_ONCE // 2):
                numbers = range(first, min(first + AT_ONCE // 2, calls))
                made = [one for n in numbers for one in rows_of(n, began + n * MONTH / calls)]
                for one in made[:-1]:
                    store.post(one)
                await store.write(made[-1])
            counting = time.monotonic()
            await trends.note()
            print(f"counting all of it at once takes {time.monotonic() - counting:.2f} s")
    finally:
        await store.close()


def opened(page: Page, url: str, name: str) -> float:
    """Milliseconds from the request until the page shows what it is about."""
    page.goto("about:blank")
    page.goto(f"{url}/#/{name}", wait_until="commit")
    return float(page.evaluate("window.usable"))


def opened_first(page: Page, url: str, name: str) -> float:
    """The same where the browser has kept nothing but the login."""
    context = visitor(page.context.browser, page.context.storage_state())
    try:
        return opened(context.new_page(), url, name)
    finally:
        context.close()


def visitor(browser: Any, state: Any = None) -> Any:
    context = browser.new_context(viewport=chromium.DESKTOP, storage_state=state)
    context.add_init_script(WATCH)
    return context


def told(name: str, numbers: list[float]) -> None:
    print(f"{name:14s} {statistics.median(numbers):7.0f} ms   slowest {max(numbers):6.0f} ms", flush=True)


def look(gateway: Any) -> None:
    print("\nlooking back")
    for name in RANGES:
        took = []
        for _ in range(TRIES):
            began = time.perf_counter()
            gateway.admin.get(f"/api/trends?range={name}")
            took.append(1000 * (time.perf_counter() - began))
        told(name, took)


def measure(gateway: Any, engine: Any) -> None:
    with sync_playwright() as playwright:
        browser = engine.launch(playwright)
        page = visitor(browser).new_page()
        page.goto(gateway.admin.request("POST", "/api/logins", {})["url"])
        page.wait_for_selector("#nav a")
        for title, way in (("usable after", opened), ("usable after, on a first visit", opened_first)):
            print(f"\n{title}")
            for name in PAGES:
                told(name, [way(page, gateway.announced["admin"], name) for _ in range(TRIES)])
        opened(page, gateway.announced["admin"], "now")
        found = page.evaluate(SCROLL, ROWS)
        print(f"\na list of {ROWS} rows: first drawn after {found['first']:.0f} ms, {found['drawn']} nodes")
        told("a jump", found["costs"])
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.page", description=__doc__)
    parser.add_argument("calls", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--browser", choices=sorted(ENGINES), default="chromium")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, Api() as api:
        folder = Path(name)
        (folder / "data").mkdir()
        uvloop.run(fill(folder / "data" / "gate.db", folder / "data" / "audit.key", wanted.calls))
        print(f"{wanted.calls} calls in the record")
        with in_front_of(api, folder, CONFIG, TOOLS, PERMISSIONS, more="") as gateway:
            look(gateway)
            measure(gateway, ENGINES[wanted.browser])


if __name__ == "__main__":
    main()
