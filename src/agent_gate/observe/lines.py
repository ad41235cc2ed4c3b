"""The last lines about each source: what its program printed, and what the gateway logged of it.

They are for a person who looks into trouble, so there are few of them, in memory alone. Whoever shows them masks them.
"""

import logging
import time
from collections import deque
from typing import NamedTuple

MOST_LINES = 100
MOST_SOURCES = 1_000
LONGEST = 500
PROGRAM = "program"


class SourceLine(NamedTuple):
    """`by` is `program` for what a program printed, else the level at which the gateway logged it."""

    at: float
    by: str
    text: str


class SourceLines(logging.Handler):
    """Keeps them; as a handler of the log it hears of every event that names its source."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[str, deque[SourceLine]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        source = getattr(record, "source", None)
        if isinstance(source, str):
            why = getattr(record, "reason", None) or getattr(record, "why", None)
            text = f"{record.getMessage()}: {why}" if why else record.getMessage()
            self.keep(source, text, record.levelname.lower(), record.created)

    def keep(self, source: str, text: str, by: str = PROGRAM, at: float | None = None) -> None:
        mine = self._kept.get(source)
        if mine is None:
            while len(self._kept) >= MOST_SOURCES:
                self._kept.pop(next(iter(self._kept)), None)
            mine = self._kept[source] = deque(maxlen=MOST_LINES)
        mine.append(SourceLine(time.time() if at is None else at, by, text[:LONGEST]))

    def of(self, source: str) -> list[SourceLine]:
        return list(self._kept.get(source, ()))


lines = SourceLines()
"""The one of this process, as its log is one."""
