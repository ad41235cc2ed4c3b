"""Ed25519 keys, and signatures that count for one message at one place of one handshake only."""

import struct
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from agent_gate.peers.encoding import Malformed, canonical, from_base64, to_base64

PROFILE = b"crab-pair/v1"
SIGNATURE = "sig_ed25519"
KEY_BYTES, SIGNATURE_BYTES = 32, 64

WEAK = frozenset(
    bytes.fromhex(text)
    for text in (
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000080",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    )
)
"""Every encoding of a point of small order. OpenSSL takes them, and signatures under them need no private key."""


def key_fingerprint(public: bytes) -> str:
    """What an operator compares: `sha256:` and the digest of the raw public key."""
    return f"sha256:{sha256(public).hexdigest()}"


def check_public_key(text: str) -> bytes:
    """The 32 bytes of an Ed25519 public key that a stranger sent; a weak one is refused."""
    raw = from_base64(text, KEY_BYTES)
    if raw in WEAK:
        raise Malformed("it is a key of small order, under which anybody can sign")
    return raw


@dataclass(frozen=True)
class IdentityKey:
    """A private Ed25519 key; `repr` shows the public half only."""

    seed: bytes

    def __repr__(self) -> str:
        return f"IdentityKey({self.public_text})"

    @classmethod
    def new(cls) -> "IdentityKey":
        return cls(Ed25519PrivateKey.generate().private_bytes_raw())

    @cached_property
    def _private(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.seed)

    @cached_property
    def public(self) -> bytes:
        return self._private.public_key().public_bytes_raw()

    @property
    def public_text(self) -> str:
        return to_base64(self.public)

    @property
    def fingerprint(self) -> str:
        return key_fingerprint(self.public)

    def sign(self, data: bytes) -> bytes:
        return self._private.sign(data)


@dataclass
class Transcript:
    """Everything said so far in one handshake. Signatures cover it, so that none can be moved to another one."""

    said: list[bytes] = field(default_factory=list)

    def add(self, message: dict[str, Any]) -> None:
        self.said.append(canonical(message))

    def write(self, message: dict[str, Any], signer: IdentityKey | None = None) -> str:
        """The message as it is sent, with the signature where there is a signer; from here on it is part of what was said."""
        fields = self.sign(message, signer) if signer is not None else message
        self.add(fields)
        return self.said[-1].decode()

    def digest(self) -> bytes:
        total = sha256(PROFILE + b" transcript\0")
        for text in self.said:
            total.update(struct.pack(">I", len(text)) + text)
        return total.digest()

    def signed_bytes(self, message: dict[str, Any]) -> bytes:
        bare = {name: value for name, value in message.items() if name != SIGNATURE}
        kind = str(message["type"]).encode()
        return PROFILE + b"\0" + kind + b"\0" + self.digest() + canonical(bare)

    def sign(self, message: dict[str, Any], key: IdentityKey) -> dict[str, Any]:
        return {**message, SIGNATURE: to_base64(key.sign(self.signed_bytes(message)))}

    def verifies(self, message: dict[str, Any], public: bytes) -> bool:
        """Whether `public` signed this message here."""
        try:
            signature = from_base64(message[SIGNATURE], SIGNATURE_BYTES)
            Ed25519PublicKey.from_public_bytes(public).verify(signature, self.signed_bytes(message))
        except (InvalidSignature, Malformed, ValueError, KeyError):
            return False
        return True
