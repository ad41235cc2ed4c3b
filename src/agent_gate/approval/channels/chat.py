"""A card as a chat message: HTML with everything escaped, or the same as plain text, within the message limit."""

import html
from collections.abc import Iterable
from hashlib import sha256
from itertools import accumulate
from typing import Literal, NamedTuple

from agent_gate.approval.render import NUMBER_WANTED, Argument, Card, argument_lines, clock, span, visible

LIMIT = 3900
ROOMS = (400, 120, 40)
SIGNATURE_ROOM = 600
SENTENCE_ROOM = 400
MOST_LISTED = 12


class ChatPart(NamedTuple):
    """A piece of the message and how it looks."""

    look: Literal["plain", "bold", "code"]
    text: str

    def as_html(self) -> str:
        text = html.escape(self.text, quote=False)
        return {"plain": text, "bold": f"<b>{text}</b>", "code": f"<pre>{text}</pre>"}[self.look]


def units(text: str) -> int:
    """Length as the platform counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def fold(text: str, room: int) -> str:
    return Argument("", text).folded(room)


def fitting(shown: Card, budget: int) -> tuple[str, bool]:
    """All arguments within `budget`, and whether anything had to be left out or folded."""
    for room in ROOMS:
        text = "\n".join(argument_lines(shown, room))
        if units(text) <= budget:
            return text, shown.folds(room)
    digest = sha256("\n".join(argument_lines(shown, 1 << 30)).encode("utf-8", "surrogatepass")).hexdigest()
    out: list[str] = []
    for line in argument_lines(shown, ROOMS[-1]):
        short = fold(line, 200)
        if units("\n".join([*out, short])) > budget - 120:
            break
        out.append(short)
    left = len(shown.arguments) - len(out)
    return "\n".join([*out, f"… and {left} more arguments, all together sha256 {digest[:16]}"]), True


def parts(shown: Card, now: float, became: str = "") -> tuple[list[ChatPart], bool]:
    """The message, and whether the whole arguments should be offered beside it. `became` is said of a call that was
    approved."""
    head = [
        ChatPart(
            "bold",
            shown.warned(
                f"{shown.agent} asks: {fold(shown.sentence, SENTENCE_ROOM)}"
                if shown.sentence
                else f"{shown.agent} asks to call"
            ),
        ),
        ChatPart("code", fold(shown.signature, SIGNATURE_ROOM)),
    ]
    if shown.link and shown.open:
        head.append(ChatPart("plain", shown.link))
    tail = [ChatPart("plain", f"Rule: {fold(shown.because(), 300)}")]
    if shown.approvers:
        tail.append(ChatPart("plain", f"Only {', '.join(shown.approvers)} may answer"))
    if shown.open and shown.agreed():
        tail.append(ChatPart("bold", shown.agreed()))
    if shown.open:
        tail.append(ChatPart("plain", f"Time left: {shown.left(now)}"))
        repeats = f"“One hour” and “Always for this” let {shown.agent} repeat exactly this call unasked."
        if shown.count <= 1:
            tail.append(ChatPart("plain", NUMBER_WANTED if shown.wants_number else repeats))
    else:
        tail.append(ChatPart("bold", fold(shown.outcome(), 600)))
        if became:
            tail.append(ChatPart("bold", fold(visible(became), 600)))
    tail.append(ChatPart("plain", f"#{shown.short}"))
    used = sum(units(part.text) + 1 for part in [*head, *tail])
    text, cut = fitting(shown, LIMIT - used - 20)
    return [*head, ChatPart("plain", "Arguments:"), ChatPart("code", text), *tail], cut


def as_html(message: Iterable[ChatPart]) -> str:
    return "\n".join(part.as_html() for part in message)


def as_text(message: Iterable[ChatPart]) -> str:
    return "\n".join(part.text for part in message)


def pending_list(cards: Iterable[Card], now: float) -> str:
    """What is open, one line each, as many as a message holds."""
    rows = [
        f"#{shown.short} {shown.warned(shown.agent)}: {fold(shown.signature, 150)} ({span(shown.expires_at - now)} left, asked {clock(shown.asked_at)})"
        for shown in cards
    ]
    sizes = accumulate(units(row) + 1 for row in rows[:MOST_LISTED])
    listed = sum(size <= LIMIT for size in sizes)
    more = [f"… and {len(rows) - listed} more"] if len(rows) > listed else []
    return "\n".join([*rows[:listed], *more]) or "Nothing waits for you."
