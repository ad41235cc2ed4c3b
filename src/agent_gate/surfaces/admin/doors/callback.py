"""`/auth/callback`: where a browser ends after a sign-in. Nothing of what it brings is shown again.

It comes without a login: the state that it carries is random, known only to whoever was given the link, and good once.
"""

import html
import logging

from agent_gate.errors import GatewayError
from agent_gate.net.http import Request, Response, refusal
from agent_gate.surfaces.admin.admin import SignInDesk
from agent_gate.surfaces.admin.doors.answers import page

log = logging.getLogger("agent_gate.callback")
PATH = "/auth/callback"
LONGEST = 4096
PASTE = (
    "<p>If this page was opened on another device than the one that you began on, copy the whole address from the "
    "browser's address bar and paste it there: on the operator's page, after <code>agent-gate auth code</code>, or "
    "into the chat with your agent.</p>"
)


class Callback:
    """Finishes a sign-in, and says only whether that worked."""

    def __init__(self, sign_ins: SignInDesk) -> None:
        self._sign_ins = sign_ins

    async def handle(self, request: Request) -> Response:
        if request.method != "GET":
            return refusal(405, "INVALID_ARGS", "Only GET is offered here", ((b"allow", b"GET"),))
        came = {name: value for name, value in request.params().items() if len(value) <= LONGEST}
        state, code = came.get("state", ""), came.get("code", "")
        if state and came.get("error"):
            await self._sign_ins.turned_away(state)
            return page(200, "Not signed in", "<p>The other side said no. Nothing was connected.</p>")
        if not state or not code:
            return page(400, "Nothing to do here", "<p>This address is for the end of a sign-in.</p>")
        try:
            source = await self._sign_ins.came_back(state, code, came.get("iss"))
        except GatewayError as error:
            log.warning("A sign-in could not be finished", extra={"why": error.message})
            return page(
                400, "The sign-in could not be finished", f"<p>{html.escape(error.message)}.</p>{PASTE}"
            )
        return page(
            200, "Signed in", f"<p>{html.escape(source)} has its account. You can close this page.</p>"
        )
