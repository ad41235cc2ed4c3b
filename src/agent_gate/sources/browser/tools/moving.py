"""Tools that go somewhere: navigate, back, forward, tabs, wait, scroll, close."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from agent_gate.errors import Forbidden, InvalidArgs, UpstreamError
from agent_gate.sources.browser.act import Act, Block, text
from agent_gate.sources.browser.aiming import check_same
from agent_gate.sources.browser.browsing import Browsing
from agent_gate.sources.browser.engine import first_line, page_errors
from agent_gate.sources.browser.facts import about_page, complete
from agent_gate.sources.browser.tab import Tab, origin_of
from agent_gate.sources.browser.tool import ACTS, READS, define

LONGEST_WAIT = 30


def navigate_facts(_: Browsing | None, arguments: Mapping[str, Any]) -> dict[str, str]:
    return {"url": complete(arguments["url"])}


async def navigate(act: Act) -> Sequence[Block]:
    tab = act.browsing.tab or await act.browsing.open_tab()
    await tab.opened
    await go(act, tab, complete(act.arguments["url"]))
    return text(await act.see())


async def go(act: Act, tab: Tab, url: str) -> None:
    """Open an address. A host that is refused, at any hop, is said so."""
    failed = ""
    try:
        await tab.page.goto(url, wait_until="domcontentloaded", timeout=act.seconds * 1000)
    except page_errors() as error:
        failed = first_line(error)
    if why := act.browsing.proxy.why_refused(tab.asked_for):
        await tab.page.goto("about:blank")
        raise Forbidden(f"{origin_of(tab.asked_for)} may not be opened: {why}")
    if failed and "ERR_ABORTED" not in failed:
        raise UpstreamError(f"The page could not be opened: {failed}")
    tab.crashed = False
    await tab.settle()


def page_facts(browsing: Browsing | None, _: Mapping[str, Any]) -> dict[str, str]:
    return about_page(browsing.tab if browsing else None)


async def back(act: Act) -> Sequence[Block]:
    return await step(act, forward=False)


async def forward(act: Act) -> Sequence[Block]:
    return await step(act, forward=True)


async def step(act: Act, *, forward: bool) -> Sequence[Block]:
    page = act.tab.page
    move = page.go_forward if forward else page.go_back
    try:
        await move(wait_until="domcontentloaded", timeout=act.seconds * 1000)
    except page_errors() as error:
        raise UpstreamError(f"The page could not be opened: {first_line(error)}") from None
    await act.tab.settle()
    return text(await act.see())


def tabs_facts(browsing: Browsing | None, arguments: Mapping[str, Any]) -> dict[str, str]:
    facts = {"action": str(arguments["action"])}
    if arguments.get("url"):
        facts["url"] = complete(arguments["url"])
    return facts | about_page(browsing.tab if browsing else None)


async def tabs(act: Act) -> Sequence[Block]:
    check_same(act.facts, act.tool.facts(act.browsing, act.arguments))
    action, browsing = act.arguments["action"], act.browsing
    if action == "new":
        tab = await browsing.open_tab()
        if act.arguments.get("url"):
            await go(act, tab, complete(act.arguments["url"]))
        return text(f"Opened tab {browsing.current}.\n{await act.see()}")
    if action in ("close", "select"):
        chosen = chosen_tab(browsing, act.arguments.get("index"))
        if action == "close":
            await browsing.close_tab(chosen)
        else:
            browsing.current = browsing.tabs.index(chosen)
            await chosen.page.bring_to_front()
            return text(await act.see())
    lines = [
        f"{'*' if tab is browsing.tab else ' '} {index}: {tab.page.url[:200]}"
        for index, tab in enumerate(browsing.tabs)
    ]
    return text("\n".join(lines) or "No tab is open.")


def chosen_tab(browsing: Browsing, index: int | None) -> Tab:
    at = browsing.current if index is None else index
    if not 0 <= at < len(browsing.tabs):
        raise InvalidArgs(f"There is no tab {at}; there are {len(browsing.tabs)}, the first is 0")
    return browsing.tabs[at]


async def wait(act: Act) -> Sequence[Block]:
    wanted, unwanted, seconds = (act.arguments.get(name) for name in ("text", "textGone", "time"))
    if not (wanted or unwanted or seconds):
        raise InvalidArgs("Say what to wait for: time, text or textGone")
    limit = min(15.0, act.seconds) * 1000
    await act.aim()
    try:
        if seconds:
            await asyncio.sleep(min(float(seconds), LONGEST_WAIT, act.seconds - 1))
        if wanted:
            await act.tab.page.get_by_text(wanted).first.wait_for(state="visible", timeout=limit)
        if unwanted:
            await act.tab.page.get_by_text(unwanted).first.wait_for(state="hidden", timeout=limit)
    except page_errors():
        raise UpstreamError(f"It did not happen within {limit / 1000:g} s: {wanted or unwanted!r}") from None
    return await act.report("Waited.")


async def scroll(act: Act) -> Sequence[Block]:
    amount = int(act.arguments.get("amount") or 500)
    await act.aim()
    await act.tab.page.mouse.move(act.settings.viewport.width / 2, act.settings.viewport.height / 2)
    await act.tab.page.mouse.wheel(0, amount if act.arguments["direction"] == "down" else -amount)
    return await act.report(f"Scrolled {act.arguments['direction']} by {amount} pixels.")


async def close(act: Act) -> Sequence[Block]:
    for tab in list(act.browsing.tabs):
        await act.browsing.close_tab(tab)
    return text("Closed.")


URL = {"type": "string", "minLength": 1, "maxLength": 8192, "description": "Such as https://example.com/page"}
TOOLS = (
    define(
        "navigate",
        "Open a page in the browser and see what is on it",
        {"url": URL},
        required=["url"],
        template="{facts.url}",
        ask="Open {facts.url} in the browser?",
        facts=navigate_facts,
        perform=navigate,
    ),
    define(
        "back",
        "Go back to the page before",
        template="{facts.origin}",
        facts=page_facts,
        perform=back,
    ),
    define(
        "forward",
        "Go forward again after going back",
        template="{facts.origin}",
        facts=page_facts,
        perform=forward,
    ),
    define(
        "tabs",
        "List, open, select or close tabs",
        {
            "action": {"enum": ["list", "new", "close", "select"]},
            "url": {**URL, "description": "What to open in a new tab"},
            "index": {"type": "integer", "minimum": 0, "description": "Which tab to select or close"},
        },
        required=["action"],
        template="{facts.action}, {facts.url}",
        facts=tabs_facts,
        perform=tabs,
    ),
    define(
        "wait",
        "Wait for some seconds, or until a text appears or is gone",
        {
            "time": {"type": "number", "exclusiveMinimum": 0, "maximum": 30, "description": "Seconds"},
            "text": {"type": "string", "minLength": 1, "maxLength": 500},
            "textGone": {"type": "string", "minLength": 1, "maxLength": 500},
        },
        template="{facts.origin}",
        traits=READS,
        facts=page_facts,
        perform=wait,
    ),
    define(
        "scroll",
        "Scroll the page; what comes into sight is reported",
        {
            "direction": {"enum": ["up", "down"]},
            "amount": {
                "type": "integer",
                "minimum": 1,
                "maximum": 100_000,
                "description": "Pixels; 500 if left out",
            },
        },
        required=["direction"],
        template="{facts.origin}",
        traits=READS,
        facts=page_facts,
        perform=scroll,
    ),
    define(
        "close",
        "Close every page of this session",
        template="",
        traits=ACTS,
        facts=page_facts,
        perform=close,
    ),
)
