"""`python -m bench.page CALLS`: is the page quick in front of a long record, and smooth with 100,000 rows?

Makes a record of so many calls over the last month, starts a gateway on it, and opens every page in Debian's Chromium
over loopback: the time from the request for the page until what it is about can be seen and used. Then it scrolls a list
of 100,000 rows, and looks back over each range of *Health*.
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
from tests.ui import chromium
from tests.ui.test_ui_pages import PAGES
from tests.ui.ui_house import CONFIG, PERMISSIONS, TOOLS

from agent_gate.audit import Sealer, ensure_key
from agent_gate.audit.trends import RANGES, Trends
from agent_gate.core.ports import SystemClock
from agent_gate.observe.metrics import Metrics
from agent_gate.store import StoreSettings, open_store
from bench.record import AT_ONCE, rows_of

MONTH = 30 * 86_400.0
TRIES = 7
ROWS = 100_000
USABLE = "main .row, main .card, main .tile, main .state, main .need"
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
    page.wait_for_selector(USABLE)
    return float(page.evaluate("performance.now()"))


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


def measure(gateway: Any) -> None:
    with sync_playwright() as playwright:
        browser = chromium.launch(playwright)
        page = browser.new_context(viewport=chromium.DESKTOP).new_page()
        page.goto(gateway.admin.request("POST", "/api/logins", {})["url"])
        page.wait_for_selector("#nav a")
        print("\nusable after")
        for name in PAGES:
            told(name, [opened(page, gateway.announced["admin"], name) for _ in range(TRIES)])
        page.goto(f"{gateway.announced['admin']}/#/now")
        page.wait_for_selector(USABLE)
        found = page.evaluate(SCROLL, ROWS)
        print(f"\na list of {ROWS} rows: first drawn after {found['first']:.0f} ms, {found['drawn']} nodes")
        told("a jump", found["costs"])
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.page", description=__doc__)
    parser.add_argument("calls", type=int, nargs="?", default=1_000_000)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, Api() as api:
        folder = Path(name)
        (folder / "data").mkdir()
        uvloop.run(fill(folder / "data" / "gate.db", folder / "data" / "audit.key", wanted.calls))
        print(f"{wanted.calls} calls in the record")
        with in_front_of(api, folder, CONFIG, TOOLS, PERMISSIONS, more="") as gateway:
            look(gateway)
            measure(gateway)


if __name__ == "__main__":
    main()
