"""Web Push as it travels: a message sealed for one browser (RFC 8291), and the sender's word for it (RFC 8292).

Pure. The push service in between sees an address, a size and when the message ends, and nothing of what it says.
"""

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from agent_gate.errors import InvalidArgs

MOST_PLAIN = 3993
"""Bytes that every push service takes, sealed."""
RECORD = 4096
CURVE = ec.SECP256R1()
POINT_BYTES, AUTH_BYTES, SALT_BYTES = 65, 16, 16
WORD_LASTS = 12 * 3600


def text_of(data: bytes) -> str:
    """Bytes as browsers and push services write them."""
    return urlsafe_b64encode(data).decode().rstrip("=")


def bytes_of(text: str, length: int, name: str) -> bytes:
    try:
        data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        data = b""
    if len(data) != length:
        raise InvalidArgs(f"{name} must be {length} bytes in base64url, as a browser's subscription has it")
    return data


def point_of(text: str) -> ec.EllipticCurvePublicKey:
    """The key of a browser's subscription."""
    data = bytes_of(text, POINT_BYTES, "p256dh")
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(CURVE, data)
    except ValueError:
        raise InvalidArgs("p256dh is no point of the curve P-256; subscribe again") from None


def encoded(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def derive(salt: bytes, secret: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(secret)


def seal_message(
    plain: bytes,
    p256dh: str,
    auth: str,
    *,
    sender: ec.EllipticCurvePrivateKey | None = None,
    salt: bytes = b"",
) -> bytes:
    """The body to post: one record of `aes128gcm`. `sender` and `salt` are new for each message."""
    reader, shared = point_of(p256dh), bytes_of(auth, AUTH_BYTES, "auth")
    sender, salt = sender or ec.generate_private_key(CURVE), salt or os.urandom(SALT_BYTES)
    ours = encoded(sender.public_key())
    agreed = sender.exchange(ec.ECDH(), reader)
    secret = derive(shared, agreed, b"WebPush: info\0" + encoded(reader) + ours, 32)
    key = derive(salt, secret, b"Content-Encoding: aes128gcm\0", 16)
    nonce = derive(salt, secret, b"Content-Encoding: nonce\0", 12)
    head = salt + RECORD.to_bytes(4, "big") + bytes([len(ours)]) + ours
    return head + AESGCM(key).encrypt(nonce, plain + b"\x02", None)


def new_sender_key() -> str:
    """The key by which push services know this gateway, as PEM."""
    from joserfc.jwk import ECKey  # only gateways that push need it

    return ECKey.generate_key("P-256").as_pem(private=True).decode()


@cache
def imported(pem: str) -> Any:
    from joserfc.jwk import ECKey

    return ECKey.import_key(pem)


def public_of(pem: str) -> str:
    """What a browser subscribes with."""
    return text_of(encoded(imported(pem).public_key))


def sender_word(pem: str, origin: str, contact: str, now: float) -> str:
    """The header `authorization` for a push service: who sends, and whom to write to about it."""
    from joserfc import jwt

    claims = {"aud": origin, "exp": int(now) + WORD_LASTS, "sub": contact}
    token = jwt.encode({"typ": "JWT", "alg": "ES256"}, claims, imported(pem), algorithms=["ES256"])
    return f"vapid t={token}, k={public_of(pem)}"
