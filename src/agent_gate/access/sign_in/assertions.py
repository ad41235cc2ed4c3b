"""Clients that prove who they are: with a signed statement (`private_key_jwt`) by a key that they registered, or that
they publish."""

from collections import OrderedDict
from typing import Any

from agent_gate.access.jwt.claims import Expected, check_claims, text_at
from agent_gate.access.jwt.keys import IssuerKeys, VerifyingKey, fitting, read_keys
from agent_gate.access.jwt.once import UsedOnce
from agent_gate.access.jwt.reading import BadToken, SignedClaims, kind_of, read_token
from agent_gate.access.sign_in.clients import SignInClient
from agent_gate.access.sign_in.documents import PER_MINUTE
from agent_gate.access.sign_in.faults import SignInFault, too_many
from agent_gate.core.ports import Clock
from agent_gate.net.addresses import network_of
from agent_gate.net.guard import Backoff
from agent_gate.store.statement import Statement
from agent_gate.vault.oauth.reach import AuthorizationFault, Reach, Web

ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
KINDS = ("", "jwt", "client-authentication+jwt")
MOST_CLIENTS = 500
"""Whose published keys are remembered."""


def keys_of(client: SignInClient) -> tuple[VerifyingKey, ...]:
    """The keys of a client that can be used."""
    try:
        return read_keys(client.keys)
    except AuthorizationFault:
        return ()


def unproved(why: str) -> SignInFault:
    return SignInFault("invalid_client", why, 401)


class PublishedKeys:
    """The keys of clients that say where theirs are, read from there as their documents are: at public addresses alone,
    under bounds, and not more often for one network than those."""

    def __init__(self, web: Web, clock: Clock) -> None:
        self._web, self._clock = web, clock
        self._known: OrderedDict[tuple[str, str], IssuerKeys] = OrderedDict()
        self._read = Backoff(limit=PER_MINUTE)

    async def check(self, client: SignInClient, token: SignedClaims, address: str) -> None:
        """Raise where none of the keys that the client publishes now signed the token."""
        keys = self._keys_of(client)
        if keys.is_due() or keys.lack(token):
            network, now = network_of(address), self._clock.monotonic()
            if wait := self._read.wait(network, now):
                raise too_many("Too many keys of clients were asked for.", wait)
            self._read.failed(network, now)
            await keys.fetch()
        keys.check(token)

    def _keys_of(self, client: SignInClient) -> IssuerKeys:
        place = (client.id, client.keys_url)
        if place not in self._known:
            self._known[place] = IssuerKeys(self._web, self._clock, *place, reach=Reach())
        while len(self._known) > MOST_CLIENTS:
            self._known.popitem(last=False)
        return self._known[place]


class ClientAssertions:
    """Checks who a client is at the token endpoint."""

    def __init__(self, once: UsedOnce, clock: Clock, web: Web) -> None:
        self._once, self._clock, self._published = once, clock, PublishedKeys(web, clock)

    async def check(
        self, client: SignInClient, form: dict[str, str], issuer: str, address: str
    ) -> tuple[Statement, ...]:
        """What uses the client's proof up, together with what it gets by it. Raises where a client that registered keys
        does not prove itself, or one without keys pretends to."""
        text = form.get("client_assertion")
        if not client.proves_itself:
            if text is not None:
                raise unproved(
                    "This client registered no keys, so it cannot prove itself with a client_assertion"
                )
            return ()
        if text is None or form.get("client_assertion_type") != ASSERTION:
            raise unproved("This client registered keys: it sends a client_assertion that one of them signed")
        try:
            return (await self._check(client, read_token(text), issuer, address),)
        except BadToken as error:
            raise unproved(error.message) from None

    async def _check(self, client: SignInClient, token: SignedClaims, issuer: str, address: str) -> Statement:
        if kind_of(token) not in KINDS:
            raise BadToken("The client_assertion is a token of another kind")
        until = self._check_claims(client, token.claims, issuer)
        if client.keys_url:
            await self._published.check(client, token, address)
        elif not any(key.verifies(token) for key in fitting(keys_of(client), token)):
            raise BadToken("No key of this client signed the client_assertion")
        return await self._once.check(token, until)

    def _check_claims(self, client: SignInClient, claims: dict[str, Any], issuer: str) -> float:
        """When the assertion ends. It is for this authorization server, by its name or by its token endpoint."""
        if text_at(claims, "sub") != client.id:
            raise BadToken("The client_assertion is of another client")
        expected = Expected(issuer=client.id, audience=issuer)
        try:
            return check_claims(claims, expected, self._clock.now())
        except BadToken:
            return check_claims(
                claims, Expected(issuer=client.id, audience=f"{issuer}/token"), self._clock.now()
            )


def claimed_client(form: dict[str, str]) -> str:
    """Whom a client assertion names, where the form does not; it is checked later."""
    try:
        return text_at(read_token(form.get("client_assertion", "")).claims, "sub")
    except BadToken:
        return ""
