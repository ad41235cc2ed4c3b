"""Scripts of ours inside a page, in worlds that its own scripts cannot see: reading what is there, and guarding acts.

One `Worlds` per page. It speaks Chromium's protocol through sessions of Playwright: one for the page, one more for each
frame that runs in a process of its own.
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Frame, Page

GUARD_WORLD = "agent-gate"
PAGES_WORLD = "page"
REFERENCES_WORLD = "__playwright_utility_world"
MOST_FRAMES = 24
GROUP = "agent-gate"
"""Objects of ours, let go of together after each look."""


@cache
def script(name: str) -> str:
    return (Path(__file__).with_name("scripts") / name).read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class World:
    """One frame's world: where scripts are run. `met` are the numbers of elements that were handed to it."""

    session: "CDPSession"
    id: str
    number: int
    name: str
    frame: str
    met: set[int] = field(default_factory=set, compare=False)

    async def run(self, expression: str, **more: Any) -> Any:
        """The value of an expression, which must be JSON."""
        sent = {"expression": expression, "uniqueContextId": self.id, "returnByValue": True, **more}
        return value_of(await self.session.send("Runtime.evaluate", sent))

    async def find_object(self, expression: str) -> str:
        """The id of the object that an expression gives; empty where it gives none."""
        sent = {"expression": expression, "uniqueContextId": self.id, "objectGroup": GROUP}
        return str((await self.session.send("Runtime.evaluate", sent))["result"].get("objectId") or "")

    async def call(self, function: str, *arguments: Any, by_value: bool = True) -> Any:
        """Call a function with values, or with objects given as `{"objectId": …}`."""
        given = [one if isinstance(one, dict) and "objectId" in one else {"value": one} for one in arguments]
        sent = {
            "functionDeclaration": function,
            "arguments": given,
            "uniqueContextId": self.id,
            "returnByValue": by_value,
            "objectGroup": GROUP,
        }
        answer = await self.session.send("Runtime.callFunctionOn", sent)
        return value_of(answer) if by_value else answer["result"].get("objectId")


def value_of(answer: Mapping[str, Any]) -> Any:
    if "exceptionDetails" in answer:
        raise RuntimeError(f"a script of ours failed: {answer['exceptionDetails'].get('text', '')}")
    return answer["result"].get("value")


class Worlds:
    def __init__(self, context: "BrowserContext", page: "Page") -> None:
        self._context, self._page = context, page
        self._worlds: dict[str, World] = {}
        self._frames: dict[Frame, str] = {}
        self.session: CDPSession
        self.top = ""

    async def open(self) -> None:
        self.session = await self._attach(self._page)
        tree = await self.session.send("Page.getFrameTree")
        self.top = str(tree["frameTree"]["frame"]["id"])

    async def _attach(self, target: "Page | Frame") -> "CDPSession":
        session = await self._context.new_cdp_session(target)
        session.on("Runtime.executionContextCreated", lambda event: self._created(session, event["context"]))
        session.on("Runtime.executionContextDestroyed", self._destroyed)
        session.on("Runtime.executionContextsCleared", lambda _: self._cleared(session))
        await session.send("Runtime.enable")
        await session.send("Page.enable")
        guard = {"source": script("guard.js"), "worldName": GUARD_WORLD, "runImmediately": True}
        await session.send("Page.addScriptToEvaluateOnNewDocument", guard)
        return session

    def _created(self, session: "CDPSession", context: Mapping[str, Any]) -> None:
        name = str(context.get("name") or "")
        about = context.get("auxData") or {}
        if about.get("isDefault") or name == GUARD_WORLD or name.startswith(REFERENCES_WORLD):
            frame = str(about.get("frameId") or "")
            name = PAGES_WORLD if about.get("isDefault") else name
            key = str(context["uniqueId"])
            self._worlds[key] = World(session, key, int(context["id"]), name, frame)

    def _destroyed(self, event: Mapping[str, Any]) -> None:
        self._worlds.pop(str(event.get("executionContextUniqueId")), None)

    def _cleared(self, session: "CDPSession") -> None:
        self._worlds = {key: world for key, world in self._worlds.items() if world.session is not session}

    async def follow_frames(self) -> None:
        """Reach frames that run in processes of their own; the others answer in the page's session."""
        for frame in self._page.frames[1 : MOST_FRAMES + 1]:
            if self._frames.get(frame) == frame.url:
                continue
            self._frames[frame] = frame.url
            with contextlib.suppress(Exception):
                await self._attach(frame)
        for frame in [frame for frame in self._frames if frame.is_detached()]:
            del self._frames[frame]

    def references(self) -> Iterator[World]:
        """The world of each frame in which Playwright keeps its references."""
        yield from [world for world in self._worlds.values() if world.name.startswith(REFERENCES_WORLD)]

    def guards(self) -> list[World]:
        return [world for world in self._worlds.values() if world.name == GUARD_WORLD]

    def main_of(self, frame: str) -> World | None:
        """The world of a frame's own scripts; nothing that it says is to be believed."""
        return next(
            (world for world in self._worlds.values() if world.name == PAGES_WORLD and world.frame == frame),
            None,
        )

    def guard_of(self, frame: str) -> World | None:
        return next((world for world in self.guards() if world.frame == frame), None)
