"""`requestState` that only this gateway can have made: bound to who asked what, and for how long.

AES-256-GCM over the state with the caller, the request's digest and the expiry inside; a flipped bit, another
caller, other arguments or a late use all open to nothing.
"""

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal

import msgspec

from agent_gate.core.ports import Clock
from agent_gate.core.tool import Json
from agent_gate.mcp.errors import INVALID_PARAMS, RpcError

LIFETIME = 15 * 60.0
NONCE = 12
REFUSED = (
    "This requestState is invalid, expired or belongs to another request; make the request again without it"
)
canonical = msgspec.json.Encoder(order="sorted").encode


class RoundState(msgspec.Struct, array_like=True):
    """What is sealed. `kind` "call": `value` is the id of a call that waits; "source": the upstream's own state.

    `rounds` is how often the client has been sent back, this time included.
    """

    caller: str
    subject: str
    expires_at: float
    kind: Literal["call", "source"]
    value: str
    rounds: int = 1


def subject(method: str, name: str, arguments: Mapping[str, Json]) -> str:
    """What a state belongs to: one request, whatever its id."""
    return sha256(canonical([method, name, arguments])).hexdigest()


class StateSealer:
    """Seals and opens states with the installation's key."""

    def __init__(self, key: bytes, clock: Clock) -> None:
        self._key, self._clock = sha256(b"agent-gate requestState\0" + key).digest(), clock
        self._cipher: Any = None

    def _aead(self) -> Any:
        """The cipher, imported when first needed: most gateways never seal anything."""
        if self._cipher is None:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            self._cipher = AESGCM(self._key)
        return self._cipher

    def seal(
        self, caller: str, about: str, kind: Literal["call", "source"], value: str, rounds: int = 1
    ) -> str:
        state = RoundState(caller, about, self._clock.now() + LIFETIME, kind, value, rounds)
        nonce = os.urandom(NONCE)
        sealed = nonce + self._aead().encrypt(nonce, msgspec.json.encode(state), None)
        return urlsafe_b64encode(sealed).decode("ascii").rstrip("=")

    def open(self, text: Json, caller: str, about: str) -> RoundState:
        """The state, if it is one of ours, of this caller and about this request; else `RpcError`."""
        state = self._decrypt(text)
        if state is None or state.caller != caller or state.subject != about:
            raise RpcError(INVALID_PARAMS, REFUSED)
        if state.expires_at <= self._clock.now():
            raise RpcError(INVALID_PARAMS, REFUSED)
        return state

    def _decrypt(self, text: Json) -> RoundState | None:
        from cryptography.exceptions import InvalidTag

        if not isinstance(text, str) or not text.isascii():
            return None
        try:
            sealed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
            if urlsafe_b64encode(sealed).decode("ascii").rstrip("=") != text:
                return None
            plain = self._aead().decrypt(sealed[:NONCE], sealed[NONCE:], None)
            return msgspec.json.decode(plain, type=RoundState)
        except (NotBase64, ValueError, InvalidTag, msgspec.DecodeError):
            return None
