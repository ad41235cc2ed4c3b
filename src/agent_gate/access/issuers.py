"""Agents that come in with a token of another issuer, such as a CI system's or a service mesh's.

Nothing of such a token is stored. One that was checked is remembered by its digest until it ends, so that its next
call costs a lookup; a reload forgets those whose issuer is not trusted as before.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from agent_gate.access.jwt.claims import Expected, check_claims, text_at, texts_at
from agent_gate.access.jwt.keys import IssuerKeys
from agent_gate.access.jwt.reading import BadToken, SignedClaims, kind_of, looks_signed, read_token
from agent_gate.core.call import Caller
from agent_gate.core.ports import Clock
from agent_gate.vault.oauth.reach import Web

MOST_REMEMBERED = 10_000
MOST_GROUPS = 200
NAME = re.compile(r"[A-Za-z0-9@._:/+=~|-]{1,200}")
KINDS = ("", "jwt", "at+jwt")
"""What kinds of token say who calls; one made for something else, such as a logout, does not."""
UNKNOWN = "The token is of an issuer that this gateway does not trust, or for another audience"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedIssuer:
    """An issuer as the operator names it: whose tokens come in, what they must say, and what their agents may be.

    `likeness` is the agent that each of them is, but for its name, its person and its groups; `prefix` stands before
    the name that the claim `caller` gives.
    """

    prefix: str
    expected: Expected
    jwks_url: str = ""
    caller: str = "sub"
    groups: str = ""
    person: str = ""
    likeness: Caller

    def caller_of(self, token: SignedClaims) -> Caller:
        claims = token.claims
        name = text_at(claims, self.caller)
        if not NAME.fullmatch(name):
            raise BadToken(f"The token's claim {self.caller} is missing, or cannot be a name")
        person = text_at(claims, self.person) if self.person else ""
        if person and not NAME.fullmatch(person):
            raise BadToken(f"The token's claim {self.person} cannot be a name")
        groups = texts_at(claims, self.groups)
        if len(groups) > MOST_GROUPS:
            raise BadToken(f"The token names more than {MOST_GROUPS} groups")
        return replace(self.likeness, name=f"{self.prefix}/{name}", person=person, groups=groups)


@dataclass(frozen=True, slots=True)
class Remembered:
    caller: Caller
    until: float
    issuer: TrustedIssuer
    thumbprint: str


class Issuers:
    """Says who calls with a token of a trusted issuer. `taken` are names that others have."""

    def __init__(self, web: Web, clock: Clock, taken: Callable[[str], bool] = lambda _name: False) -> None:
        self._web, self._clock, self._taken = web, clock, taken
        self.trusted: tuple[TrustedIssuer, ...] = ()
        self._keys: dict[tuple[str, str], IssuerKeys] = {}
        self._known: dict[bytes, Remembered] = {}

    def replace(self, trusted: Iterable[TrustedIssuer]) -> None:
        """Trust these and nobody else, as a reload does. Of those that stay the keys are kept, and who is here."""
        self.trusted = tuple(trusted)
        places = {place_of(one) for one in self.trusted}
        self._keys = {
            place: self._keys.get(place) or IssuerKeys(self._web, self._clock, *place) for place in places
        }
        renewed = ((digest, self._renewed(one)) for digest, one in self._known.items())
        self._known = {digest: one for digest, one in renewed if one is not None}

    def _renewed(self, known: Remembered) -> Remembered | None:
        """A token that was checked, as it counts under what is trusted now."""
        before, caller = known.issuer, known.caller
        now = next((one for one in self.trusted if replace(one, likeness=before.likeness) == before), None)
        if now is None:
            return None
        who = replace(now.likeness, name=caller.name, person=caller.person, groups=caller.groups)
        return replace(known, caller=who, issuer=now)

    def keys_at(self, place: tuple[str, str]) -> IssuerKeys:
        return self._keys[place]

    def callers(self) -> list[Caller]:
        """Who was here with a token that has not ended."""
        now = self._clock.now()
        live = (one.caller for one in self._known.values() if one.until > now)
        return list({caller.name: caller for caller in live}.values())

    def caller(self, name: str) -> Caller | None:
        """The agent of that name as it is now. One that was here before a restart, or whose token has ended, is what
        its issuer's entry says of all."""
        live = next((caller for caller in self.callers() if caller.name == name), None)
        if live is not None:
            return live
        return next(
            (replace(one.likeness, name=name) for one in self.trusted if name.startswith(f"{one.prefix}/")),
            None,
        )

    def recall(self, digest: bytes) -> Caller | None:
        """The caller of a token that was checked before and has not ended."""
        known = self._known.get(digest)
        if known is None or known.until <= self._clock.now():
            return None
        return known.caller

    def still(self, name: str) -> Caller | None:
        """The agent of that name while any token of it lasts."""
        return next((caller for caller in self.callers() if caller.name == name), None)

    def authenticate(self, token: str, digest: bytes) -> Caller:
        """Who calls with this token; raises `BadToken`, or `KeysPending` where its key may have to be fetched first."""
        known = self.recall(digest)
        if known is not None:
            return known
        read = read_token(token)
        issuer, until = self._issuer_of(read)
        key = self.keys_at(place_of(issuer)).check(read)
        caller = issuer.caller_of(read)
        if self._taken(caller.name):
            raise BadToken(f"There is another agent named {caller.name}; rename it, or the issuer's entry")
        self._remember(digest, Remembered(caller, until, issuer, key.thumbprint))
        return caller

    def _issuer_of(self, token: SignedClaims) -> tuple[TrustedIssuer, float]:
        """The entry whose every check but the signature's the token passes, and when it ends."""
        if kind_of(token) not in KINDS:
            raise BadToken("The token was made for something else than coming in")
        fault = BadToken(UNKNOWN)
        for issuer in self.trusted:
            if not issuer.expected.is_of(token.claims):
                continue
            try:
                return issuer, check_claims(token.claims, issuer.expected, self._clock.now())
            except BadToken as error:
                fault = error
        raise fault

    def _remember(self, digest: bytes, one: Remembered) -> None:
        if len(self._known) >= MOST_REMEMBERED:
            self.forget_ended()
        if len(self._known) < MOST_REMEMBERED:
            self._known[digest] = one

    def forget_ended(self) -> set[str]:
        """Forget tokens whose time is over; the names of agents that have none left."""
        now = self._clock.now()
        ended = {one.caller.name for one in self._known.values() if one.until <= now}
        self._known = {digest: one for digest, one in self._known.items() if one.until > now}
        return ended - {one.caller.name for one in self._known.values()}

    def missing_keys(self, token: str) -> IssuerKeys | None:
        """The keys to fetch before this token can be judged."""
        try:
            read = read_token(token)
            keys = self.keys_at(place_of(self._issuer_of(read)[0]))
        except BadToken:
            return None
        return keys if keys.lack(read) else None

    def wants_keys(self, header: bytes | None, digest_of: Callable[[str], bytes]) -> IssuerKeys | None:
        """The keys to fetch before a request with this `Authorization` can be judged; None where it can."""
        if header is None or header[:10].lower() != b"bearer eyj":
            return None
        token = header[7:].decode("latin-1").strip()
        if not looks_signed(token) or self.recall(digest_of(token)) is not None:
            return None
        return self.missing_keys(token)

    async def refresh(self) -> None:
        """Look again at the keys that were fetched a while ago; what a key signed that is gone is forgotten."""
        await asyncio.gather(*(keys.fetch() for keys in self._keys.values() if keys.is_due()))
        for place, keys in self._keys.items():
            self._forget_signed_by_others(place, [key.thumbprint for key in keys.keys])

    def _forget_signed_by_others(self, place: tuple[str, str], thumbprints: Sequence[str]) -> None:
        self._known = {
            digest: one
            for digest, one in self._known.items()
            if place_of(one.issuer) != place or one.thumbprint in thumbprints
        }


def place_of(issuer: TrustedIssuer) -> tuple[str, str]:
    return issuer.expected.issuer, issuer.jwks_url
