"""When a job is due: five-field cron in a time zone, its short forms, and `@every`.

Where clocks change, it is as with Debian's cron: what falls into the hour that is left out runs right after it, what
falls into the hour that comes twice runs once; jobs of every hour or minute run by the time that really passes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agent_gate.hosts.tools import Refused

EVERY = re.compile(r"@every\s+((?:\d{1,6}[smhd])+)")
PART = re.compile(r"(\d+)([smhd])")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
SHORT = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
LEAST_EVERY, MOST_EVERY = 1, 366 * 86_400


@dataclass(frozen=True, slots=True)
class Schedule:
    """One of both: `every` so many seconds, or a cron expression in a zone."""

    every: int = 0
    cron: str = ""
    zone: str = "UTC"

    @classmethod
    def read(cls, text: str, zone: str) -> "Schedule":
        """What a person wrote, or `Refused` with what is wrong with it."""
        text = " ".join(text.split())
        if text.startswith("@every"):
            return cls(every=read_every(text))
        made = cls(cron=SHORT.get(text.lower(), text), zone=zone)
        if len(made.cron.split()) != 5:
            raise Refused(
                "schedule has five fields (minute hour day month weekday), or is @hourly, @daily, @every 10m"
            )
        made.check_zone()
        next(made.after(0.0))
        return made

    def check_zone(self) -> None:
        try:
            ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise Refused(
                f"There is no time zone {self.zone[:60]!r}; write one such as Europe/Berlin"
            ) from None

    def after(self, moment: float) -> Iterator[float]:
        """The moments it is due after one, in seconds since 1970."""
        if self.every:
            while True:
                moment += self.every
                yield moment
        try:
            from cronsim import CronSim, CronSimError
        except ImportError:
            raise Refused(
                "The cron host needs its extra: pip install 'agent-gate[cron]'", code="DEPENDENCY_UNAVAILABLE"
            ) from None
        start = datetime.fromtimestamp(moment, UTC).astimezone(ZoneInfo(self.zone))
        try:
            for due in CronSim(self.cron, start):
                yield due.timestamp()
        except CronSimError as error:
            raise Refused(f"schedule cannot be read: {error}") from None
        raise Refused("schedule never comes")


def read_every(text: str) -> int:
    found = EVERY.fullmatch(text)
    total = sum(int(n) * SECONDS[unit] for n, unit in PART.findall(found[1])) if found else 0
    if not LEAST_EVERY <= total <= MOST_EVERY:
        raise Refused("@every takes a time such as 90s, 5m or 1h30m, of at most a year")
    return total
