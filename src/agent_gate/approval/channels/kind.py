"""A kind of channel: the settings it takes, how one is made of them, and whose answers it brings."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import time, tzinfo
from typing import TYPE_CHECKING, Annotated, Generic, TypeVar

from agent_gate.core.notes import GIVEN, AtLeast, ReadBy
from agent_gate.core.ports import Channel

if TYPE_CHECKING:
    from agent_gate.approval.channels.desk import Desk


def time_zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo  # it reads how Python was built, for the few who name a zone

    return ZoneInfo(name)


TIME_OF_DAY = ReadBy(time.fromisoformat, "a time of day such as 22:00")
TIME_ZONE = ReadBy(time_zone, "a time zone such as Europe/Berlin")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuietHours:
    """A time of day in which a channel does not push."""

    start: Annotated[str, "Begin, as `22:00`.", TIME_OF_DAY]
    end: Annotated[str, "End, as `07:00`; may be on the next day.", TIME_OF_DAY]
    timezone: Annotated[
        str | None, "Time zone such as `Europe/Berlin`; null: that of the machine.", TIME_ZONE
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSettings:
    """What every channel has; a kind's own class gives `type` and `name` their defaults and adds the rest."""

    type: Annotated[str, "Kind of channel.", GIVEN]
    name: Annotated[str, "Name in records and logs."]
    after: Annotated[float, "Seconds without an answer before this channel is told.", AtLeast(0)] = 0.0
    quiet: Annotated[QuietHours | None, "When it does not push."] = None


@dataclass(frozen=True, slots=True)
class PersonKey:
    """What a person is known by on a kind of channel: the kind's own key in an entry of `people`."""

    type: type[int] | type[str]
    doc: str


S = TypeVar("S", bound=ChannelSettings)
Names = Mapping[int | str, str]
"""Names of people by what they are known by on one kind of channel."""


def nobody(_: ChannelSettings) -> tuple[str, ...]:
    return ()


def no_links(_: ChannelSettings) -> None:
    return None


def no_doubts(_: ChannelSettings, __: bool) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelKind(Generic[S]):
    """`people` are the names that answers carry beside those under `people:`, `link_person` is whose word its links
    carry, None where it sends none. `doubts` are what its settings can hardly mean, where other devices reach the
    page or do not."""

    settings: type[S]
    make: "Callable[[S, Desk, Names], Channel]"
    people: Callable[[S], Iterable[str]] = nobody
    link_person: Callable[[S], str | None] = no_links
    doubts: Callable[[S, bool], Iterable[str]] = no_doubts
    person_key: PersonKey | None = None
