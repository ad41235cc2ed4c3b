"""Finds the lines of a text that match a regular expression, in time proportional to the text whatever the pattern.

RE2 does the matching. A match never reaches over the end of a line; `^` and `$` are the ends of a line. Back
references and look-around do not exist, and `\\d`, `\\w`, `\\s` and `\\b` know ASCII only: `\\pL` is any letter.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from agent_gate.errors import InvalidArgs

LONGEST = 500


@dataclass(frozen=True, slots=True)
class LineMatch:
    """A line, by its number from 0, and where in it the first match ends."""

    number: int
    line: bytes
    end: int

    def text(self) -> tuple[str, int]:
        """The line in characters, with the end of the match."""
        return self.line.decode("utf-8", "replace"), len(self.line[: self.end].decode("utf-8", "replace"))


class Pattern:
    """A compiled regular expression."""

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        if len(pattern) > LONGEST:
            raise _refuse(f"it has more than {LONGEST} characters")
        import re2  # two megabytes, for those who search in results

        options = re2.Options()
        options.never_nl, options.never_capture, options.log_errors = True, True, False
        options.case_sensitive = not ignore_case
        try:
            self._compiled = re2.compile("(?m)" + pattern, options)
        except re2.error as error:
            raise _refuse(_reason(error)) from None
        except UnicodeEncodeError:
            raise _refuse("it has a character that no text can have") from None

    def lines(self, text: str, start: int = 0) -> Iterator[LineMatch]:
        """The matching lines of a text, from line `start` on."""
        data = _unix(text)
        number, at = start, _line_start(data, start)
        while at is not None and (found := self._compiled.search(data, at)) is not None:
            first, end = found.span()
            begin = max(at, data.rfind(b"\n", at, first) + 1)
            stop = data.find(b"\n", end)
            number += data.count(b"\n", at, begin)
            yield LineMatch(number, data[begin : stop if stop >= 0 else None], end - begin)
            number, at = number + 1, stop + 1 if stop >= 0 else None


def _unix(text: str) -> bytes:
    """Lines end with one character, and only between lines."""
    data = text.encode("utf-8", "replace")
    data = data.replace(b"\r\n", b"\n") if b"\r\n" in data else data
    return data.removesuffix(b"\n")


def _line_start(data: bytes, number: int) -> int | None:
    """Where a line begins; None where there is no such line."""
    at = 0 if data else -1
    for _ in range(number if data else 0):
        at = data.find(b"\n", at) + 1
        if not at:
            return None
    return at if at >= 0 else None


def _reason(error: Exception) -> str:
    said = error.args[0] if error.args else b""
    return str(said.decode("utf-8", "replace") if isinstance(said, bytes) else said).replace("(?m)", "")


def _refuse(why: str) -> InvalidArgs:
    return InvalidArgs(
        f"The pattern cannot be used: {why}. Simplify it, or escape special characters with \\."
    )
