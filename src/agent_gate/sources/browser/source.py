"""The browser as a source of tools, and as the witness of what its calls act on."""

import asyncio
import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_gate.config.settings import Settings
from agent_gate.core.call import Call, Result
from agent_gate.core.ports import Job, Picture, Plan, Screen
from agent_gate.core.tool import Definition, Tool
from agent_gate.errors import CallTimeout, GatewayError, InvalidArgs, OutcomeUnknown, UpstreamError
from agent_gate.sources.base import SourceBase
from agent_gate.sources.browser.act import Act, dialog_words, text
from agent_gate.sources.browser.aiming import locate
from agent_gate.sources.browser.engine import first_line, folder_for, page_errors
from agent_gate.sources.browser.logins import KeptLogins, check_logins
from agent_gate.sources.browser.pictures import take, take_outlined
from agent_gate.sources.browser.pool import BrowsingPool
from agent_gate.sources.browser.proxy import upstream_of
from agent_gate.sources.browser.settings import BROWSER, KEY, BrowserSettings
from agent_gate.sources.browser.tools import TOOLS
from agent_gate.sources.toolbox import Toolbox

DEFINITIONS: tuple[Definition, ...] = tuple(tool.definition for tool in TOOLS.values())
STOPPED = "A person stopped this browser; its pages are gone"
SCREEN_SECONDS = 3.0
CLOSE = "browser_close"
WITHOUT_PAGE = frozenset({"browser_navigate", "browser_tabs", CLOSE})
BESIDE_DIALOG = frozenset({"browser_dialog", CLOSE, "browser_console", "browser_network", "browser_navigate"})


