"""`/answer/<token>`: the page behind a link in a message. Looking at it changes nothing; confirming it answers.

The token is the key: it was made by this gateway for one question, one channel and one choice, and it is used up
when the question is answered, by whomever.
"""

import html
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from agent_gate.approval.channels.buttons import ANSWERS, Buttons, Pressed, answer_of
from agent_gate.approval.channels.webhook import TITLE
from agent_gate.approval.grants import describe
from agent_gate.approval.inbox import Inbox
from agent_gate.approval.render import card, clip, fate, lines, visible
from agent_gate.core.approval import Answer, Approval
from agent_gate.core.call import Outcome, State
from agent_gate.core.ports import Clock
from agent_gate.errors import GatewayError, InvalidArgs, RateLimited, Unauthorized
from agent_gate.net.http import Request, Response
from agent_gate.net.media import FORM, refuse_media
from agent_gate.net.scriptless import COLOURS, headers_for
from agent_gate.observe.metrics import Metrics

log = logging.getLogger("agent_gate.answers")
PREFIX = "/answer/"
STYLE = COLOURS + (
    "body{font:16px/1.5 system-ui,sans-serif;background:var(--ground);color:var(--ink);max-width:44rem;margin:0 auto;padding:1rem}"
    ".fault{color:var(--you);font-weight:600}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--sunk);border:1px solid var(--line);border-radius:6px;padding:.75rem;font-size:.88rem;unicode-bidi:plaintext}"
    "label{display:block;margin:.75rem 0;color:var(--soft)}"
    "input,button{font:inherit;color:inherit;background:var(--ground);border:1px solid var(--line);border-radius:6px;box-sizing:border-box;width:100%;min-height:2.75rem;padding:.4rem .75rem}"
    "button{margin-top:1rem;text-align:left;cursor:pointer}button[value=once]{background:var(--ink);color:var(--ground)}"
    "p.says{margin:.25rem 0 0;color:var(--soft);overflow-wrap:anywhere}"
)
HEADERS = headers_for(STYLE)
NOT_VALID = "This link is not valid. Answer on the operator's page, or with `agent-gate approvals`"
WHOLE = 1 << 20
SPELLED = {
    "once": "Approve once",
    "session": "Approve this session",
    "hour": "Approve for one hour",
    "always": "Approve always",
    "deny": "Deny",
}
NUMBER_FIELD = (
    '<label>Number that the browser shows<input name="number" inputmode="numeric" autocomplete="off" '
    'maxlength="2"></label>'
)
NO_DEFAULT = "<button disabled hidden></button>"
"""Enter in a field presses a form's first button; this one takes it, so that typing a reason never says yes."""


def page(status: int, title: str, body: str) -> Response:
    """A small page without scripts; `body` is HTML already."""
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
    view = f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style>'
    text = f"{head}{view}<main><h1>{html.escape(title)}</h1>{body}</main></html>"
    return Response(status, text.encode("utf-8", "replace"), HEADERS, b"text/html; charset=utf-8")


def said(error: GatewayError) -> Response:
    return page(error.status, "Nothing was changed", f"<p>{html.escape(error.message)}</p>")


def offered(pressed: Pressed, approval: Approval) -> tuple[str, ...]:
    """What the link's page can answer; a no is always among it."""
    if approval.asked.number:
        return ("deny",) if pressed.action == "deny" else ("once", "deny")
    if pressed.action not in ANSWERS:
        return ("once", "hour", "always", "deny")
    return (pressed.action,) if pressed.action == "deny" else (pressed.action, "deny")


