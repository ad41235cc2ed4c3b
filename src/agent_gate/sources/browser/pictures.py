"""Pictures of a page: secrets covered, and the element that a question is about outlined."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from agent_gate.sources.browser.aiming import Place
from agent_gate.sources.browser.tab import Tab
from agent_gate.sources.browser.tree import PageNode

if TYPE_CHECKING:
    from playwright.async_api import Locator

QUALITY = 60
PICTURE_MS = 5_000
COVER = "#444444"
OUTLINE = {
    "borderColor": {"r": 220, "g": 0, "b": 60, "a": 1},
    "contentColor": {"r": 255, "g": 210, "b": 0, "a": 0.25},
    "showInfo": False,
}
SETTLED = 0.05


def secrets_in(tab: Tab) -> list[PageNode]:
    return [node for node in (tab.sight.known.values() if tab.sight else ()) if node.details.secret]


def covered(tab: Tab) -> "list[Locator]":
    """What must not be seen: password fields, and those that were some."""
    found = [tab.page.locator("input[type=password]")]
    known = [node.ref for node in secrets_in(tab) if not node.details.backend]
    return [*found, *(tab.page.locator(f"aria-ref={ref}") for ref in known)]


@asynccontextmanager
async def covering(tab: Tab) -> AsyncIterator[None]:
    """Covers what Playwright cannot reach, as in closed shadow roots."""
    numbers = [node.details.backend for node in secrets_in(tab) if node.details.backend]
    worlds = list(tab.worlds.references()) if numbers else []
    try:
        for world in worlds:
            await world.run(f"agentGateSight.cover({numbers}, {COVER!r})")
        yield
    finally:
        for world in worlds:
            with contextlib.suppress(Exception):
                await world.run("agentGateSight.uncover()")


async def take(tab: Tab, *, full: bool = False) -> bytes:
    """The page as JPEG."""
    async with covering(tab):
        return await tab.page.screenshot(
            type="jpeg",
            quality=QUALITY,
            full_page=full,
            mask=covered(tab),
            mask_color=COVER,
            timeout=PICTURE_MS,
        )


async def take_outlined(tab: Tab, place: Place | None) -> bytes:
    """The page with an element outlined, drawn by Chromium itself: the page does not notice."""
    if place is None:
        return await take(tab)
    session = place.guard.session
    with contextlib.suppress(Exception):
        await session.send("DOM.scrollIntoViewIfNeeded", {"backendNodeId": place.number})
    await session.send("DOM.enable")
    await session.send("Overlay.enable")
    try:
        await session.send(
            "Overlay.highlightNode", {"highlightConfig": OUTLINE, "backendNodeId": place.number}
        )
        await asyncio.sleep(SETTLED)
        return await take(tab)
    finally:
        with contextlib.suppress(Exception):
            await session.send("Overlay.hideHighlight")
            await session.send("Overlay.disable")
