"""Keeps large results whole: one per call, readable only by the caller whose call it was."""

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from agent_gate.core.call import Call, Caller, Result
from agent_gate.core.ports import Clock
from agent_gate.errors import InvalidArgs, ViewFailed
from agent_gate.results.envelope import Artifact
from agent_gate.results.handles import GONE, HANDLE, MOST_BYTES, TOO_LARGE
from agent_gate.results.reading import MEDIA_TYPES, InStore, Stored, size_of
from agent_gate.store import Statement, Store

LIFETIME = 24 * 3600.0

_INSERT = (
    "INSERT INTO artifacts (handle, call, caller, media_type, size, digest, body, created_at, expires_at) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (handle) DO NOTHING"
)
_SELECT = "SELECT media_type, body FROM artifacts WHERE handle = ? AND caller = ? AND expires_at > ?"
_PLACE = (
    "SELECT media_type, size, CASE WHEN size <= ? THEN body END FROM artifacts "
    "WHERE handle = ? AND caller = ? AND expires_at > ?"
)
_SMALL = (
    "SELECT media_type, CASE WHEN size <= ? THEN body END FROM artifacts "
    "WHERE handle = ? AND caller = ? AND expires_at > ?"
)
_EXPIRED = "DELETE FROM artifacts WHERE expires_at <= ?"


def handle_of(call_id: str) -> str:
    return f"result:{call_id}"


class Artifacts:
    """The store of large results."""

    def __init__(self, store: Store, clock: Clock, lifetime: float = LIFETIME) -> None:
        self._store, self._clock, self._lifetime = store, clock, lifetime

    def describe(self, call: Call, result: Result) -> Artifact:
        """What an artifact of this result will be called; pure, so that an envelope can be made before the write."""
        return Artifact(
            handle=handle_of(call.id),
            media_type=MEDIA_TYPES[result.kind],
            size=len(result.body),
            digest=sha256(result.body).hexdigest(),
            expires_at=round(self._clock.now() + self._lifetime, 3),
        )

    def statements(self, call: Call, artifact: Artifact, result: Result) -> tuple[Statement, ...]:
        """The write, to ride in whatever unit settles the call; a second write for one call changes nothing."""
        row = (
            artifact.handle,
            call.id,
            call.caller.name,
            artifact.media_type,
            artifact.size,
            artifact.digest,
        )
        times = (self._clock.now(), artifact.expires_at)
        return (Statement(_INSERT, (*row, result.body, *times)),)

    async def save(self, call: Call, result: Result) -> Artifact:
        """Store a result whole; returns when it is durable."""
        artifact = self.describe(call, result)
        await self._store.write(*self.statements(call, artifact, result))
        return artifact

    def post(self, call: Call, result: Result) -> Artifact:
        """Store a result whole with the next commit."""
        artifact = self.describe(call, result)
        self._store.post(*self.statements(call, artifact, result))
        return artifact

    async def load(self, handle: str, caller: Caller) -> Stored:
        """The whole result. Someone else's handle, an expired and an unknown one answer the same."""
        found = await self._find(_SELECT, handle, caller)
        return Stored(found[0], bytes(found[1]))

    async def find(self, handle: str, caller: Caller, most: int) -> Stored | InStore:
        """The result, or where it is if it is larger than `most` bytes and another process can read it there."""
        file = self._store.file
        if file is None:
            return await self.load(handle, caller)
        media_type, size, body = await self._find(_PLACE, handle, caller, most)
        return (
            InStore(media_type, size, handle, str(file)) if body is None else Stored(media_type, bytes(body))
        )

    async def load_small(self, handle: str, caller: Caller, most: int) -> Stored | None:
        """The result unless it is larger than `most` bytes."""
        media_type, body = await self._find(_SMALL, handle, caller, most)
        return None if body is None else Stored(media_type, bytes(body))

    async def _find(self, select: str, handle: str, caller: Caller, *more: int) -> tuple[Any, ...]:
        if not HANDLE.fullmatch(handle):
            raise ViewFailed("This is not a handle. Use one from the `artifacts` of a result.")
        found = await self._store.read(select, (*more, handle, caller.name, self._clock.now()))
        if not found:
            raise ViewFailed(GONE)
        return found[0]

    async def find_all(
        self, handles: Iterable[str], caller: Caller, most: int
    ) -> dict[str, Stored | InStore]:
        """The results that one call refers to; a single one may be as large as it is."""
        found: dict[str, Stored | InStore] = {}
        for handle in sorted(set(handles)):
            found[handle] = await self.find(handle, caller, most)
            if len(found) > 1 and sum(size_of(one) for one in found.values()) > MOST_BYTES:
                raise InvalidArgs(TOO_LARGE)
        return found

    async def sweep(self) -> int:
        """Delete what has expired."""
        (deleted,) = await self._store.write(Statement(_EXPIRED, (self._clock.now(),)))
        return deleted
