"""What a button or a link carries: the approval's id, what pressing it means, and a seal that nobody can forge.

A button can name a number, where a yes needs one. 44 characters, well within the 64 bytes a chat platform allows. A press counts once because the approval does.
"""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Literal, NamedTuple

from agent_gate.core.approval import Answer, Lifetime, Verdict

Action = Literal["once", "session", "hour", "always", "deny", "full", "choose"]
CODES: dict[bytes, Action] = {
    b"o": "once",
    b"s": "session",
    b"h": "hour",
    b"a": "always",
    b"d": "deny",
    b"f": "full",
    b"c": "choose",
}
LETTERS = {action: code for code, action in CODES.items()}
NUMBERS = 128
"""Codes from here on are a yes with a number."""
ID_BYTES, SEAL_BYTES = 16, 16
LENGTH = 44
LABELS: dict[str, str] = {
    "once": "Once",
    "session": "This session",
    "hour": "One hour",
    "always": "Always for this",
    "deny": "Deny",
}
ANSWERS: dict[str, tuple[Verdict, Lifetime]] = {
    "once": ("approve", "once"),
    "session": ("approve", "session"),
    "hour": ("approve", "hour"),
    "always": ("approve", "always"),
    "deny": ("deny", "once"),
}


class Pressed(NamedTuple):
    approval_id: str
    action: Action
    number: str = ""


def answer_of(action: str, person: str, channel: str, reason: str = "", number: str = "") -> Answer:
    verdict, lifetime = ANSWERS[action]
    return Answer(
        verdict=verdict,
        person=person,
        channel=channel,
        lifetime=lifetime,
        reason=reason[:500],
        number=number.strip(),
    )


class Buttons:
    """Makes and reads them. Those of one channel mean nothing on another."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def make(self, channel: str, approval_id: str, action: Action, number: str = "") -> str:
        code = bytes([NUMBERS + int(number)]) if number else LETTERS[action]
        content = bytes.fromhex(approval_id) + code
        return urlsafe_b64encode(content + self._seal(channel, content)).decode()

    def read(self, channel: str, text: str) -> Pressed | None:
        """What was pressed; None for anything this gateway did not make for this channel."""
        if len(text) != LENGTH or not text.isascii():
            return None
        try:
            data = urlsafe_b64decode(text)
        except ValueError:
            return None
        content, seal = data[:-SEAL_BYTES], data[-SEAL_BYTES:]
        if urlsafe_b64encode(data).decode() != text or not hmac.compare_digest(
            seal, self._seal(channel, content)
        ):
            return None
        approval_id, code = content[:ID_BYTES].hex(), content[ID_BYTES:]
        if code[0] >= NUMBERS:
            return Pressed(approval_id, "once", str(code[0] - NUMBERS))
        return Pressed(approval_id, CODES[code])

    def _seal(self, channel: str, content: bytes) -> bytes:
        return hmac.digest(self._key, channel.encode() + b"\0" + content, "sha256")[:SEAL_BYTES]
