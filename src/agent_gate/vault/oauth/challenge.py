"""What a server says when it refuses a request for want of a token: `WWW-Authenticate`, read once."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from agent_gate.net.http import Header

SCHEME = re.compile(r"(?:^|,)\s*(Bearer|DPoP)(?=\s|,|$)", re.IGNORECASE)
PARAMETER = re.compile(r'([A-Za-z0-9_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))')
LONGEST = 4096


@dataclass(frozen=True, slots=True)
class BearerChallenge:
    """`resource_metadata` says where to look for an authorization server; `scope` what would be enough."""

    resource_metadata: str | None = None
    scope: str | None = None
    error: str | None = None
    scheme: str = "Bearer"


def read_challenge(headers: Iterable[Header]) -> BearerChallenge | None:
    """The first challenge for a bearer token; None where the server wants something else, or says nothing."""
    for name, value in headers:
        if name.lower() == b"www-authenticate":
            found = parse_challenge(value[:LONGEST].decode("latin-1"))
            if found is not None:
                return found
    return None


def parse_challenge(text: str) -> BearerChallenge | None:
    scheme = SCHEME.search(text)
    if scheme is None:
        return None
    values: dict[str, str] = {}
    for found in PARAMETER.finditer(text, scheme.end()):
        quoted, plain = found[2], found[3]
        values.setdefault(found[1].lower(), re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else plain)
    return BearerChallenge(
        values.get("resource_metadata"), values.get("scope"), values.get("error"), scheme[1]
    )
