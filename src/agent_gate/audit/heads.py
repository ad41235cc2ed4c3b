"""How far each chain was sealed, noted in a file outside the database.

Whoever can delete rows there can delete their seals too; this file still says that they were written. It is moved on
only while the record holds what it says.
"""

import hmac
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

    @property
    def known(self) -> Mapping[str, Head]:
        return {chain: Head(note.seq, note.hash) for chain, note in self._notes.items()}

    def note(self, chain: str, head: Head) -> None:
        """Write down how far a chain was sealed; `OSError` where that cannot be."""
        notes = {**self._notes, chain: Note(head.seq, head.hash, stamp(self._key, chain, head))}
        replace_whole(self.path, msgspec.json.encode(notes).decode())
        self._notes = notes
