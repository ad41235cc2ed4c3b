"""`/slack/NAME`: a button pressed in Slack, posted by Slack and signed with the secret of the channel NAME.

The button's value is sealed by this gateway for one question and one answer; the signature says that it was pressed
in that workspace just now. What became of it is posted back to where Slack says, so that the message shows it.
"""

import hmac
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from agent_gate.approval.channels.buttons import ANSWERS, Buttons, answer_of
from agent_gate.approval.channels.webhook import WebhookSettings, unmarked
from agent_gate.approval.render import card, fate
from agent_gate.core.approval import Answer, Approval
from agent_gate.core.call import Outcome
from agent_gate.core.ports import Clock
from agent_gate.errors import Forbidden, GatewayError, InvalidArgs, Unauthorized
from agent_gate.net.http import JSON, Request, Response, error_response, json_response, refusal
from agent_gate.net.media import FORM, refuse_media
from agent_gate.net.pool import Pool, Target

log = logging.getLogger("agent_gate.answers")
PREFIX = "/slack/"
FRESH = 300.0
REPLY_SECONDS = 2.0
LONGEST_REPLY = 1 << 16
SOON = 1.0
"""How long a press may wait to say what became of the call; Slack itself waits for three seconds."""
BROWSER = "Your answer needs a passphrase, which Slack must not see. Answer on the operator's page"


class SlackPress(msgspec.Struct):
    value: str = ""


class SlackUser(msgspec.Struct):
    id: str = ""
    username: str = ""


class SlackPayload(msgspec.Struct):
    """What Slack posts when a button is pressed, as far as it matters here."""

    actions: list[SlackPress] = []
    user: SlackUser = msgspec.field(default_factory=SlackUser)
    response_url: str = ""


def is_signed(secret: str, request: Request, now: float) -> bool:
    """Whether Slack signed this request, and not long ago."""
    at = (request.header(b"x-slack-request-timestamp") or b"").decode("latin-1")
    given = (request.header(b"x-slack-signature") or b"").decode("latin-1")
    if not at.isascii() or not at.isdigit() or len(at) > 12 or abs(now - int(at)) > FRESH:
        return False
    made = "v0=" + hmac.new(secret.encode(), b"v0:%b:%b" % (at.encode(), request.body), "sha256").hexdigest()
    return hmac.compare_digest(made.encode(), given.encode("utf-8"))


class SlackButtons:
    """Reads the channels anew for each request, so that a reload counts at once."""

    def __init__(
        self,
        buttons: Buttons,
        clock: Clock,
        pool: Pool,
        *,
        channels: Callable[[], Mapping[str, WebhookSettings]],
        answer: Callable[[str, Answer], Awaitable[Approval]],
        became: Callable[[Approval], Awaitable[Outcome | None]],
        check_passphrase: Callable[[str, str | None], bool],
    ) -> None:
        self._buttons, self._clock, self._pool = buttons, clock, pool
        self._channels, self._answer, self._became = channels, answer, became
        self._check = check_passphrase

    async def handle(self, request: Request) -> Response:
        if request.method != "POST":
            return refusal(405, "INVALID_ARGS", "Slack posts here", ((b"allow", b"POST"),))
        if refused := refuse_media(request, FORM):
            return refused
        name = request.path.removeprefix(PREFIX)
        channel = self._channels().get(name)
        if channel is None or not is_signed(channel.signing_secret, request, self._clock.now()):
            log.warning("A request for Slack's buttons was not signed by Slack", extra={"peer": request.peer})
            return error_response(
                Unauthorized("This request is not signed with this channel's signing_secret")
            )
        try:
            payload = payload_of(request)
        except GatewayError as error:
            return error_response(error)
        await self._tell(channel, payload, await self._answer_press(name, channel.person, payload))
        return json_response(200, {})

    async def _answer_press(self, channel: str, person: str, payload: SlackPayload) -> dict[str, Any]:
        """Hand in the answer; what the message says from now on, or a word to the one who pressed."""
        try:
            answered = await self._take_press(channel, person, payload)
        except GatewayError as error:
            return {"response_type": "ephemeral", "replace_original": False, "text": unmarked(error.message)}
        shown = card(answered)
        became = fate(answered, await self._became(answered))
        return {"replace_original": True, "text": unmarked(f"{shown.title()}\n{shown.outcome()}\n{became}")}

    async def _take_press(self, channel: str, person: str, payload: SlackPayload) -> Approval:
        pressed = self._buttons.read(channel, payload.actions[0].value) if payload.actions else None
        if pressed is None or pressed.action not in ANSWERS:
            raise InvalidArgs("This button was not made by this gateway")
        if not self._check(person, None):
            raise Forbidden(BROWSER)
        by = f"pressed in Slack by {payload.user.username[:60] or payload.user.id[:60] or 'somebody'}"
        return await self._answer(
            pressed.approval_id, answer_of(pressed.action, person, channel, by, pressed.number)
        )

    async def _tell(self, channel: WebhookSettings, payload: SlackPayload, said: Mapping[str, Any]) -> None:
        """Post it to where Slack says, which is where its incoming webhooks are; to no other place."""
        try:
            target = Target.parse(payload.response_url)
            if target.origin != Target.parse(channel.url.partition("?")[0]).origin:
                raise Forbidden(f"it names {target.origin} for replies, which is not where the channel posts")
            await self._pool.request(
                "POST",
                target,
                b"",
                ((b"content-type", JSON),),
                msgspec.json.encode(said),
                deadline=self._clock.monotonic() + REPLY_SECONDS,
                max_bytes=LONGEST_REPLY,
            )
        except GatewayError as error:
            log.warning("Slack was not told what became of a button", extra={"why": error.message})


def payload_of(request: Request) -> SlackPayload:
    try:
        return msgspec.json.decode(request.form().get("payload", ""), type=SlackPayload)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise InvalidArgs("This is not what Slack posts when a button is pressed") from None
