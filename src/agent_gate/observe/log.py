"""Structured logs on stderr: one JSON object a line, or key=value on a terminal; redacted on the way out."""

import json
import logging
import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

from agent_gate.observe.lines import lines
from agent_gate.observe.redact import Redactor

Advise = Callable[[str], str]
REQUESTS = "agent_gate.requests"
"""The logger of requests, and of calls that went well; silent unless somebody wants to hear of each."""
logging.getLogger(REQUESTS).setLevel(logging.WARNING)
COLOURS = {"debug": 2, "warning": 33, "error": 31, "critical": 31}
STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def harmless(text: str) -> str:
    """What a terminal would obey instead of showing it as an escape; the lines of a traceback stay lines."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def painted(line: str, level: str) -> str:
    """The line with its level, which stands behind the time, in that level's colour."""
    colour = COLOURS.get(level)
    return line if colour is None else line.replace(level, f"\x1b[{colour}m{level}\x1b[0m", 1)


class Formatter(logging.Formatter):
    """Turns a record and its `extra` fields into one line; control characters cannot forge another."""

    def __init__(
        self, redactor: Redactor, *, as_json: bool, coloured: bool = False, advise: Advise = str
    ) -> None:
        super().__init__()
        self.redactor, self.advise = redactor, advise
        self.as_json, self.coloured = as_json, coloured

    def format(self, record: logging.LogRecord) -> str:
        fields = {name: value for name, value in vars(record).items() if name not in STANDARD}
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        event = {
            "at": at,
            "level": record.levelname.lower(),
            "from": record.name,
            "event": record.getMessage(),
            **fields,
        }
        if self.as_json:
            return self.redactor.text(json.dumps(event, ensure_ascii=False, default=str))
        text = harmless(self.redactor.text(self.advise(self._plain(event))))
        return painted(text, str(event["level"])) if self.coloured else text

    def _plain(self, event: dict[str, object]) -> str:
        error = event.pop("error", None)
        rest = " ".join(
            f"{name}={json.dumps(value, ensure_ascii=False, default=str)}"
            for name, value in list(event.items())[4:]
        )
        text = json.dumps(event["event"], ensure_ascii=False)[1:-1]
        line = f"{str(event['at'])[11:23]} {event['level']!s:7} {text}"
        return "\n".join(filter(None, [f"{line} {rest}".rstrip(), str(error) if error else ""]))


def configure(
    level: str,
    redactor: Redactor,
    form: str = "auto",
    stream: TextIO | None = None,
    *,
    requests: bool = False,
    advise: Advise = str,
) -> None:
    """Send everything under `agent_gate` to stderr at `level`; nothing ever goes to stdout.

    `form` is `text`, `json`, or `auto`: text on a terminal and JSON otherwise. With `requests`, each request is
    a line too. `advise` makes commands that a person reads in a line such that they can be typed.
    """
    out = stream or sys.stderr
    handler = logging.StreamHandler(out)
    as_json = form == "json" or (form == "auto" and not out.isatty())
    coloured = out.isatty() and "NO_COLOR" not in os.environ
    handler.setFormatter(Formatter(redactor, as_json=as_json, coloured=coloured, advise=advise))
    root = logging.getLogger("agent_gate")
    root.handlers[:] = [handler, lines]
    root.setLevel(level.upper() if level.upper() in logging.getLevelNamesMapping() else "INFO")
    root.propagate = False
    silent = root.getEffectiveLevel() if requests else max(logging.WARNING, root.level)
    logging.getLogger(REQUESTS).setLevel(logging.DEBUG if root.level <= logging.DEBUG else silent)