class BrowserSource(SourceBase):
    """Answers each call in the pages of its session."""

    kind = "browser"
    about = "A browser for pages that need one"

    def __init__(self, settings: BrowserSettings, folder: Path, toolbox: Toolbox) -> None:
        self.key = self.namespace = self.title = KEY
        self._settings, self._clock = settings, toolbox.clock
        self._pool = BrowsingPool(settings, folder, toolbox.clock)
        self._logins = KeptLogins(settings, toolbox)
        if upstream := upstream_of(settings.proxy, settings.where):
            toolbox.learn(upstream.secrets)

    async def __aexit__(self, *_: object) -> None:
        await self._pool.stop()

    async def connect(self) -> Sequence[Definition]:
        self._pool.engine.check()
        self._pool.engine.sweep()
        return DEFINITIONS

    async def watch(self) -> None:
        """Close what is not used any more, for as long as the source is there."""
        await self._pool.keep_tidy()

    def facts(self, tool: Tool, call: Call) -> Mapping[str, str]:
        return TOOLS[tool.upstream].facts(self._pool.of(call), call.arguments)

    async def picture(self, _tool: Tool, call: Call) -> Picture | None:
        """The page with what the call acts on outlined."""
        browsing = self._pool.of(call)
        if browsing is None or browsing.tab is None or browsing.tab.dialog is not None:
            return None
        async with browsing.lock:
            tab = browsing.page()
            node = tab.sight.known.get(str(call.arguments.get("ref"))) if tab.sight else None
            place = await locate(tab, node) if node is not None else None
            body = await take_outlined(tab, place)
        return Picture("image/jpeg", body)

    def screens(self) -> list[Screen]:
        now = self._clock.monotonic()
        return [
            Screen(
                id=one.id,
                caller=one.caller,
                title=one.tab.sight.title[:120] if one.tab and one.tab.sight else "",
                place=one.tab.page.url[:300] if one.tab else "",
                busy=one.lock.locked(),
                used=round(now - one.used, 1),
            )
            for one in self._pool.open_now.values()
            if one.alive
        ]

    async def screen_picture(self, screen: str) -> Picture | None:
        browsing = self._pool.find(screen)
        if browsing is None:
            return None
        if browsing.tab is not None and browsing.tab.dialog is None and not browsing.lock.locked():
            with contextlib.suppress(Exception):
                async with asyncio.timeout(SCREEN_SECONDS), browsing.lock:
                    browsing.last_picture = await take(browsing.page())
        return Picture("image/jpeg", browsing.last_picture) if browsing.last_picture else None

    async def stop_screen(self, screen: str) -> bool:
        browsing = self._pool.find(screen)
        if browsing is None:
            return False
        self._pool.tell(browsing, STOPPED)
        await self._pool.close(browsing)
        return True

    async def end_session(self, caller: str, session: str) -> None:
        await self._pool.end((caller, session))

    async def answer(self, job: Job) -> Result:
        tool, call = TOOLS[job.case.tool.upstream], job.case.call
        browsing = self._pool.of(call)
        if browsing is None and tool.name == CLOSE:
            return result([], text("Nothing was open."))
        if browsing is None and tool.name not in WITHOUT_PAGE:
            raise InvalidArgs("No page is open. Open one with browser_navigate")
        browsing = browsing or await self._pool.open(call)
        seconds = min(job.deadline - self._clock.monotonic(), self._settings.timeout)
        act = Act(
            browsing=browsing,
            settings=self._settings,
            arguments=call.arguments,
            facts=job.case.facts,
            tool=tool,
            caller=call.caller.name,
            seconds=seconds,
            logins=self._logins,
        )
        browsing.use()
        try:
            async with asyncio.timeout(seconds), browsing.lock:
                blocks = await self._perform(act)
        except TimeoutError:
            raise await self._end_hung_page(act) from None
        finally:
            browsing.use()
        if tool.name == CLOSE:
            await self._pool.close(browsing)
        answered = result(browsing.take_notes(), blocks)
        return replace(answered, body=self._logins.masked(answered.body))

    async def _perform(self, act: Act) -> Sequence[Mapping[str, Any]]:
        tab, name = act.browsing.tab, act.tool.name
        if tab is not None and tab.dialog is not None and name not in BESIDE_DIALOG:
            raise InvalidArgs(dialog_words(tab))
        if tab is not None and tab.crashed and name not in WITHOUT_PAGE:
            raise UpstreamError("This page crashed. Open one with browser_navigate")
        try:
            return await act.tool.perform(act)
        except page_errors() as error:
            raise self._judge_failure(act, error) from None
        finally:
            if tab is not None:
                await tab.posts.end()

    def _judge_failure(self, act: Act, error: Exception) -> GatewayError:
        """What a failure of Playwright means for the call."""
        if not act.browsing.alive:
            self._pool.drop(act.browsing)
            return OutcomeUnknown("The browser ended while the call ran; its pages are gone. Navigate again")
        return UpstreamError(f"The page could not do that: {first_line(error)}")

    async def _end_hung_page(self, act: Act) -> GatewayError:
        """A page that does not answer: its script is stopped, or it is closed."""
        tab = act.browsing.tab
        said = f"The page did not answer within {act.seconds:.0f} s"
        if tab is None:
            return CallTimeout(said)
        if await tab.stop_scripts():
            return CallTimeout(f"{said}; its script was stopped. It may have done part of it: look again")
        await act.browsing.close_tab(tab)
        return CallTimeout(f"{said} and was closed. Navigate again")


def result(notes: Sequence[str], blocks: Sequence[Mapping[str, Any]]) -> Result:
    """The blocks, with what else happened said first."""
    failed = any(block.get("isError") for block in blocks)
    said = [{key: value for key, value in block.items() if key != "isError"} for block in blocks]
    if notes and said and said[0]["type"] == "text":
        said[0]["text"] = "\n".join([*(f"Note: {note}" for note in notes), said[0]["text"]])
    body: dict[str, Any] = {"content": said}
    if failed:
        body["isError"] = True
    return Result(msgspec.json.encode(body), kind="mcp", is_error=failed)


def known_tools(settings: Settings) -> Mapping[str, Sequence[Definition]]:
    return dict.fromkeys(BROWSER.of(settings), DEFINITIONS)


class BrowserKind:
    """The kind `browser`, which stands below the key `browser:`."""

    name = "browser"
    section = dataclasses.replace(BROWSER, tools=known_tools)

    def make(self, settings: Settings, toolbox: Toolbox) -> list[Plan]:
        folder = folder_for(settings.storage.path.absolute().parent)
        plans = []
        for browser in BROWSER.of(settings).values():
            check_logins(browser)
            upstream_of(browser.proxy, browser.where)
            source = BrowserSource(browser, folder, toolbox)
            plans.append(
                Plan(
                    source=source,
                    settings=browser,
                    witness=source,
                    screens=source,
                    known=DEFINITIONS,
                    enabled=browser.enabled,
                    counts_for_ready=False,
                )
            )
        return plans


SOURCE = BrowserKind()
