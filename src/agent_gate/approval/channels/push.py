"""The push channel: each question, and how it ended, on the devices whose browsers asked for it.

A message goes through the push service of the browser's maker, sealed for the browser alone. Tapping it opens the
question on the operator's page, where it is answered: a push message carries no answer back.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from agent_gate.approval.channels.desk import Desk
from agent_gate.approval.channels.devices import PushDevice
from agent_gate.approval.channels.kind import ChannelKind, ChannelSettings
from agent_gate.approval.render import Card, clip
from agent_gate.core.approval import Approval
from agent_gate.core.notes import GIVEN
from agent_gate.errors import ConfigError, GatewayError, InvalidArgs, UpstreamError
from agent_gate.net.pool import Target, retry_after
from agent_gate.net.webpush import MOST_PLAIN, seal_message, sender_word

SECONDS = 15.0
MAX_REPLY = 1 << 16
GONE = (404, 410)
TITLE, BODY = 120, 1200
ENDS_SHOWN_FOR = 3600
SERVICES = (
    "fcm.googleapis.com",
    "*.push.services.mozilla.com",
    "*.push.apple.com",
    "*.notify.windows.com",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PushSettings(ChannelSettings):
    """Web Push: devices on which somebody who is logged in said *Tell me here*."""

    contact: Annotated[
        str | None,
        "Mail or web address that push services may write to, as `mailto:me@example.org`; null: `admin.public_url`.",
    ] = None
    services: Annotated[
        tuple[str, ...],
        "Push services that messages are sent to: a host, `*.` and a domain, or a whole `https://host:port`.",
    ] = SERVICES
    name: Annotated[str, "Name in records and logs."] = "push"
    type: Annotated[str, "Kind of channel.", GIVEN] = "push"

    def serves(self, address: str) -> bool:
        """Whether messages may be sent to that address: a device names it, the configuration decides."""
        try:
            parts = urlsplit(address)
            host, origin = parts.hostname or "", f"{parts.scheme}://{parts.netloc}"
        except ValueError:
            return False
        if origin in self.services:
            return True
        named = any(
            host.endswith(service[1:]) if service.startswith("*.") else host == service
            for service in self.services
        )
        return named and parts.scheme == "https" and parts.port in (None, 443)


class PushMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What the service worker of the page shows. One with the `tag` of an earlier one takes its place."""

    title: str
    body: str
    tag: str
    open: str
    """The question's path on the page; a worker opens nothing else."""
    quiet: bool = False


TRIAL = PushMessage(
    title="agent-gate reaches you here", body="Questions come like this.", tag="trial", open="/#/now"
)
TRIAL_SECONDS = 60


