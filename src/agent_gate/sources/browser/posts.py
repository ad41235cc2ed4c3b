"""Holds back what a page posts as a navigation while an act is under way that was not decided on as a submission.

A script can send a form without any event of a form; the request is then the first that can be seen of it.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

from agent_gate.core.tasks import KeptTasks
from agent_gate.sources.browser.worlds import Worlds

DOCUMENTS = {"patterns": [{"urlPattern": "*", "resourceType": "Document", "requestStage": "Request"}]}


class HeldPosts:
    """`held` is the address of the first one that was held back since `hold`."""

    def __init__(self, worlds: Worlds, tasks: KeptTasks) -> None:
        self._worlds, self._tasks = worlds, tasks
        self._holding = self._heard = False
        self.held = ""

    async def hold(self) -> None:
        self.held = ""
        session = self._worlds.session
        if not self._heard:
            self._heard = True
            session.on("Fetch.requestPaused", lambda event: self._tasks.start(self._decide(event)))
        await session.send("Fetch.enable", DOCUMENTS)
        self._holding = True

    async def release(self) -> None:
        if self._holding:
            self._holding = False
            with contextlib.suppress(Exception):
                await self._worlds.session.send("Fetch.disable")

    async def _decide(self, event: Mapping[str, Any]) -> None:
        request = {"requestId": event["requestId"]}
        with contextlib.suppress(Exception):
            if event["request"]["method"] == "POST" and self._holding:
                self.held = self.held or str(event["request"]["url"])
                sent = {**request, "errorReason": "Aborted"}
                await self._worlds.session.send("Fetch.failRequest", sent)
            else:
                await self._worlds.session.send("Fetch.continueRequest", request)
