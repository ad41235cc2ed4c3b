"""A JSON Web Token taken apart: one reading only, before anything of it is believed."""

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Any

from agent_gate.core.strict import MalformedJson, strict_json
from agent_gate.errors import Unauthorized

LONGEST = 16 << 10
PARTS = re.compile(r"[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]{2,}")
LONGEST_NAME = 256
BEGINS = "eyJ"
"""How the base64 of every JSON object begins that is written without blanks."""


class BadToken(Unauthorized):
    """A token that does not count; the message says which check it fails and repeats nothing of it."""


@dataclass(frozen=True, slots=True)
class SignedClaims:
    """What a token says, and the signature that has to be checked over `signed`."""

    header: dict[str, Any]
    claims: dict[str, Any]
    signed: bytes
    signature: bytes

    @property
    def algorithm(self) -> str:
        return str(self.header["alg"])

    @property
    def key_id(self) -> str | None:
        found: str | None = self.header.get("kid")
        return found

    def __repr__(self) -> str:
        return "SignedClaims(…)"


def looks_signed(token: str) -> bool:
    """Whether this can be a JSON Web Token at all, and not one of the gateway's own."""
    return token.startswith(BEGINS) and token.count(".") == 2


def read_token(token: str) -> SignedClaims:
    """The parts of a compact token. Addresses of keys and keys that its header brings along are never looked at."""
    if len(token) > LONGEST or not PARTS.fullmatch(token):
        raise BadToken("This is not a JSON Web Token in its compact form")
    signed, _, signature = token.rpartition(".")
    head, _, body = signed.partition(".")
    header, claims = read_object(head, "header"), read_object(body, "claims")
    check_header(header)
    return SignedClaims(header, claims, signed.encode("ascii"), read_bytes(signature))


def check_header(header: dict[str, Any]) -> None:
    algorithm, kid, kind = header.get("alg"), header.get("kid"), header.get("typ", "")
    if not isinstance(algorithm, str) or len(algorithm) > LONGEST_NAME:
        raise BadToken("The token does not say how it is signed")
    if "kid" in header and not (isinstance(kid, str) and len(kid) <= LONGEST_NAME):
        raise BadToken("The token names its key in a way that is not understood")
    if not isinstance(kind, str):
        raise BadToken("The token does not say what kind it is in a way that is understood")
    if "crit" in header or "b64" in header:
        raise BadToken("The token asks for something that is not supported here")


def kind_of(token: SignedClaims) -> str:
    """Its `typ` as it is compared: in small letters, without the prefix that may be left out."""
    return str(token.header.get("typ", "")).lower().removeprefix("application/")


def read_object(part: str, what: str) -> dict[str, Any]:
    try:
        found = strict_json(read_bytes(part))
    except MalformedJson:
        found = None
    if not isinstance(found, dict):
        raise BadToken(f"The token's {what} are not a JSON object")
    return found


def read_bytes(part: str) -> bytes:
    """Base64url in its one form: no padding, and no bits at the end that mean nothing."""
    try:
        found = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (binascii.Error, ValueError):
        raise BadToken("A part of the token is not base64url") from None
    if base64.urlsafe_b64encode(found).decode().rstrip("=") != part:
        raise BadToken("A part of the token is not base64url in its one form")
    return found
