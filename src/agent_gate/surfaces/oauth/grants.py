"""The grants of `/token`: a code, a refresh token, or the provider's assertion about a person."""

from dataclasses import replace
from typing import Protocol

from agent_gate.access.oidc.assertions import IdentityAssertions
from agent_gate.access.oidc.sign_ins import VouchedSignIns
from agent_gate.access.sign_in.assertions import ClientAssertions
from agent_gate.access.sign_in.clients import SignInClient
from agent_gate.access.sign_in.consents import LOGIN_SECONDS, BegunSignIn
from agent_gate.access.sign_in.desk import SignInDesk
from agent_gate.access.sign_in.families import TokenPair
from agent_gate.access.sign_in.faults import SignInFault
from agent_gate.access.sign_in.request import AskedFor, Audience, wanted_namespaces
from agent_gate.calls.calls import Calls
from agent_gate.core.call import new_id
from agent_gate.core.ports import Clock
from agent_gate.errors import Forbidden
from agent_gate.store.statement import Statement
from agent_gate.surfaces.oauth.question import question

NOT_BY_ITSELF = "Nobody is asked about an assertion: {why}. Sign in by a browser instead"


class Asserting(Protocol):
    """The provider's word for people and the clients that bring it."""

    @property
    def assertions(self) -> IdentityAssertions: ...
    @property
    def client_assertions(self) -> ClientAssertions: ...
    @property
    def sign_ins(self) -> VouchedSignIns: ...


class AssertionGrant:
    """Lets a client in for whom the provider vouches for a person: by the same rules as a login, on the same record."""

    def __init__(self, desk: SignInDesk, calls: Calls, clock: Clock, asserting: Asserting) -> None:
        self._desk, self._calls, self._clock, self._asserting = desk, calls, clock, asserting

    async def redeem(
        self,
        client: SignInClient,
        form: dict[str, str],
        audience: Audience,
        address: str,
        proving: tuple[Statement, ...] = (),
    ) -> TokenPair:
        """An access token alone: for the next one, the client asks the provider again. `proving` uses the client's
        proof up with it."""
        if not client.proves_itself:
            raise SignInFault(
                "unauthorized_client", "Only a client that proves itself with a key may bring an assertion"
            )
        said = await self._asserting.assertions.read(form.get("assertion", ""), client, audience)
        spaces = both(wanted_namespaces(form.get("scope") or said.scope), wanted_namespaces(said.scope))
        if spaces == ():
            raise SignInFault(
                "invalid_scope", "The assertion is for other sources than those that are asked for"
            )
        asked = AskedFor(
            client_id=client.id,
            client_name=client.name,
            client=client.slug(client.redirect_uris[0]),
            redirect_uri=client.redirect_uris[0],
            state=None,
            challenge="",
            resource=said.resource,
            namespaces=spaces,
        )
        sign_in = BegunSignIn(
            id=new_id(), state="asked", asked=asked, number="", expires_at=self._clock.now() + LOGIN_SECONDS
        )
        try:
            proved = await self._asserting.sign_ins.take(sign_in.id, said.vouched)
        except Forbidden as error:
            raise SignInFault("access_denied", error.message) from None
        return await self._let_in(replace(sign_in, proved=proved), address, proving)

    async def _let_in(self, sign_in: BegunSignIn, address: str, proving: tuple[Statement, ...]) -> TokenPair:
        proved = sign_in.proved
        terms = self._desk.own_terms(sign_in.asked, proved) if proved is not None else None
        if terms is None:
            raise SignInFault(
                "access_denied", NOT_BY_ITSELF.format(why="it asks for more than the person's groups give")
            )
        await self._desk.begun.begin_proved(sign_in)
        try:
            let_in = await self._calls.let_in(question(sign_in, address, terms))
        except Forbidden as error:
            raise SignInFault("access_denied", error.message) from None
        if not let_in:
            await self._desk.begun.end(sign_in.id)
            raise SignInFault("access_denied", NOT_BY_ITSELF.format(why="a rule wants the yes of others"))
        return await self._desk.open_proved(sign_in.id, proving)


def both(wanted: tuple[str, ...] | None, allowed: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The namespaces that a request names, within those that the assertion names."""
    if wanted is None or allowed is None:
        return wanted if allowed is None else allowed
    return tuple(one for one in wanted if one in allowed)
