"""Clients that prove who they are: with a signed statement (`private_key_jwt`) by a key that they registered."""

from typing import Any

from agent_gate.access.jwt.claims import Expected, check_claims, text_at
from agent_gate.access.jwt.keys import VerifyingKey, fitting, read_keys
from agent_gate.access.jwt.once import UsedOnce
from agent_gate.access.jwt.reading import BadToken, SignedClaims, kind_of, read_token
from agent_gate.access.sign_in.clients import SignInClient
from agent_gate.access.sign_in.faults import SignInFault
from agent_gate.core.ports import Clock
from agent_gate.vault.oauth.reach import AuthorizationFault

ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
KINDS = ("", "jwt", "client-authentication+jwt")


def keys_of(client: SignInClient) -> tuple[VerifyingKey, ...]:
    """The keys of a client that can be used."""
    try:
        return read_keys(client.keys)
    except AuthorizationFault:
        return ()


def unproved(why: str) -> SignInFault:
    return SignInFault("invalid_client", why, 401)


class ClientAssertions:
    """Checks who a client is at the token endpoint."""

    def __init__(self, once: UsedOnce, clock: Clock) -> None:
        self._once, self._clock = once, clock

    async def check(self, client: SignInClient, form: dict[str, str], issuer: str) -> None:
        """Raise where a client that registered keys does not prove itself, or one without keys pretends to."""
        text = form.get("client_assertion")
        if client.keys is None:
            if text is not None:
                raise unproved(
                    "This client registered no keys, so it cannot prove itself with a client_assertion"
                )
            return
        if text is None or form.get("client_assertion_type") != ASSERTION:
            raise unproved("This client registered keys: it sends a client_assertion that one of them signed")
        try:
            await self._use(client, read_token(text), issuer)
        except BadToken as error:
            raise unproved(error.message) from None

    async def _use(self, client: SignInClient, token: SignedClaims, issuer: str) -> None:
        if kind_of(token) not in KINDS:
            raise BadToken("The client_assertion is a token of another kind")
        until = self._check_claims(client, token.claims, issuer)
        if not any(key.verifies(token) for key in fitting(keys_of(client), token)):
            raise BadToken("No key of this client signed the client_assertion")
        await self._once.use(token, until)

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
