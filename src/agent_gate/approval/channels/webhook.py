"""The webhook channel: each question, and how it ended, posted as signed JSON with links that answer it.

The signature follows the Standard Webhooks convention, so that existing libraries verify it. A repeated delivery
carries the same `webhook-id`. A link answers only after its page was confirmed, because previews follow links too.
"""

import hmac
import re
from base64 import b64decode, b64encode
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from agent_gate.approval.channels.buttons import LABELS, Action
from agent_gate.approval.channels.chat import ROOMS
from agent_gate.approval.channels.desk import Desk
from agent_gate.approval.channels.kind import ChannelKind, ChannelSettings
from agent_gate.approval.numbers import offered_numbers
from agent_gate.approval.render import Card, clip, lines
from agent_gate.core.approval import Approval
from agent_gate.core.notes import ADDRESS, GIVEN, SECRET
from agent_gate.core.tool import Json
from agent_gate.errors import UpstreamError
from agent_gate.net.addresses import is_here
from agent_gate.net.pool import Target, check_headers, retry_after
from agent_gate.observe.redact import mask_arguments

SECONDS = 15.0
MAX_REPLY = 1 << 20
PLACEHOLDER = re.compile(r"\{(\w+)\}")
OFFERED: tuple[Action, ...] = ("once", "hour", "always", "deny")
ONCE_OR_NOT: tuple[Action, ...] = ("once", "deny")
SLACK_TEXT = 2700
NTFY_TEXT = 3800
TITLE = 200
NO_LINKS = "\nAnswer on the gateway's own machine. For links that work here set admin.public_url"
CUT = "\n… cut here. The whole question, of {} characters, is behind the link and on the operator's page"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings(ChannelSettings):
    """A URL that is told of each question, with links to answer it."""

    url: Annotated[str, "Where each question is posted as JSON.", ADDRESS]
    secret: Annotated[str, "Key of the HMAC signature on what is posted.", SECRET] = field(
        default="", repr=False
    )
    headers: Annotated[Mapping[str, str], "More headers to send.", SECRET] = field(
        default_factory=dict, repr=False
    )
    format: Annotated[
        Literal["json", "ntfy", "slack"], "What is posted: everything as JSON, or what ntfy or Slack take."
    ] = "json"
    template: Annotated[
        Mapping[str, Any],
        "The JSON to post instead; `{text}`, `{signature}`, `{answer_url}` and so on are filled in.",
    ] = field(default_factory=dict)
    person: Annotated[str, "Whose answer it is when somebody follows one of its links."] = "operator"
    answer_url: Annotated[
        str | None,
        "Address for this channel's links instead of `admin.public_url`; null: that, or where the page listens.",
    ] = None
    signing_secret: Annotated[
        str, "Slack's signing secret: its buttons answer without a browser, through `/slack/NAME`.", SECRET
    ] = field(default="", repr=False)
    name: Annotated[str, "Name in records and logs."] = "webhook"
    type: Annotated[str, "Kind of channel.", GIVEN] = "webhook"


Values = Mapping[str, Json]


def key_of(secret: str) -> bytes:
    """The signing key: `whsec_` and base64 as the convention writes it, or the text itself."""
    if secret.startswith("whsec_"):
        try:
            return b64decode(secret[6:], validate=True)
        except ValueError:
            return secret.encode()
    return secret.encode()


def sign(secret: str, message_id: str, at: int, body: bytes) -> str:
    signed = f"{message_id}.{at}.".encode() + body
    return "v1," + b64encode(hmac.digest(key_of(secret), signed, "sha256")).decode()


def filled(template: Json, values: Values) -> Json:
    """A template with its `{names}` replaced; a text that is one name alone keeps the value's type."""
    if isinstance(template, Mapping):
        return {key: filled(item, values) for key, item in template.items()}
    if isinstance(template, list | tuple):
        return [filled(item, values) for item in template]
    if not isinstance(template, str):
        return template
    whole = PLACEHOLDER.fullmatch(template)
    if whole:
        return values.get(whole[1], template)
    return PLACEHOLDER.sub(lambda found: str(values.get(found[1], found[0])), template)


def in_json(text: str) -> int:
    """Bytes that a text takes inside JSON, which is never less than it takes by itself."""
    return len(msgspec.json.encode(text))