def fit(message: PushMessage) -> bytes:
    """The message as it is sealed; its text is cut until every push service takes it."""
    body, encoded = message.body, msgspec.json.encode(message)
    while len(encoded) > MOST_PLAIN and body:
        body = body[: len(body) // 2]
        encoded = msgspec.json.encode(msgspec.structs.replace(message, body=f"{body}…"))
    return encoded


def message_of(shown: Card, approval_id: str) -> PushMessage:
    values = "\n".join(f"{argument.name}: {argument.value}" for argument in shown.arguments)
    return PushMessage(
        title=clip(shown.title() if shown.open else shown.outcome(), TITLE),
        body=clip(values if shown.open else shown.sentence or shown.signature, BODY),
        tag=approval_id,
        open=f"/#/approvals/{approval_id}",
        quiet=not shown.open,
    )


async def send_push(
    desk: Desk, settings: PushSettings, device: PushDevice, message: PushMessage, ttl: int
) -> bool:
    """Hand a message to the device's push service; false where the device wants no more and is forgotten."""
    if not settings.serves(device.address):
        raise UpstreamError(f"{settings.name} does not send to the push service of {device.name}")
    target = Target.parse(device.address.partition("?")[0])
    query = device.address.partition("?")[2]
    contact = settings.contact or desk.page() or "https://localhost"
    word = sender_word(await desk.devices.ensure_key(), target.origin, contact, desk.clock.now())
    reply = await desk.pool.request(
        "POST",
        target,
        f"?{query}".encode("ascii") if query else b"",
        [
            (b"content-type", b"application/octet-stream"),
            (b"content-encoding", b"aes128gcm"),
            (b"authorization", word.encode("ascii")),
            (b"ttl", str(max(0, ttl)).encode()),
            (b"urgency", b"normal" if message.quiet else b"high"),
            (b"topic", message.tag.encode("ascii")),
        ],
        seal_message(fit(message), device.p256dh, device.auth),
        deadline=desk.clock.monotonic() + SECONDS,
        max_bytes=MAX_REPLY,
        idempotent=True,
    )
    if reply.status in GONE:
        await desk.devices.remove(device.id)
        return False
    if not 200 <= reply.status < 300:
        raise UpstreamError(
            f"{target.origin} answered {reply.status} to a push message", retry_after=retry_after(reply, 0.0)
        )
    return True


class Push:
    """Every device of those who may answer; what one was told already is not sent to it again."""

    def __init__(self, settings: PushSettings, desk: Desk) -> None:
        self.name = settings.name
        self._settings, self._desk = settings, desk
        self._told: dict[tuple[str, bool], set[str]] = {}

    async def ask(self, approval: Approval) -> str:
        left = approval.asked.expires_at - self._desk.clock.now()
        await self._tell_all(approval, int(left) if approval.asked.expires_at else ENDS_SHOWN_FOR)
        return approval.id

    async def show_end(self, approval: Approval, message: str) -> None:
        self._told.pop((message, True), None)
        await self._tell_all(approval, ENDS_SHOWN_FOR)

    async def run(self) -> None:
        """Answers come in through the page; there is nothing to wait for."""

    async def _tell_all(self, approval: Approval, ttl: int) -> None:
        shown = self._desk.card(approval)
        message = message_of(shown, approval.id)
        told = self._told.setdefault((approval.id, shown.open), set())
        failed: GatewayError | None = None
        for device in await self._desk.devices.read_for(approval):
            if device.id in told:
                continue
            try:
                await send_push(self._desk, self._settings, device, message, ttl)
                told.add(device.id)
            except GatewayError as error:
                failed = error
        if failed is not None:
            raise failed
        self._told.pop((approval.id, shown.open), None)


class Pushing:
    """The devices as the people who use them handle them: each sees and changes only their own."""

    def __init__(self, desk: Desk, channels: Callable[[], Iterable[ChannelSettings]]) -> None:
        self._desk, self._channels = desk, channels

    def settings(self) -> PushSettings | None:
        """The channel on which devices are told; None where the configuration has none."""
        return next((one for one in self._channels() if isinstance(one, PushSettings)), None)

    async def read_key(self) -> str:
        return await self._desk.devices.read_key() if self.settings() is not None else ""

    async def read_of(self, person: str) -> list[PushDevice]:
        return await self._desk.devices.read_of(person)

    async def add(self, person: str, name: str, address: str, p256dh: str, auth: str) -> PushDevice:
        check_address(self.settings(), address)
        return await self._desk.devices.add(person, name, address, p256dh, auth)

    async def remove(self, person: str, device: str) -> None:
        await self._desk.devices.remove((await self._find(person, device)).id)

    async def try_out(self, person: str, device: str) -> bool:
        """Send a message that asks nothing; false where the device takes none any more."""
        found = await self._find(person, device)
        settings = check_address(self.settings(), found.address)
        return await send_push(self._desk, settings, found, TRIAL, TRIAL_SECONDS)

    async def _find(self, person: str, device: str) -> PushDevice:
        found = next((one for one in await self.read_of(person) if one.id == device), None)
        if found is None:
            raise InvalidArgs("This device is told nothing; it may have been taken away")
        return found


def check_services(settings: PushSettings) -> None:
    for service in settings.services:
        if "://" in service:
            Target.parse(service)
        elif not service.strip("*."):
            raise ConfigError(f'{settings.name}: "{service}" in services is no host')


def check_address(settings: PushSettings | None, address: str) -> PushSettings:
    """A device's push service must be one that the configuration names."""
    if settings is None:
        raise InvalidArgs("Push is off. Add `channels: [{type: push}]` to config.yaml")
    if not settings.serves(address):
        raise InvalidArgs(
            f"{urlsplit(address).hostname or 'This'} is not among the push services of `{settings.name}`. "
            "Name it below `services` of that channel in config.yaml"
        )
    return settings


def doubt_reach(settings: PushSettings, reachable: bool) -> Iterable[str]:
    """Browsers take push messages for pages with a certificate they trust, on devices that reach the page."""
    if not reachable:
        yield (
            f"{settings.name} reaches only browsers on this machine; "
            "set admin.public_url to the page's address for other devices (docs/operator.md)"
        )


def make_push(settings: PushSettings, desk: Desk) -> Push:
    check_services(settings)
    return Push(settings, desk)


PUSH = ChannelKind(
    settings=PushSettings, make=lambda settings, desk, _: make_push(settings, desk), doubts=doubt_reach
)
