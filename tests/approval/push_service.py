"""A push service, and a browser's half of Web Push, written by the RFCs alone."""

import json
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc import jwt
from joserfc.jwk import ECKey


def b64(data):
    return urlsafe_b64encode(data).decode().rstrip("=")


def unb64(text):
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def point(key):
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


class Subscription:
    """What a browser makes when a page subscribes, with the half that it keeps."""

    def __init__(self, url, name):
        self.key, self.auth = ec.generate_private_key(ec.SECP256R1()), os.urandom(16)
        self.path = f"/send/{name}-{os.urandom(8).hex()}"
        self.body = {
            "name": name,
            "address": f"{url}{self.path}",
            "p256dh": b64(point(self.key.public_key())),
            "auth": b64(self.auth),
        }

    def read(self, request):
        """The message of a request, opened as RFC 8291 says."""
        body = request["body"]
        salt, theirs = body[:16], body[21 : 21 + body[20]]
        sealed = body[21 + body[20] :]
        sender = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), theirs)
        info = b"WebPush: info\0" + point(self.key.public_key()) + theirs
        secret = hkdf(self.auth, self.key.exchange(ec.ECDH(), sender), info, 32)
        key = hkdf(salt, secret, b"Content-Encoding: aes128gcm\0", 16)
        nonce = hkdf(salt, secret, b"Content-Encoding: nonce\0", 12)
        plain = AESGCM(key).decrypt(nonce, sealed, None)
        return json.loads(plain.rstrip(b"\0")[:-1])

    def messages(self, service):
        return [self.read(request) for request in list(service.requests) if request["path"] == self.path]


def hkdf(salt, secret, info, length):
    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(secret)


def sender_of(request, public):
    """The claims of the sender's word, verified with the key that the browser subscribed with."""
    scheme, _, rest = request["headers"]["authorization"].partition(" ")
    parts = dict(part.strip().split("=", 1) for part in rest.split(","))
    assert scheme == "vapid"
    assert parts["k"] == public
    raw = unb64(public)
    key = ECKey.import_key({"kty": "EC", "crv": "P-256", "x": b64(raw[1:33]), "y": b64(raw[33:])})
    return jwt.decode(parts["t"], key, algorithms=["ES256"]).claims
