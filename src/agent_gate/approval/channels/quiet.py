"""Quiet hours: a time of day in which a channel does not push."""

from datetime import datetime, time, timedelta, tzinfo
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agent_gate.errors import ConfigError


class Hours(Protocol):
    """`start` and `end` as `22:00`; `timezone` None is that of the machine."""

    @property
    def start(self) -> str: ...
    @property
    def end(self) -> str: ...
    @property
    def timezone(self) -> str | None: ...


def zone_of(name: str | None) -> tzinfo | None:
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise ConfigError(
            f"There is no time zone called {name[:60]}; write one such as Europe/Berlin"
        ) from None


def time_of(text: str) -> time:
    try:
        return time.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{text[:20]!r} is no time of day; write it as 22:00") from None


class Quiet:
    """The hours, read once."""

    def __init__(self, hours: Hours) -> None:
        self._start, self._end = time_of(hours.start), time_of(hours.end)
        self._zone = zone_of(hours.timezone)

    def until(self, now: float) -> float | None:
        """When the quiet ends that holds at `now`; None when it does not hold."""
        # Without a zone these are naive, which is how the machine's own changes of the clock are counted in.
        today = datetime.fromtimestamp(now, self._zone).date()
        for day in (today - timedelta(days=1), today):
            begins = datetime.combine(day, self._start, self._zone)
            ends = datetime.combine(day, self._end, self._zone)
            if ends <= begins:
                ends += timedelta(days=1)
            if begins.timestamp() <= now < ends.timestamp():
                return ends.timestamp()
        return None
