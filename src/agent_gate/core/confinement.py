"""Whether one segment of a path stays where it was put, however the proxies and servers on its way read it.

One decodes twice, one folds full-width letters, one drops blanks or what follows a semicolon, one takes a backslash
for a slash. So a segment is read as the most obliging of them all would; where even then there is no one reading of
it, nobody can say where it leads.
"""

import re
import unicodedata
from urllib.parse import unquote_to_bytes

MOST_READINGS = 8
SLASHES = re.compile("[/\\\\\u2044\u2215\u29f8\u29f9\u2216]")
ENDS = re.compile("[;?#\x00]")
UNSEEN = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})


def stays_in_place(segment: str) -> bool:
    """Whether a percent-encoded segment names something below its folder, by every reading of it."""
    plain = read_to_the_end(segment)
    if plain is None:
        return False
    steps = SLASHES.split(plain)
    return bool(named(steps[0])) and not any(map(steps_aside, steps))


def read_to_the_end(text: str) -> str | None:
    """Decoded and folded until nothing changes; None where that has no end, or gives what is no text."""
    for _ in range(MOST_READINGS):
        try:
            read = unicodedata.normalize("NFKC", unquote_to_bytes(text).decode())
        except UnicodeDecodeError:
            return None
        if read == text:
            return text
        text = read
    return None


def steps_aside(step: str) -> bool:
    """Whether a step is `.` or `..`, or would be without blanks and parameters."""
    name = named(step)
    return name in (".", "..") or (name != step and bool(name) and not name.strip("."))


def named(step: str) -> str:
    """A step without its parameters and what cannot be seen."""
    shown = ENDS.split(step, maxsplit=1)[0]
    return "".join(one for one in shown if unicodedata.category(one) not in UNSEEN)
