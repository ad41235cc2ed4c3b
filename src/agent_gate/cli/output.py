"""Text for people: tables, colour on a terminal only, and JSON where it is asked for."""

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from agent_gate.approval.render import visible, visible_lines

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
PATH = click.Path(path_type=Path)
USUAL_CONFIG = Path("config.yaml")
config_option = partial(click.option, "--config", type=PATH, default=USUAL_CONFIG, show_default=True)
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


PAINTED = re.compile("(\x1b\\[3[123]m(?:" + "|".join(COLOURS) + ")\x1b\\[0m)")


def cleaned(text: str) -> str:
    """Text with what could move a terminal's cursor or deceive its reader as escapes; our own colours stay."""
    parts = PAINTED.split(text)
    return "".join(part if at % 2 else visible_lines(part) for at, part in enumerate(parts))


def say(text: str, *, err: bool = False) -> None:
    """The one way to print words, since some of them come from elsewhere."""
    click.echo(cleaned(text), err=err)


def put(document: str, *, nl: bool = True) -> None:
    """A document as it is where a program reads it; on a terminal as one may safely look at it."""
    click.echo(cleaned(document) if sys.stdout.isatty() else document, nl=nl)


def put_bytes(portion: bytes) -> None:
    """A piece of a long document, which may end within a character."""
    if sys.stdout.isatty():
        put(portion.decode("utf-8", "replace"), nl=False)
    else:
        click.echo(portion, nl=False)


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


def one_line(reason: str) -> str:
    """A reason for a table: with one line of a program's last words, where it has some; `doctor` shows them all."""
    said, *words = reason.split("\n")
    telling = next((line for line in words if "error" in line.lower()), words[1] if len(words) > 1 else "")
    return f"{said}: {telling} …" if telling else said


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
    put(json.dumps(value, indent=2, ensure_ascii=False))
