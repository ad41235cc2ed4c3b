"""What a server says when it refuses a request for want of a token: `WWW-Authenticate`, read once."""

import re
from dataclasses import dataclass

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


def parse_challenge(text: str) -> BearerChallenge | None:
    """The first challenge for a bearer token; None where the server wants something else, or says nothing."""
    text = text[:LONGEST]
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
