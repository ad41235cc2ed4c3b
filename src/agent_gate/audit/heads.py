"""How far each chain was sealed, noted in a file outside the database.

Whoever can delete rows there can delete their seals too; this file still says that they were written. It is moved on
only while the record holds what it says. A mark beside it, written once, says that there was such a file: without it
an empty database and no file would look like a gateway that never ran.
"""

import hmac
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from agent_gate.audit.record import encode
from agent_gate.store import Head
from agent_gate.store.once import replace_whole


class Note(msgspec.Struct, frozen=True):
    seq: int
    hash: str
    mac: str


class BeginMark(msgspec.Struct, frozen=True):
    """When the first note of a chain was written."""

    at: float
    mac: str


def mark(key: bytes, chain: str, at: float) -> BeginMark:
    return BeginMark(at, hmac.digest(key, encode(("begun", chain, at)), "sha256").hex())


def stamp(key: bytes, chain: str, head: Head) -> str:
    return hmac.digest(key, encode(("head", chain, head.seq, head.hash)), "sha256").hex()


class Heads:
    """The file at `path`. One that is damaged, or was not made with this key, is left as it is."""

    def __init__(self, path: Path, key: bytes) -> None:
        self.path, self._key = path, key
        self._notes: dict[str, Note] = {}
        self.genuine = True
        try:
            self._notes = msgspec.json.decode(path.read_bytes(), type=dict[str, Note])
        except FileNotFoundError:
            pass
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self.genuine = False
        if not all(
            hmac.compare_digest(note.mac.encode(), stamp(key, chain, Head(note.seq, note.hash)).encode())
            for chain, note in self._notes.items()
        ):
            self.genuine, self._notes = False, {}
        self.marks_path = path.with_suffix(".begun")
        self._marks = self._read_marks()

    def _read_marks(self) -> dict[str, BeginMark]:
        """Those that this key made. One that was tampered with says nothing, but `audit.head` still does."""
        try:
            found = msgspec.json.decode(self.marks_path.read_bytes(), type=dict[str, BeginMark])
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return {}
        return {
            chain: made
            for chain, made in found.items()
            if hmac.compare_digest(made.mac.encode(), mark(self._key, chain, made.at).mac.encode())
        }

    @property
    def missing(self) -> Mapping[str, float]:
        """Chains that had a note once and have none now, with the time of the first."""
        if not self.genuine:
            return {}
        return {chain: made.at for chain, made in self._marks.items() if chain not in self._notes}

    @property
    def known(self) -> Mapping[str, Head]:
        return {chain: Head(note.seq, note.hash) for chain, note in self._notes.items()}

    def note(self, chain: str, head: Head) -> None:
        """Write down how far a chain was sealed; `OSError` where that cannot be."""
        notes = {**self._notes, chain: Note(head.seq, head.hash, stamp(self._key, chain, head))}
        replace_whole(self.path, msgspec.json.encode(notes).decode())
        self._notes = notes
        if chain not in self._marks:
            self._marks = {**self._marks, chain: mark(self._key, chain, round(time.time(), 3))}
            replace_whole(self.marks_path, msgspec.json.encode(self._marks).decode())
