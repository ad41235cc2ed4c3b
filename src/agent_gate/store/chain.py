"""A hash chain: each link is the SHA-256 of the link before and of its own row in canonical JSON."""

from collections.abc import Iterable, Sequence
from hashlib import sha256

import msgspec

from agent_gate.store.statement import Head, Param

GENESIS = bytes(32)
encode = msgspec.json.Encoder(order="sorted").encode


def link(before: bytes, chain: str, seq: int, params: Sequence[Param]) -> bytes:
    """The digest of row `seq`, which follows the row whose digest is `before`."""
    return sha256(before + encode((chain, seq, *params))).digest()


def digest(head: Head) -> bytes:
    return bytes.fromhex(head.hash) if head.seq else GENESIS


class Chain:
    """The writer's own chain. It moves on with each row and back when rows are rolled back."""

    __slots__ = ("_digest", "_seq", "name")

    def __init__(self, name: str, head: Head) -> None:
        self.name = name
        self.reset(head)

    @property
    def head(self) -> Head:
        return Head(self._seq, self._digest.hex() if self._seq else "")

    def reset(self, head: Head) -> None:
        self._seq = head.seq
        self._digest = digest(head)

    def extend(self, rows: Iterable[tuple[Param, ...]]) -> list[tuple[Param, ...]]:
        """The parameters of chained statements, each complete with chain, seq and hash."""
        name, seq, digest, complete = self.name, self._seq, self._digest, []
        for params in rows:
            seq += 1
            digest = link(digest, name, seq, params)
            complete.append((*params, name, seq, digest.hex()))
        self._seq, self._digest = seq, digest
        return complete
