"""Identity assertions (ID-JAG): the provider vouches for a person to a client, which comes in without a browser."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_gate.access.jwt.claims import text_at, texts_at
from agent_gate.access.jwt.once import UsedOnce
from agent_gate.access.jwt.reading import BadToken
from agent_gate.access.oidc.people import VouchedPeople
from agent_gate.access.oidc.provider import OidcProvider, Vouched
from agent_gate.access.sign_in.clients import SignInClient
from agent_gate.access.sign_in.faults import SignInFault, dead_grant
from agent_gate.access.sign_in.request import Audience
from agent_gate.errors import Forbidden, Unauthorized
from agent_gate.vault.oauth.tokens import OAuthTokens

PROFILE = "urn:ietf:params:oauth:grant-profile:id-jag"
KIND = "oauth-id-jag+jwt"


@dataclass(frozen=True, slots=True)
class AssertedPerson:
    """Whom an assertion is about, what it is good for, and the scopes that it allows."""

    vouched: Vouched
    resource: str
    scope: str


class IdentityAssertions:
    """Reads assertions of the provider in use; each counts once."""

    def __init__(
        self, provider: Callable[[], OidcProvider | None], people: VouchedPeople, once: UsedOnce
    ) -> None:
        self._provider, self._people, self._once = provider, people, once

    def are_taken(self) -> bool:
        """Whether an assertion could let anybody in."""
        return self._provider() is not None and self._people.gives_agents()

    async def read(self, text: str, client: SignInClient, audience: Audience) -> AssertedPerson:
        """What an assertion proves; raises `SignInFault` for anything but one for this client and this gateway."""
        provider = self._provider()
        if provider is None:
            raise dead_grant()
        try:
            token, until = await provider.check_assertion(text, KIND, audience.issuer)
            claims = token.claims
            if text_at(claims, "client_id") != client.id:
                raise BadToken("The assertion was given to another client")
            resource = audience.meant(only_text(claims, "resource"))
            vouched = self._vouch(claims, provider)
            await self._once.use(token, until)
        except (Unauthorized, Forbidden) as error:
            raise SignInFault("invalid_grant", error.message) from None
        return AssertedPerson(vouched, resource, text_at(claims, "scope"))

    def _vouch(self, claims: Mapping[str, Any], provider: OidcProvider) -> Vouched:
        """The person by the claim that names them, or where it does not say enough by who they were at their last
        login."""
        issuer, subject, said = provider.client.issuer, text_at(claims, "sub"), provider.client
        known = self._people.known_as(issuer, subject)
        name = text_at(claims, said.person)
        if said.person == "email" and claims.get("email_verified") is not True:
            name = ""
        if not subject or not (name or known):
            raise BadToken(
                "The assertion does not say who this is. The person logs in here once, by a browser"
            )
        groups = texts_at(claims, said.groups) or (known.groups if known is not None else frozenset())
        return Vouched(
            issuer, subject, "", name or (known.name if known else ""), groups, OAuthTokens(access_token="")
        )


def only_text(claims: Mapping[str, Any], name: str) -> str:
    """A claim that is one text, or a list of one."""
    found = texts_at(claims, name)
    if len(found) != 1:
        raise BadToken(f"The assertion does not name one {name}")
    return next(iter(found))
