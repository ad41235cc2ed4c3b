"""The admin listener: the page for browsers and the admin API, each behind its login."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import cast

from agent_gate.access.login import Logins, Opened, same_origin
from agent_gate.core.strict import parse
from agent_gate.errors import Forbidden, GatewayError, InvalidArgs, Unauthorized
from agent_gate.net.http import (
    Header,
    HttpAnswer,
    Request,
    Response,
    StreamResponse,
    error_response,
    json_response,
)
from agent_gate.net.media import refuse_media
from agent_gate.surfaces.admin.api import AdminApi
from agent_gate.surfaces.admin.doors.answers import PREFIX as ANSWERS
from agent_gate.surfaces.admin.doors.answers import Answers
from agent_gate.surfaces.admin.doors.callback import PATH as CALLBACK
from agent_gate.surfaces.admin.doors.callback import Callback
from agent_gate.surfaces.admin.doors.page import SECURE, PageFiles
from agent_gate.surfaces.admin.doors.provider import PREFIX as PROVIDER
from agent_gate.surfaces.admin.doors.provider import ProviderDoor
from agent_gate.surfaces.admin.doors.slack import PREFIX as SLACK
from agent_gate.surfaces.admin.doors.slack import SlackButtons
from agent_gate.surfaces.listeners import CLIENT_DOCUMENT

log = logging.getLogger("agent_gate.admin")
API = ("/api/", "/servers")
PLAIN = ("/metrics", "/openapi.json")
PRIVATE: tuple[Header, ...] = (*SECURE, (b"cache-control", b"no-store"))
CHALLENGE: Header = (b"www-authenticate", b'Bearer realm="agent-gate operators"')


class AdminListener:
    """Decides who a request comes from, then hands it to the API or the page."""

    def __init__(
        self,
        api: AdminApi,
        logins: Logins,
        page: PageFiles,
        answers: Answers,
        slack: SlackButtons,
        callback: Callback,
        provider: ProviderDoor,
    ) -> None:
        self._api, self._logins, self._page, self._provider = api, logins, page, provider
        self._answers, self._slack, self._callback = answers, slack, callback

    async def handle(self, request: Request) -> HttpAnswer:
        path = request.path
        if path.startswith(ANSWERS):
            return await self._answers.handle(request)
        if path.startswith(SLACK):
            return await self._slack.handle(request)
        if path in (CALLBACK, CLIENT_DOCUMENT):
            return await self._callback.handle(request)
        if path.startswith(PROVIDER):
            return await self._provider.handle(request)
        try:
            if path == "/api/session" and request.method == "POST":
                return await self._open(request)
            await self._logins.prepare(request)
            if path.startswith(API) or path in PLAIN:
                return await self._operate(request)
        except Unauthorized as error:
            return error_response(error, (*PRIVATE, CHALLENGE))
        except GatewayError as error:
            return error_response(error, PRIVATE)
        return self._page.serve(request, welcome=self._logins.session(request) is not None)

    async def _operate(self, request: Request) -> HttpAnswer:
        visitor = self._logins.enter(request)
        if request.path == "/api/session" and request.method == "DELETE":
            elsewhere = await self._provider.log_out(visitor.session)
            await self._logins.leave(visitor)
            left = {"left": True, "log_out_at": elsewhere}
            return json_response(200, left, (*PRIVATE, self._cookie(request, "", 0)))
        reply = await self._api.handle(request, visitor.person, visitor.channel)
        reply.headers = (*reply.headers, *PRIVATE)
        if isinstance(reply, StreamResponse):
            reply.chunks = self._stream_while_let_in(request, cast(AsyncGenerator[bytes, None], reply.chunks))
        return reply

    async def _stream_while_let_in(
        self, request: Request, chunks: AsyncGenerator[bytes, None]
    ) -> AsyncIterator[bytes]:
        """A stream tells nothing more once the session or token that opened it is gone."""
        async with aclosing(chunks):
            async for chunk in chunks:
                if not self._logins.still(request):
                    return
                yield chunk

    async def _open(self, request: Request) -> Response:
        """A browser follows a one-time link: `{link}` becomes a cookie and the key that goes with it."""
        if not same_origin(request):
            raise Forbidden("Only the operator's own page may send this; its Origin is missing or foreign")
        if refused := refuse_media(request):
            return refused
        body = parse(request.body)
        if not isinstance(body, dict) or not isinstance(body.get("link"), str):
            raise InvalidArgs('Send {"link": SECRET}')
        opened: Opened = await self._logins.redeem(request, body["link"])
        log.info("Somebody logged in on the page", extra={"person": opened.person, "peer": request.peer})
        cookie = self._cookie(request, opened.cookie, opened.seconds)
        return json_response(200, {"key": opened.key, "person": opened.person}, (*PRIVATE, cookie))

    def _cookie(self, request: Request, value: str, seconds: float) -> Header:
        # Behind a proxy the browser alone knows; its Origin was compared with our own before.
        encrypted = request.secure or (request.header(b"origin") or b"").startswith(b"https:")
        name, secure = self._logins.cookie(encrypted=encrypted), "; Secure" if encrypted else ""
        text = f"{name}={value}; Path=/; Max-Age={seconds:.0f}; HttpOnly; SameSite=Strict{secure}"
        return b"set-cookie", text.encode()
