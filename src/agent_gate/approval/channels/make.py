"""Channel settings into places that the dispatcher serves."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent_gate.approval.channels.desk import Desk
from agent_gate.approval.channels.dispatcher import ToldChannel
from agent_gate.approval.channels.quiet import Quiet
from agent_gate.approval.channels.telegram import Telegram
from agent_gate.approval.channels.webhook import Webhook
from agent_gate.core.ports import Channel


def make_places(
    channels: Iterable[Any], people: Mapping[str, Any], desk: Desk, base: Callable[[], str | None]
) -> list[ToldChannel]:
    """The places of `channels` as the configuration has them; a mistake in one is a `ConfigError`."""
    return [
        ToldChannel(
            channel=make(settings, people, desk, base),
            after=settings.after,
            quiet=Quiet(settings.quiet) if settings.quiet is not None else None,
        )
        for settings in channels
    ]


def make(settings: Any, people: Mapping[str, Any], desk: Desk, base: Callable[[], str | None]) -> Channel:
    if settings.type == "telegram":
        names = {person.telegram: name for name, person in people.items() if person.telegram is not None}
        return Telegram(settings, desk, names)
    return Webhook(settings, desk, lambda: (settings.answer_url or base() or "").rstrip("/") or None)


def slack_channels(channels: Iterable[Any]) -> dict[str, Any]:
    """The channels whose buttons Slack posts back, signed with their secret."""
    return {s.name: s for s in channels if s.type == "webhook" and s.format == "slack" and s.signing_secret}


def channel_people(channels: Iterable[Any]) -> set[str]:
    """The names that answers on these channels carry beside those under `people:`."""
    chats = (user for settings in channels if settings.type == "telegram" for user in settings.allowed_users)
    return {*link_people(channels).values(), *(f"telegram:{user}" for user in chats)}


def link_people(channels: Iterable[Any]) -> dict[str, str]:
    """The channels that send links, and whose word their links carry."""
    return {settings.name: settings.person for settings in channels if settings.type == "webhook"}
