"""`/auth/callback`: where a browser ends after a sign-in. It shows nothing of what it was sent but a plain code.

It comes without a login: the state that it carries is random, known only to whoever was given the link, and good once.
A code is shown where this gateway knows nothing of the sign-in, so that it can be pasted where that was begun.
"""

import html
import logging
import re
from urllib.parse import urlencode

from agent_gate.errors import GatewayError
from agent_gate.net.http import Request, Response, json_response, refusal
from agent_gate.surfaces.admin.admin import AccountDesk
from agent_gate.surfaces.admin.doors.answers import page
from agent_gate.surfaces.listeners import CLIENT_DOCUMENT, Listeners
from agent_gate.vault.oauth.clients import client_document

log = logging.getLogger("agent_gate.callback")
PATH = "/auth/callback"
LONGEST = 4096
SURFACE = "callback"
PLAIN_CODE = re.compile(r"[A-Za-z0-9._~/+=-]{1,1024}")
BROUGHT = ("state", "code", "iss", "error")
PASTE = (
    "<p>If you began this sign-in elsewhere, finish it there: paste {what} on the operator's page, after "
    "<code>agent-gate auth code</code>, or into the chat with your agent.</p>"
    "<p>It is good for a few minutes, and only for the sign-in that you began.</p>"
)


class Callback:
    """Finishes a sign-in, and says only whether that worked."""

    def __init__(self, sign_ins: AccountDesk, listeners: Listeners) -> None:
        self._sign_ins, self._listeners = sign_ins, listeners

    def describe(self) -> Response:
        """Who the gateway is to authorization servers, for those that look it up."""
        url = self._listeners.client_document_url()
        if url is None:
            return refusal(404, "VIEW_FAILED", "This gateway has no public address; see admin.callback_url")
        return json_response(200, client_document(url, self._listeners.callback_url()))

    async def handle(self, request: Request) -> Response:
        if request.path == CLIENT_DOCUMENT:
            return self.describe()
        if request.method != "GET":
            return refusal(405, "INVALID_ARGS", "Only GET is offered here", ((b"allow", b"GET"),))
        came = {name: value for name, value in request.params().items() if len(value) <= LONGEST}
        state, code = came.get("state", ""), came.get("code", "")
        if not state or not (code or came.get("error")):
            return page(400, "Nothing to do here", "<p>This address is for the end of a sign-in.</p>")
        try:
            source, person = await self._sign_ins.find_owner(state)
        except GatewayError as error:
            return unknown(error, "" if "iss" in came else code)
        answer = urlencode({name: came[name] for name in BROUGHT if name in came})
        outcome = await self._sign_ins.calls.finish(source, person, answer, SURFACE)
        if outcome.error is None:
            body = f"<p>{html.escape(source)} has its account. You can close this page.</p>"
            return page(200, "Signed in", body)
        if came.get("error"):
            return page(200, "Not signed in", "<p>The other side said no. Nothing was connected.</p>")
        log.warning("A sign-in could not be finished", extra={"why": outcome.error.message})
        return page(400, "The sign-in could not be finished", f"<p>{html.escape(outcome.error.message)}.</p>")


def unknown(error: GatewayError, code: str) -> Response:
    """The page for a sign-in that was not begun here, or is over: what to do with its code, which alone will do where
    the server does not say who it is."""
    plain = PLAIN_CODE.fullmatch(code)
    what = f"the code <code>{code}</code>" if plain else "the whole address of this page"
    said = f"<p>{html.escape(error.message)}.</p>"
    return page(400, "The sign-in could not be finished", said + PASTE.format(what=what))
