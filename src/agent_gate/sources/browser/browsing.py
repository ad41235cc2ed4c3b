"""`Browsing`: what one session of an agent has open, in a context of its own with storage of its own."""

import asyncio
import contextlib
import logging
from collections import deque
from typing import TYPE_CHECKING, Self

from agent_gate.core.ports import Clock
from agent_gate.core.tasks import KeptTasks
from agent_gate.errors import InvalidArgs
from agent_gate.net.addresses import PrivateHosts
from agent_gate.sources.browser.engine import BrowserEngine, close_context
from agent_gate.sources.browser.proxy import CheckingProxy, upstream_of
from agent_gate.sources.browser.settings import BrowserSettings
from agent_gate.sources.browser.tab import Tab

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

log = logging.getLogger("agent_gate.sources.browser")
NO_PAGE = "No page is open. Open one with browser_navigate"
MOST_NOTES = 12
WEB = ("http:", "https:", "about:blank", "about:srcdoc", "chrome-error:", "blob:")


class Browsing:
    """Opened on first use. One call at a time acts in it; `last_picture` is what a person watches."""

    def __init__(
        self, key: str, caller: str, engine: BrowserEngine, settings: BrowserSettings, clock: Clock
    ) -> None:
        self.id, self.caller = key, caller
        self._engine, self.settings, self._clock = engine, settings, clock
        self.lock = asyncio.Lock()
        self.used = clock.monotonic()
        self.tabs: list[Tab] = []
        self.current = 0
        self.notes: deque[str] = deque(maxlen=MOST_NOTES)
        self.last_picture: bytes = b""
        self.proxy = CheckingProxy(
            PrivateHosts(settings.allow_private), upstream_of(settings.proxy, settings.where)
        )
        self._context: BrowserContext | None = None
        self._tasks = KeptTasks(log, "A page could not be taken over")
        self._told_refusals = 0

    async def __aenter__(self) -> Self:
        await self.proxy.__aenter__()
        try:
            browser = await self._engine.ensure_browser()
            size = self.settings.viewport
            self._context = await browser.new_context(
                proxy={"server": self.proxy.url},
                viewport={"width": size.width, "height": size.height},
                accept_downloads=True,
                service_workers="allow",
            )
        except BaseException:
            await self.proxy.__aexit__(None, None, None)
            raise
        self._context.set_default_timeout(self.settings.timeout * 1000)
        self._context.on("page", self._on_page)
        self.use()
        return self

    def use(self) -> None:
        """Have it count as used now; what is idle for long is closed."""
        self.used = self._clock.monotonic()

    async def __aexit__(self, *_: object) -> None:
        context, self._context = self._context, None
        await self._tasks.cancel()
        if context is not None and self._engine.running and not await close_context(context):
            log.warning("A session's pages did not close; the browser is replaced")
            await self._engine.kill()
        await self.proxy.__aexit__(None, None, None)

    @property
    def context(self) -> "BrowserContext":
        if self._context is None:
            raise InvalidArgs(NO_PAGE)
        return self._context

    @property
    def alive(self) -> bool:
        return self._context is not None and self._engine.running

    @property
    def tab(self) -> Tab | None:
        return self.tabs[min(self.current, len(self.tabs) - 1)] if self.tabs else None

    def page(self) -> Tab:
        """The page in front. Raises where there is none."""
        tab = self.tab
        if tab is None or self._context is None:
            raise InvalidArgs(NO_PAGE)
        return tab

    def note(self, text: str) -> None:
        self.notes.append(text)

    def take_notes(self) -> list[str]:
        """What happened beside the calls since it was last told."""
        new = self.proxy.refused - self._told_refusals
        self._told_refusals = self.proxy.refused
        refused = dict(list(self.proxy.refusals)[-new:]) if new else {}
        said = [*self.notes, *(f"The page was kept from {host}: {why}" for (host, _), why in refused.items())]
        self.notes.clear()
        return said

    async def open_tab(self) -> Tab:
        if len(self.tabs) >= self.settings.max_tabs:
            raise InvalidArgs(
                f"{len(self.tabs)} tabs are open, which is the most. Close one with browser_tabs"
            )
        page = await self.context.new_page()
        tab = self._adopt(page)
        self.current = self.tabs.index(tab)
        await tab.opened
        return tab

    def _on_page(self, page: "Page") -> None:
        """A window that a page opened by itself; too many are closed at once."""
        if len(self.tabs) >= self.settings.max_tabs:
            if not any("more windows" in note for note in self.notes):
                self.note(f"The page opened more windows than {self.settings.max_tabs}; they were closed")
            self._tasks.start(close_page(page))
            return
        self._adopt(page)

    def _adopt(self, page: "Page") -> Tab:
        known = next((tab for tab in self.tabs if tab.page is page), None)
        if known is not None:
            return known
        tab = Tab(self.context, page, self.note)
        self.tabs.append(tab)
        page.on("close", lambda _: self._on_close(tab))
        page.on("framenavigated", lambda frame: self._on_navigated(tab, frame.url))
        if len(self.tabs) > 1:
            self.note(f"A new tab opened, number {len(self.tabs) - 1}; browser_tabs selects it")
        return tab

    def _on_close(self, tab: Tab) -> None:
        if tab in self.tabs:
            at = self.tabs.index(tab)
            self.tabs.remove(tab)
            if self.current >= at:
                self.current = max(0, self.current - 1)

    def _on_navigated(self, tab: Tab, url: str) -> None:
        """Pages that no proxy sees are left at once, wherever they came from."""
        if not url.startswith(WEB) and url:
            self.note(f"The page went to {url.partition(':')[0]}:, which is not allowed, and was left")
            self._tasks.start(leave(tab.page))

    async def close_tab(self, tab: Tab) -> None:
        await close_page(tab.page)
        self._on_close(tab)


async def leave(page: "Page") -> None:
    with contextlib.suppress(Exception):
        await page.goto("about:blank", timeout=5_000)


async def close_page(page: "Page") -> None:
    with contextlib.suppress(Exception):
        async with asyncio.timeout(3):
            await page.close()
