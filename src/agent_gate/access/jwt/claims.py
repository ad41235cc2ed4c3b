"""What a verified token must say before it counts: who gave it, for whom, and for which time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_gate.access.jwt.reading import BadToken

MOST_SECONDS = 1e11
SPIFFE = "spiffe://"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """`leeway` is how many seconds two clocks may differ. An `issuer` such as `spiffe://example.org` is a trust domain:
    its tokens need not say who signed them, and are of the domain that their `sub` begins with."""

    issuer: str
    audience: str
    leeway: float = 60.0

    def is_of(self, claims: Mapping[str, Any]) -> bool:
        """Whether the token claims to be of this issuer."""
        if not self.issuer.startswith(SPIFFE):
            return bool(claims.get("iss") == self.issuer)
        return text_at(claims, "sub").startswith(f"{self.issuer.rstrip('/')}/")


def check_claims(claims: Mapping[str, Any], expected: Expected, now: float) -> float:
    """When the token ends; raises `BadToken` where it does not count now, or not here."""
    if not expected.is_of(claims):
        raise BadToken("The token is of another issuer")
    if expected.audience not in audiences(claims):
        raise BadToken("The token is for another audience")
    ends = moment(claims, "exp")
    if ends is None:
        raise BadToken("The token does not say when it ends")
    if ends + expected.leeway <= now:
        raise BadToken("The token has expired")
    for name in ("nbf", "iat"):
        begins = moment(claims, name)
        if begins is not None and begins - expected.leeway > now:
            raise BadToken("The token is not valid yet; compare the clocks of both machines")
    return ends + expected.leeway


def audiences(claims: Mapping[str, Any]) -> tuple[str, ...]:
    said = claims.get("aud")
    listed = said if isinstance(said, list) else [said]
    return tuple(one for one in listed if isinstance(one, str))


def moment(claims: Mapping[str, Any], name: str) -> float | None:
    """A time among the claims; None where it is not there, refused where it is no time."""
    if name not in claims:
        return None
    said = claims[name]
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 <= said < MOST_SECONDS:
        raise BadToken(f"The token's {name} is no time")
    return float(said)


def text_at(claims: Mapping[str, Any], path: str) -> str:
    """The text of a claim; empty where there is none. A claim is found by its whole name, else by steps with dots."""
    found = value_at(claims, path)
    return found if isinstance(found, str) else ""


def texts_at(claims: Mapping[str, Any], path: str) -> frozenset[str]:
    """The texts of a claim that is a list of them, or one alone."""
    found = value_at(claims, path) if path else None
    listed = found if isinstance(found, list) else [found]
    return frozenset(one for one in listed if isinstance(one, str) and one)


def value_at(claims: Mapping[str, Any], path: str) -> Any:
    if path in claims:
        return claims[path]
    here: Any = claims
    for step in path.split("."):
        here = here.get(step) if isinstance(here, Mapping) else None
    return here