MOST: Mapping[str, tuple[int, Callable[[str], int]]] = {
    "ntfy": (NTFY_TEXT, in_json),
    "slack": (SLACK_TEXT, len),
}
"""The longest text that a service takes, and how it measures."""


def fitted(shown: Card, now: float, most: int, size: Callable[[str], int]) -> str:
    """The card in lines, its values folded until it fits; what is cut even then says so."""
    for room in ROOMS:
        text = "\n".join(lines(shown, now, room, titled=True))
        if size(text) <= most:
            return text
    end = CUT.format(len(text))
    kept = bisect_right(range(len(text)), most, key=lambda length: size(text[:length] + end))
    return text[: kept - 1] + end


def ntfy(values: Values, topic: str) -> Json:
    """What ntfy takes as JSON; three actions are its limit."""
    links = values["answer"]
    view = {"action": "view", "clear": True}
    actions = [
        {**view, "label": LABELS[action], "url": links[action]}
        for action in ("once", "deny")
        if action in links
    ]
    if "choose" in links:
        actions.append({**view, "label": "More…", "url": links["choose"]})
    return {
        "topic": topic,
        "title": values["title"],
        "message": values["text"],
        "actions": actions,
    }


def slack(values: Values) -> Json:
    """Blocks with plain text only, so that nothing in an argument is read as markup.

    A button is a link, or carries its seal to Slack, which posts it back signed.
    """
    text = {"type": "plain_text", "text": f"{values['title']}\n{values['text']}", "emoji": False}
    pressed = values["pressed"]
    buttons = [
        {
            "type": "button",
            "text": {"type": "plain_text", "text": LABELS.get(action, action)},
            "action_id": action,
        }
        | ({"value": pressed[action]} if pressed else {"url": values["answer"][action]})
        for action in (pressed or [action for action in OFFERED if action in values["answer"]])
    ]
    blocks: list[Json] = [{"type": "section", "text": text}]
    return {
        "text": unmarked(values["title"]),
        "mrkdwn": False,
        "blocks": [*blocks, {"type": "actions", "elements": buttons}] if buttons else blocks,
    }


