"""Quiet hours: a time of day in which a channel does not push."""

from datetime import datetime, time, timedelta

from agent_gate.approval.channels.kind import QuietHours, time_zone


class Quiet:
    """The hours, read once."""

    def __init__(self, hours: QuietHours) -> None:
        self._start, self._end = time.fromisoformat(hours.start), time.fromisoformat(hours.end)
        self._zone = time_zone(hours.timezone) if hours.timezone is not None else None

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
