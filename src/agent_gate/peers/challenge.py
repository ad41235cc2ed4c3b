"""The challenge that only the holder of an X25519 key can answer: HPKE (RFC 9180), bound to one handshake."""

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from agent_gate.peers.encoding import Malformed, canonical
from agent_gate.peers.signing import PROFILE

ALGORITHM = "HPKE-0020-0001-0003"
LABEL = PROFILE + b"\0pair.challenge\0"
SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)
PLAIN_BYTES = 32


def challenge_context(pairing_id: str, challenge_id: str, transcript: bytes) -> bytes:
    """What a challenge belongs to; it travels beside the ciphertext as `aad`."""
    return canonical(
        {
            "alg": ALGORITHM,
            "challenge_id": challenge_id,
            "pairing_id": pairing_id,
            "transcript_sha256": transcript.hex(),
        }
    )


def seal_challenge(plain: bytes, public: bytes, context: bytes) -> bytes:
    try:
        return bytes(SUITE.encrypt(plain, X25519PublicKey.from_public_bytes(public), LABEL + context))
    except ValueError:
        raise Malformed("it is no X25519 key that anything can be encrypted for") from None


def open_challenge(ciphertext: bytes, private: X25519PrivateKey, context: bytes) -> bytes:
    try:
        return bytes(SUITE.decrypt(ciphertext, private, LABEL + context))
    except (InvalidTag, ValueError):
        raise Malformed("the challenge was not made for this key and this handshake") from None