def unmarked(text: str) -> str:
    """A text in which Slack finds no link and nobody to call."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Webhook:
    """One URL. Where nothing says where people reach the answer page, no links are sent."""

    def __init__(self, settings: WebhookSettings, desk: Desk) -> None:
        self.name = settings.name
        self._settings, self._desk = settings, desk
        url, _, query = settings.url.partition("?")
        self._topic = ""
        if settings.format == "ntfy":
            url, _, self._topic = url.rstrip("/").rpartition("/")
        self._target = Target.parse(url)
        slash = "" if self._target.base else "/"
        self._path = f"{slash}?{query}".encode("ascii") if query else b""
        self._headers = {b"content-type": b"application/json"} | {
            name.lower().encode("ascii"): value.encode("latin-1") for name, value in settings.headers.items()
        }
        check_headers(list(self._headers.items()))

    async def ask(self, approval: Approval) -> str:
        message = f"{approval.id}.asked"
        await self._post(message, approval)
        return message

    async def show_end(self, approval: Approval, message: str) -> None:
        if self._settings.signing_secret and approval.answered.channel == self.name:
            return  # the press itself put the end into its message
        await self._post(f"{message.partition('.')[0]}.resolved", approval)

    async def run(self) -> None:
        """Answers come in through the admin listener; there is nothing to wait for."""

    def links(self, approval: Approval) -> dict[str, str]:
        base = (self._settings.answer_url or self._desk.page() or "").rstrip("/")
        if not base or approval.state != "pending" or self._only_here(base):
            return {}
        actions: tuple[Action, ...] = (*(ONCE_OR_NOT if approval.asked.number else OFFERED), "choose")
        return {
            action: f"{base}/answer/{sealed}" for action, sealed in self._sealed(approval, actions).items()
        }

    def _sealed(self, approval: Approval, actions: Iterable[Action]) -> dict[str, str]:
        return {action: self._desk.buttons.make(self.name, approval.id, action) for action in actions}

    def _only_here(self, base: str) -> bool:
        """Whether links would lead whoever reads them on a phone to the phone itself."""
        return self._settings.format != "json" and is_here(urlsplit(base).hostname or "")

    def _pressed(self, approval: Approval) -> dict[str, str]:
        """What each button of Slack carries, where Slack answers for it: a number, where a yes must name one."""
        settings = self._settings
        if settings.format != "slack" or not settings.signing_secret or approval.state != "pending":
            return {}
        numbers = offered_numbers(approval)
        if not numbers:
            return self._sealed(approval, OFFERED)
        seal = self._desk.buttons.make
        yes = {number: seal(self.name, approval.id, "once", number) for number in numbers}
        return yes | self._sealed(approval, ("deny",))

    def _values(self, approval: Approval) -> dict[str, Json]:
        shown: Card = self._desk.card(approval)
        links, pressed = self.links(approval), self._pressed(approval)
        arguments = mask_arguments(approval.arguments, approval.asked.secret)
        return {
            "event": "asked" if shown.open else "resolved",
            "id": approval.id,
            "call": approval.call_id,
            "state": shown.state,
            "title": clip(shown.title() if shown.open else shown.outcome(), TITLE),
            "sentence": shown.sentence,
            "signature": shown.signature,
            "arguments": self._desk.redactor.inside(arguments),
            "arguments_hash": approval.hashes.arguments,
            "agent": shown.agent,
            "risks": list(shown.risks),
            "rule": shown.rule,
            "where": shown.where,
            "expires_at": approval.asked.expires_at,
            "answered_by": shown.answered_by,
            "answered_on": shown.answered_on,
            "answer_reason": shown.answer_reason,
            "text": self._text(shown)
            + ("" if links or pressed or not self._unanswerable(shown) else NO_LINKS),
            "answer": links,
            "pressed": pressed,
            "answer_url": links.get("choose", ""),
        }

    def _unanswerable(self, shown: Card) -> bool:
        return shown.open and self._settings.format != "json"

    def _text(self, shown: Card) -> str:
        now, limit = self._desk.clock.now(), MOST.get(self._settings.format)
        if limit is None or self._settings.template:
            return "\n".join(lines(shown, now))
        return fitted(shown, now, *limit)

    def _body(self, values: Values) -> bytes:
        if self._settings.template:
            return msgspec.json.encode(filled(self._settings.template, values))
        if self._settings.format == "ntfy":
            return msgspec.json.encode(ntfy(values, self._topic))
        if self._settings.format == "slack":
            return msgspec.json.encode(slack(values))
        return msgspec.json.encode(
            {name: value for name, value in values.items() if name not in ("pressed", "answer_url")}
        )

    async def _post(self, message_id: str, approval: Approval) -> None:
        body = self._body(self._values(approval))
        at = int(self._desk.clock.now())
        headers = [
            *self._headers.items(),
            (b"webhook-id", message_id.encode()),
            (b"webhook-timestamp", str(at).encode()),
        ]
        if self._settings.secret:
            headers.append((b"webhook-signature", sign(self._settings.secret, message_id, at, body).encode()))
        reply = await self._desk.pool.request(
            "POST",
            self._target,
            self._path,
            headers,
            body,
            deadline=self._desk.clock.monotonic() + SECONDS,
            max_bytes=MAX_REPLY,
            idempotent=True,
        )
        if not 200 <= reply.status < 300:
            raise UpstreamError(
                f"{self._target.origin} answered {reply.status}", retry_after=retry_after(reply, 0.0)
            )


def doubt_links(settings: WebhookSettings, reachable: bool) -> Iterable[str]:
    """Links and buttons that lead to this machine only, while their messages are read on a phone."""
    if reachable or settings.format == "json" or settings.answer_url:
        return
    pressed = f"Slack cannot bring what is pressed in {settings.name} to /slack/{settings.name}"
    lost = pressed if settings.signing_secret else f"{settings.name} sends no links"
    yield (
        f"{lost}, since only this machine reaches the page; "
        "set admin.public_url to its address for other devices (docs/operator.md)"
    )


def slack_channels(channels: Iterable[ChannelSettings]) -> dict[str, WebhookSettings]:
    """The channels whose buttons Slack posts back, signed with their secret."""
    posted = (one for one in channels if isinstance(one, WebhookSettings) and one.format == "slack")
    return {settings.name: settings for settings in posted if settings.signing_secret}


WEBHOOK = ChannelKind(
    settings=WebhookSettings,
    make=lambda settings, desk, _: Webhook(settings, desk),
    people=lambda settings: [settings.person],
    link_person=lambda settings: settings.person,
    doubts=doubt_links,
)
