"""Sealing of single values: AES-256-GCM under a named key, bound to the place a value belongs to.

A value that was moved to another place, cut, altered or sealed with another key does not open.
"""

import os
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from agent_gate.errors import DependencyUnavailable

FORM = "v1"
NONCE_BYTES = 12
KEY_BYTES = 32


class VaultFault(DependencyUnavailable):
    """A sealed value does not open. The message names the key it was sealed with, and nothing of the value."""


def key_id(key: bytes) -> str:
    """A name for a key that says nothing about it."""
    return sha256(b"agent-gate vault key id\0" + key).hexdigest()[:12]


@dataclass(frozen=True)
class SealingKey:
    """One 256-bit key. `repr` shows its id only."""

    key: bytes

    def __post_init__(self) -> None:
        if len(self.key) != KEY_BYTES:
            raise ValueError(f"a vault key has {KEY_BYTES} bytes")

    def __repr__(self) -> str:
        return f"SealingKey({self.id})"

    @cached_property
    def id(self) -> str:
        return key_id(self.key)

    @cached_property
    def _cipher(self) -> AESGCM:
        return AESGCM(self.key)

    def seal(self, value: bytes, *place: str) -> bytes:
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, value, self._bound(place))

    def open(self, sealed: bytes, *place: str) -> bytes:
        """The value that was sealed for this place; else `VaultFault`."""
        try:
            return self._cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], self._bound(place))
        except (InvalidTag, ValueError):
            raise VaultFault(
                f"What the vault keeps at {' / '.join(place)} cannot be opened with the key {self.id}: "
                "the key is another one, or the stored value was altered. Nothing was changed"
            ) from None

    def _bound(self, place: tuple[str, ...]) -> bytes:
        """The associated data. A JSON array, so that no two places read the same."""
        return msgspec.json.encode([FORM, *place, self.id])
