"""Channel settings into channels that the dispatcher serves, and the people who answer on them."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from agent_gate.approval.channels.desk import Desk
from agent_gate.approval.channels.dispatcher import ToldChannel
from agent_gate.approval.channels.kind import ChannelSettings
from agent_gate.approval.channels.quiet import Quiet
from agent_gate.approval.channels.registry import CHANNELS
from agent_gate.core.ports import Channel


class KnownPerson(Protocol):
    """Someone who answers; `known_by` is what the kinds of channel know them by."""

    @property
    def known_by(self) -> Mapping[str, int | str]: ...


def make_channels(
    channels: Iterable[ChannelSettings], people: Mapping[str, KnownPerson], desk: Desk
) -> list[ToldChannel]:
    """The channels as the configuration has them; a mistake in one is a `ConfigError`."""
    return [
        ToldChannel(
            channel=make_channel(settings, people, desk),
            after=settings.after,
            quiet=Quiet(settings.quiet) if settings.quiet is not None else None,
        )
        for settings in channels
    ]


def make_channel(settings: ChannelSettings, people: Mapping[str, KnownPerson], desk: Desk) -> Channel:
    kind = settings.type
    names = {person.known_by[kind]: name for name, person in people.items() if kind in person.known_by}
    return CHANNELS[kind].make(settings, desk, names)


def channel_people(channels: Iterable[ChannelSettings]) -> set[str]:
    """The names that answers on these channels carry beside those under `people:`."""
    return {name for settings in channels for name in CHANNELS[settings.type].people(settings)}


def link_people(channels: Iterable[ChannelSettings]) -> dict[str, str]:
    """The channels that send links, and whose word their links carry."""
    persons = ((settings.name, CHANNELS[settings.type].link_person(settings)) for settings in channels)
    return {name: person for name, person in persons if person is not None}
