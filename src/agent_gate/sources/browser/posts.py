"""Holds back what a page sends while an act is under way that was not decided on as a submission.

A script can send a form without any event of a form, or an order without any form: the request is then the first that
can be seen of it. Requests that a page makes by itself as well, and reads of GraphQL, are not held.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

import msgspec

from agent_gate.core.tasks import KeptTasks
from agent_gate.sources.browser.worlds import Worlds

SENDS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
BY_SCRIPTS = ("XHR", "Fetch")
MOST_BACKGROUND = 500


def patterns(*, scripts: bool) -> dict[str, Any]:
    kinds = ("Document", *BY_SCRIPTS) if scripts else ("Document",)
    return {
        "patterns": [{"urlPattern": "*", "resourceType": kind, "requestStage": "Request"} for kind in kinds]
    }


class HeldPosts:
    """`held` is the method and the address of the first one that was held back since `hold`."""

    def __init__(self, worlds: Worlds, tasks: KeptTasks) -> None:
        self._worlds, self._tasks = worlds, tasks
        self._holding = self._heard = self._busy = False
        self._background: dict[str, None] = {}
        self.held: tuple[str, str] | None = None

    async def hold(self, *, scripts: bool) -> None:
        """Until `release` or `end`; of what scripts send by themselves only where that is wanted."""
        self.held, self._busy = None, True
        session = self._worlds.session
        if not self._heard:
            self._heard = True
            session.on("Fetch.requestPaused", lambda event: self._tasks.start(self._decide(event)))
        await session.send("Fetch.enable", patterns(scripts=scripts))
        self._holding = True

    async def release(self) -> None:
        """What is sent now was decided on."""
        self.held, self._busy = None, True
        await self._let_go()

    async def end(self) -> None:
        """The act is over."""
        self._busy = False
        await self._let_go()

    async def _let_go(self) -> None:
        if self._holding:
            self._holding = False
            with contextlib.suppress(Exception):
                await self._worlds.session.send("Fetch.disable")

    def note(self, method: str, url: str) -> None:
        """A request of a script. One that is made while nobody acts is the page's own, and is not held later."""
        if method in SENDS and not self._busy:
            self._background[where(method, url)] = None
            while len(self._background) > MOST_BACKGROUND:
                del self._background[next(iter(self._background))]

    async def _decide(self, event: Mapping[str, Any]) -> None:
        asked = {"requestId": event["requestId"]}
        with contextlib.suppress(Exception):
            if self._holding and self._submits(event):
                self.held = self.held or (str(event["request"]["method"]), str(event["request"]["url"]))
                sent = {**asked, "errorReason": "Aborted"}
                await self._worlds.session.send("Fetch.failRequest", sent)
            else:
                await self._worlds.session.send("Fetch.continueRequest", asked)

    def _submits(self, event: Mapping[str, Any]) -> bool:
        request = event["request"]
        method, url = str(request["method"]), str(request["url"])
        if event.get("resourceType") not in BY_SCRIPTS:
            return method == "POST"
        if method not in SENDS:
            return False
        operation = operation_of(str(request.get("postData") or ""))
        if operation:
            return operation != "query"
        return where(method, url) not in self._background


def where(method: str, url: str) -> str:
    return f"{method} {url.partition('?')[0].partition('#')[0]}"


def operation_of(body: str) -> str:
    """What a body of GraphQL does: `query`, `mutation` or `subscription`; empty for everything else."""
    try:
        said = msgspec.json.decode(body) if body[:1] in "{[" else None
    except msgspec.DecodeError:
        return ""
    operations = {kind_of(one) for one in (said if isinstance(said, list) else [said])}
    if operations <= {"query"}:
        return "query" if operations else ""
    return "mutation" if "mutation" in operations else ""


def kind_of(said: Any) -> str:
    document = said.get("query") if isinstance(said, dict) else None
    if not isinstance(document, str):
        return ""
    words = document.replace("{", " { ").split()
    if not words or words[0] not in ("query", "mutation", "subscription", "fragment", "{"):
        return ""
    return "mutation" if "mutation" in words else "query"