def meaning(approval: Approval, choice: str) -> str:
    return "The call does not run." if choice == "deny" else describe(approval, ANSWERS[choice][1])


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
        became: Callable[[Approval], Awaitable[Outcome | None]],
        check_passphrase: Callable[[str, str | None], bool],
    ) -> None:
        self._buttons, self._inbox, self._clock, self._metrics = buttons, inbox, clock, metrics
        self._channels, self._answer, self._became = channels, answer, became
        self._check = check_passphrase

    async def handle(self, request: Request) -> Response:
        try:
            channel, pressed = self._read(request.path.removeprefix(PREFIX))
            approval = await self._inbox.get(pressed.approval_id)
            if approval is None:
                raise InvalidArgs(NOT_VALID)
            if request.method == "POST":
                return await self._post(request, approval, channel, pressed)
        except GatewayError as error:
            self._metrics.answers_refused.add("link", error.code.lower())
            return said(error)
        return self._shown(approval, channel, pressed)

    async def _post(self, request: Request, approval: Approval, channel: str, pressed: Pressed) -> Response:
        """The end of the question; where the passphrase was wrong, the question once more with those words."""
        if refused := refuse_media(request, FORM):
            return refused
        form = request.form()
        try:
            return await self._confirm(form, channel, pressed, approval)
        except (Unauthorized, RateLimited) as error:
            self._metrics.answers_refused.add("link", error.code.lower())
            return self._shown(approval, channel, pressed, error, form.get("reason", ""))

    def _read(self, token: str) -> tuple[str, Pressed]:
        for channel in self._channels():
            pressed = self._buttons.read(channel, token)
            if pressed is not None:
                return channel, pressed
        log.warning("A link that this gateway did not make was followed")
        raise InvalidArgs(NOT_VALID)

    def _shown(
        self,
        approval: Approval,
        channel: str,
        pressed: Pressed,
        fault: GatewayError | None = None,
        reason: str = "",
    ) -> Response:
        shown = card(approval)
        text = "\n".join(lines(shown, self._clock.now(), WHOLE, titled=shown.open))
        body = f"<pre>{html.escape(text)}</pre>"
        if approval.state is not State.PENDING:
            return page(200, "This question is closed", body)
        if fault is not None:
            body = f'<p class="fault" role="alert">Not answered yet. {html.escape(fault.message)}.</p>{body}'
        form = self._form(approval, offered(pressed, approval), self._channels()[channel], reason)
        return page(fault.status if fault else 200, clip(shown.title(), TITLE), body + form)

    def _form(self, approval: Approval, choices: Sequence[str], person: str, reason: str) -> str:
        buttons = "".join(
            f'<button name="choice" value="{choice}" aria-describedby="{choice}">{SPELLED[choice]}</button>'
            f'<p class="says" id="{choice}">{html.escape(meaning(approval, choice))}</p>'
            for choice in choices
        )
        asks = not self._check(person, None)
        secret = (
            '<label>Passphrase<input type="password" name="passphrase" autocomplete="off" required></label>'
            if asks
            else ""
        )
        why = f'<label>Reason (optional)<input name="reason" maxlength="500" value="{html.escape(reason)}"></label>'
        number = NUMBER_FIELD if approval.asked.number and "once" in choices else ""
        return f'<form method="post">{NO_DEFAULT}{why}{number}{secret}{buttons}</form>'

    async def _confirm(
        self, form: Mapping[str, str], channel: str, pressed: Pressed, approval: Approval
    ) -> Response:
        """The answer itself: the choice of the link, or one of those its page offered."""
        choice = form.get("choice", pressed.action)
        if choice not in offered(pressed, approval):
            raise InvalidArgs("This link cannot give that answer")
        person = self._channels()[channel]
        if not self._check(person, form.get("passphrase")):
            raise Unauthorized("This gateway wants the approver's passphrase with every answer")
        said = answer_of(choice, person, channel, form.get("reason", ""), form.get("number", ""))
        answered = await self._answer(pressed.approval_id, said)
        became = html.escape(visible(fate(answered, await self._became(answered))))
        shown = f"<pre>{html.escape(card(answered).signature)}</pre>\n<p>{became}</p>"
        return page(200, card(answered).outcome(), shown)
