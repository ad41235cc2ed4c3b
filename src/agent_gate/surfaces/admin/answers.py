"""`/answer/<token>`: the page behind a link in a message. Looking at it changes nothing; confirming it answers.

The token is the key: it was made by this gateway for one question, one channel and one choice, and it is used up
when the question is answered, by whomever.
"""

import html
import logging
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256

from agent_gate.approval.channels.buttons import ANSWERS, LABELS, Buttons, Pressed, answer_of
from agent_gate.approval.grants import describe
from agent_gate.approval.inbox import Inbox
from agent_gate.approval.render import card, lines
from agent_gate.core.approval import Answer, Approval
from agent_gate.core.call import State
from agent_gate.core.ports import Clock
from agent_gate.errors import GatewayError, InvalidArgs, Unauthorized
from agent_gate.net.http import Header, Request, Response, parse_query
from agent_gate.observe.metrics import Metrics

log = logging.getLogger("agent_gate.answers")
PREFIX = "/answer/"
STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui;max-width:44rem;margin:2rem auto;padding:0 1rem}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#8882;padding:1rem}label{display:block;margin:.5rem 0}"
    "button{font:inherit;padding:.5rem 1rem;margin:.5rem .5rem 0 0}input{font:inherit;padding:.4rem;width:100%}"
)
STYLE_HASH = b64encode(sha256(STYLE.encode()).digest()).decode()
HEADERS: tuple[Header, ...] = (
    (
        b"content-security-policy",
        f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'".encode(),
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
NOT_VALID = "This link is not valid. Answer on the operator's page, or with `agent-gate approvals`"
WHOLE = 1 << 20


def page(status: int, title: str, body: str) -> Response:
    """A small page without scripts; `body` is HTML already."""
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
    view = f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
    text = f"{head}{view}<h1>{html.escape(title)}</h1>{body}</html>"
    return Response(status, text.encode("utf-8", "replace"), HEADERS, b"text/html; charset=utf-8")


def said(error: GatewayError) -> Response:
    return page(error.status, "Nothing was changed", f"<p>{html.escape(error.message)}</p>")


class Answers:
    """`channels` names whose word the links of each channel carry."""

    def __init__(
        self,
        buttons: Buttons,
        inbox: Inbox,
        clock: Clock,
        metrics: Metrics,
        *,
        channels: Callable[[], Mapping[str, str]],
        answer: Callable[[str, Answer], Awaitable[Approval]],
        check_passphrase: Callable[[str, str | None], bool],
    ) -> None:
        self._buttons, self._inbox, self._clock, self._metrics = buttons, inbox, clock, metrics
        self._channels, self._answer, self._check = channels, answer, check_passphrase

    async def handle(self, request: Request) -> Response:
        try:
            channel, pressed = self._read(request.path.removeprefix(PREFIX))
            approval = await self._inbox.get(pressed.approval_id)
            if approval is None:
                raise InvalidArgs(NOT_VALID)
            if request.method == "POST":
                return await self._confirmed(request, channel, pressed)
        except GatewayError as error:
            self._metrics.answers_refused.add("link", error.code.lower())
            return said(error)
        return self._shown(approval, channel, pressed)

    def _read(self, token: str) -> tuple[str, Pressed]:
        for channel in self._channels():
            pressed = self._buttons.read(channel, token)
            if pressed is not None:
                return channel, pressed
        log.warning("A link that this gateway did not make was followed")
        raise InvalidArgs(NOT_VALID)

    def _shown(self, approval: Approval, channel: str, pressed: Pressed) -> Response:
        shown = card(approval)
        text = "\n".join(lines(shown, self._clock.now(), WHOLE))
        body = f"<pre>{html.escape(text)}</pre>"
        if approval.state is not State.PENDING:
            return page(200, "This question is closed", body)
        choices: list[str] = (
            [pressed.action] if pressed.action in ANSWERS else ["once", "hour", "always", "deny"]
        )
        return page(200, shown.title()[:200], body + self._form(approval, choices, self._channels()[channel]))

    def _form(self, approval: Approval, choices: list[str], person: str) -> str:
        buttons = "".join(
            f'<p><button name="choice" value="{choice}">{LABELS[choice]}</button>'
            f"{html.escape(describe(approval, choice) if choice != 'deny' else 'The call does not run.')}</p>"  # type: ignore[arg-type]
            for choice in choices
        )
        asks = not self._check(person, None)
        secret = '<label>Passphrase<input type="password" name="passphrase" required></label>' if asks else ""
        reason = '<label>Reason (optional)<input name="reason" maxlength="500"></label>'
        return f'<form method="post">{reason}{secret}{buttons}</form>'

    async def _confirmed(self, request: Request, channel: str, pressed: Pressed) -> Response:
        """The answer itself: the choice of the link, or one of those its page offered."""
        form = parse_query(request.body.decode("ascii", "replace"))
        choice = form.get("choice", pressed.action)
        if choice not in ANSWERS or (pressed.action != "choose" and choice != pressed.action):
            raise InvalidArgs("This link cannot give that answer")
        person = self._channels()[channel]
        if not self._check(person, form.get("passphrase")):
            raise Unauthorized("This gateway wants the approver's passphrase with every answer")
        answered = await self._answer(
            pressed.approval_id, answer_of(choice, person, channel, form.get("reason", ""))
        )
        return page(200, card(answered).outcome(), f"<pre>{html.escape(card(answered).signature)}</pre>")
