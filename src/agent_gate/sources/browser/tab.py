"""`Tab`: one page of a session, what it showed last, and what happened in it."""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agent_gate.core.tasks import KeptTasks
from agent_gate.sources.browser.looking import Sight, look
from agent_gate.sources.browser.posts import HeldPosts
from agent_gate.sources.browser.tree import PageNode
from agent_gate.sources.browser.trim import Groups
from agent_gate.sources.browser.worlds import Worlds

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, ConsoleMessage, Dialog, Download, Page, Request

log = logging.getLogger("agent_gate.sources.browser")
MOST_LINES = 200
MOST_EARLIER = 5_000
QUIET_SECONDS = 0.12
FIRST_SECONDS = 0.06
LONGEST_WAIT = 3.0
CURE_SECONDS = 2.0
WAITED_FOR = frozenset({"document", "xhr", "fetch", "script"})
DIALOG_SECONDS = 120.0
KEY = "key"
"""Stands for a pressed key where elements are told apart by their references."""


class Tab:
    """`earlier` are elements of former snapshots, so that a stale reference can be told from a wrong one."""

    def __init__(self, context: "BrowserContext", page: "Page", note: Callable[[str], None]) -> None:
        self.page, self.note = page, note
        self.tasks = KeptTasks(log, "Something beside the calls failed in a page")
        self.worlds = Worlds(context, page)
        self.groups = Groups()
        self.posts = HeldPosts(self.worlds, self.tasks)
        self.sight: Sight | None = None
        self.earlier: dict[str, PageNode] = {}
        self.learned: dict[str, str] = {}
        """Where elements turned out to submit something to, by reference, or by a pressed key."""
        self.console: deque[str] = deque(maxlen=MOST_LINES)
        self.network: deque[str] = deque(maxlen=MOST_LINES)
        self.dialog: Dialog | None = None
        self.dialog_opened = asyncio.Event()
        self.unfinished: asyncio.Task[Any] | None = None
        self.wants_download = False
        self.crashed = False
        self.acted_on = ""
        self.asked_for = ""
        """The address of the last document that the page itself asked for, at its last hop."""
        self._under_way: set[Request] = set()
        self._heard = 0.0
        self.opened = asyncio.ensure_future(self._open())

    async def _open(self) -> None:
        page = self.page
        page.on("dialog", self._on_dialog)
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.console.append(f"error: {str(error)[:300]}"))
        page.on("request", self._on_request)
        page.on("requestfinished", self._on_answer)
        page.on("requestfailed", self._on_answer)
        page.on("download", self._on_download)
        page.on(
            "filechooser", lambda _: self.note("A file chooser opened; give it files with browser_upload")
        )
        page.on("crash", lambda _: self._on_crash())
        await self.worlds.open()

    @property
    def origin(self) -> str:
        return origin_of(self.page.url)

    async def look(self, *, listeners_too: bool = True) -> Sight:
        """A fresh snapshot; what was seen before is remembered as such."""
        last = self.sight
        self.sight = sight = await look(self.page, self.worlds, last, listeners_too=listeners_too)
        if last is not None and last is not sight:
            self.earlier.update(last.known)
            while len(self.earlier) > MOST_EARLIER:
                del self.earlier[next(iter(self.earlier))]
        here = last is not None and last.url == sight.url
        self.learned = {
            ref: where for ref, where in self.learned.items() if ref in sight.known or (ref == KEY and here)
        }
        return sight

    async def settle(self) -> None:
        """Wait until what an action began has come to rest, for a bounded time."""
        loop = asyncio.get_running_loop()
        began = self._heard = loop.time()
        await asyncio.sleep(FIRST_SECONDS)
        while loop.time() - began < LONGEST_WAIT:
            if not self._under_way and loop.time() - self._heard > QUIET_SECONDS:
                break
            await asyncio.sleep(0.02)
        with contextlib.suppress(Exception):
            await self.page.wait_for_load_state("domcontentloaded", timeout=5_000)

    async def answers(self) -> bool:
        """Whether the page's scripts leave it time for anything else."""
        try:
            async with asyncio.timeout(CURE_SECONDS):
                await self.worlds.session.send("Runtime.evaluate", {"expression": "1"})
        except Exception:  # noqa: BLE001 -- whatever keeps it from answering
            return False
        return True

    async def stop_scripts(self) -> bool:
        """End a script that does not end by itself; whether the page answers again."""
        try:
            async with asyncio.timeout(CURE_SECONDS):
                await self.worlds.session.send("Runtime.terminateExecution")
        except Exception:  # noqa: BLE001 -- whatever keeps it from answering
            return False
        return await self.answers()

    def _on_dialog(self, dialog: "Dialog") -> None:
        if dialog.type == "beforeunload":
            self.tasks.start(answer_dialog(dialog, accept=True, text=None))
            return
        self.dialog = dialog
        self.dialog_opened.set()
        asyncio.get_running_loop().call_later(DIALOG_SECONDS, self._dismiss, dialog)

    def _dismiss(self, dialog: "Dialog") -> None:
        if self.dialog is dialog:
            self.note("A dialog that nobody answered was dismissed")
            self.forget_dialog()
            self.tasks.start(answer_dialog(dialog, accept=False, text=None))

    def forget_dialog(self) -> None:
        self.dialog = None
        self.dialog_opened.clear()

    def _on_console(self, message: "ConsoleMessage") -> None:
        self.console.append(f"{message.type}: {message.text[:300]}")

    def _on_request(self, request: "Request") -> None:
        if request.is_navigation_request() and request.frame == self.page.main_frame:
            self.asked_for = request.url
        if request.resource_type in ("xhr", "fetch"):
            self.posts.note(request.method, request.url)
        if request.resource_type in WAITED_FOR:
            self._under_way.add(request)
            self._heard = asyncio.get_running_loop().time()

    def _on_answer(self, request: "Request") -> None:
        self._under_way.discard(request)
        self._heard = asyncio.get_running_loop().time()
        failed = f" failed: {request.failure}" if request.failure else ""
        self.network.append(f"{request.method} {request.url[:200]} ({request.resource_type}){failed}")

    def _on_download(self, download: "Download") -> None:
        if not self.wants_download:
            name = download.suggested_filename[:100]
            self.note(
                f"The page offered the file {name!r}, which was not taken; browser_download(ref) takes it"
            )
            self.tasks.start(cancel_download(download))

    def _on_crash(self) -> None:
        self.crashed = True
        self.note("This page crashed. Navigate again")


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        return f"{parts.scheme}:" if parts.scheme else ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


async def answer_dialog(dialog: "Dialog", *, accept: bool, text: str | None) -> None:
    with contextlib.suppress(Exception):
        await (dialog.accept(text or "") if accept else dialog.dismiss())


async def cancel_download(download: "Download") -> None:
    with contextlib.suppress(Exception):
        await download.cancel()
        await download.delete()
