"""Text for people: tables, colour on a terminal only, and JSON where it is asked for."""

import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from typing import Any

import click

from agent_gate.approval.render import visible

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
COLOURS = {
    "ready": "green",
    "completed": "green",
    "allow": "green",
    "ask": "yellow",
    "pending": "yellow",
    "deny": "red",
    "failed": "red",
    "denied": "red",
    "unknown": "red",
    "refused": "red",
}


def coloured() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def paint(word: str) -> str:
    """A state or effect in its colour."""
    return click.style(word, fg=COLOURS[word]) if coloured() and word in COLOURS else word


def table(headers: Sequence[str], rows: Sequence[Sequence[object]], nothing: str = "") -> str:
    """Columns as wide as they need to be; the last one is cut to the terminal's width, and says so.

    `nothing` is what to say instead where there are no rows.
    """
    if nothing and not rows:
        return nothing
    cells = [[visible(str(cell)) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [list(headers), *cells]) for i in range(len(headers))]
    room = shutil.get_terminal_size((120, 24)).columns if sys.stdout.isatty() else 10_000
    lines = ["  ".join(h.upper().ljust(w) for h, w in zip(headers, widths, strict=True)).rstrip()]
    for row in cells:
        fixed = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        left = max(20, room - sum(len(cell) + 2 for cell in fixed))
        last = row[-1] if len(row[-1]) <= left else row[-1][: left - 1] + "…"
        painted = [
            cell.replace(cell.strip(), paint(cell.strip()), 1) if cell.strip() else cell for cell in fixed
        ]
        lines.append("  ".join([*painted, last]).rstrip())
    return "\n".join(lines)


def ago(at: float | None) -> str:
    return "" if at is None else span(time.time() - at) + " ago"


def span(seconds: float) -> str:
    seconds = max(0, round(seconds))
    return (
        f"{seconds} s"
        if seconds < 120
        else f"{seconds // 60} min"
        if seconds < 7200
        else f"{seconds // 3600} h"
    )


def clock(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))
