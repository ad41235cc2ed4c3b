"""A login that is under way travels in its browser's cookie, sealed: nothing is kept here, and no other browser has it."""

import base64
import binascii
import os

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from agent_gate.access.oidc.provider import LoginFlow

NONCE_BYTES = 12
PURPOSE = b"agent-gate login at a provider"


class SealedFlows:
    def __init__(self, key: bytes) -> None:
        self._box = AESGCM(key[:32])

    def seal(self, flow: LoginFlow) -> str:
        nonce = os.urandom(NONCE_BYTES)
        sealed = nonce + self._box.encrypt(nonce, msgspec.json.encode(flow), PURPOSE)
        return base64.urlsafe_b64encode(sealed).decode().rstrip("=")

    def open(self, text: str) -> LoginFlow | None:
        """The flow; None for what was not sealed here."""
        try:
            sealed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            plain = self._box.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], PURPOSE)
            return msgspec.json.decode(plain, type=LoginFlow)
        except (binascii.Error, ValueError, InvalidTag, msgspec.DecodeError):
            return None
