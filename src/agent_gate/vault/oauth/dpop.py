"""Proofs of possession (RFC 9449): a key of each account's own, and a signed statement with each request."""

import base64
import time
from functools import cache
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from agent_gate.core.call import new_id

ALGORITHM = "ES256"
NONCE_WANTED = "use_dpop_nonce"


def new_proof_key() -> str:
    """A private key as PEM, to be sealed with its account."""
    from joserfc.jwk import ECKey

    return ECKey.generate_key("P-256").as_pem(private=True).decode()


@cache
def imported(pem: str) -> Any:
    from joserfc.jwk import ECKey

    return ECKey.import_key(pem)


def possession(pem: str, method: str, url: str, token: str = "", nonce: str = "") -> str:
    """The statement for one request: this key, this method, this address without its query, and this token."""
    from joserfc import jwt

    key = imported(pem)
    claims = {"jti": new_id(), "htm": method, "htu": plain(url), "iat": int(time.time())}
    if token:
        claims["ath"] = base64.urlsafe_b64encode(sha256(token.encode()).digest()).decode().rstrip("=")
    if nonce:
        claims["nonce"] = nonce
    head = {"typ": "dpop+jwt", "alg": ALGORITHM, "jwk": key.as_dict(private=False)}
    return jwt.encode(head, claims, key, algorithms=[ALGORITHM])


def plain(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))


class Possession:
    """Signs the requests of one token. `nonce` is what the server last wanted to see in a statement."""

    def __init__(self, pem: str, token: str) -> None:
        self._pem, self._token, self.nonce = pem, token, ""

    def header(self, method: str, url: str) -> tuple[bytes, bytes]:
        return b"dpop", possession(self._pem, method, url, self._token, self.nonce).encode()

    def __repr__(self) -> str:
        return "Possession(…)"
