"""Signing in, from the link that a person gets to the account that is connected.

A flow is sealed in the vault until it ends: it belongs to one source, one issuer, one verifier and whoever began it,
is good once and for ten minutes, and any process on the store can finish it.
"""

import base64
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import msgspec

from agent_gate.core.ports import Clock
from agent_gate.errors import InvalidArgs
from agent_gate.store.statement import Conflict, Statement
from agent_gate.vault.accounts import Connected
from agent_gate.vault.oauth.authorize import (
    FlowProof,
    authorization_url,
    check_issuer,
    chosen_scope,
    joined_scope,
)
from agent_gate.vault.oauth.challenge import BearerChallenge
from agent_gate.vault.oauth.clients import (
    NOT_CONFIGURED,
    ConfiguredClient,
    OAuthClient,
    configured_client,
    register_client,
)
from agent_gate.vault.oauth.device import DeviceCode, poll_device, start_device
from agent_gate.vault.oauth.discovery import (
    AuthorizationServer,
    ProtectedResource,
    find_resource,
    find_server,
    guessed_server,
)
from agent_gate.vault.oauth.dpop import new_proof_key
from agent_gate.vault.oauth.reach import AuthorizationFault, Reach, Web
from agent_gate.vault.oauth.tokens import (
    ACCESS_TOKEN,
    DEVICE,
    EXCHANGE,
    ID_JAG,
    ID_TOKEN,
    JWT,
    OAuthTokens,
    TokenEndpoint,
)
from agent_gate.vault.vault import Vault

FLOW_SECONDS = 600.0
FLOW, CLIENT = "flow", "client"
NO_FLOW = "This sign-in is unknown, was finished, or began more than ten minutes ago. Begin anew"
WHOLE_ADDRESS = (
    "Paste the whole address at which the browser ended, not the code alone: it says which server the code is from, "
    "without which another one could have slipped it in"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInSettings:
    """How a source signs in, as its file says; what is left out is discovered."""

    source: str
    title: str
    url: str
    client: ConfiguredClient = NOT_CONFIGURED
    scopes: tuple[str, ...] = ()
    authorize_url: str | None = None
    token_url: str | None = None
    device_url: str | None = None
    audience: str | None = None
    identity_url: str | None = None
    identity_client: ConfiguredClient = NOT_CONFIGURED

    def reach(self) -> Reach:
        return Reach.of(self.url, self.authorize_url, self.token_url, self.device_url)


class Dealing(msgspec.Struct, frozen=True, kw_only=True):
    """Whom tokens are got from, as whom, and for what. `named` are the origins that the operator named."""

    server: AuthorizationServer
    client: OAuthClient
    scope: str | None = None
    resource: str | None = None
    private_key: str | None = None
    proof_key: str | None = None
    named: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Dealing({self.server.issuer})"


class Flow(Dealing, frozen=True, kw_only=True):
    """One sign-in under way. `initiator` is who began it, and the only one from whom a pasted code is taken."""

    owner: str
    source: str
    initiator: str
    verifier: str
    redirect_uri: str
    expires_at: float
    confirm: bool = False
    approver: str = ""

    def __repr__(self) -> str:
        return f"Flow({self.source})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What the person gets: a link to click, or a code to type in at one."""

    state: str
    url: str
    expires_at: float
    user_code: str | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """An account came back. `confirm`: it counts only once the person who let the flow begin, `approver` where one
    did, says that it is theirs."""

    owner: str
    source: str
    connected: Connected
    confirm: bool
    approver: str = ""


def flow_owner(state: str) -> str:
    """A flow is found by its state, which itself is nowhere on disk."""
    return f"flow:{sha256(state.encode()).hexdigest()}"


def answer_in(address: str) -> dict[str, str]:
    """What a browser was sent back with, in the address at which it ended."""
    return {name: values[0] for name, values in parse_qs(urlsplit(address.strip()).query).items()}


class Flows:
    """Begins and finishes sign-ins."""

    def __init__(
        self,
        vault: Vault,
        web: Web,
        clock: Clock,
        redirect_uri: Callable[[], str],
        document_url: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._vault, self._web, self._clock = vault, web, clock
        self._redirect_uri, self._document_url = redirect_uri, document_url

    async def start(
        self,
        settings: SignInSettings,
        owner: str,
        initiator: str,
        *,
        confirm: bool = False,
        approver: str = "",
        challenge: BearerChallenge | None = None,
        earlier_scope: str | None = None,
    ) -> Started:
        """A link at which a person signs in for this source."""
        server, resource = await self._find(settings, challenge)
        client = await self._find_client(settings, server)
        challenged = challenge.scope if challenge else None
        if earlier_scope:
            challenged = joined_scope(earlier_scope, challenged)
        dealing = deal(settings, server, client, resource, challenged, challenge)
        proof, redirect = FlowProof.new(), client.redirect_uri or self._redirect_uri()
        url = authorization_url(server, client, proof, redirect, dealing.scope, dealing.resource)
        flow = Flow(
            **msgspec.structs.asdict(dealing),
            owner=owner,
            source=settings.source,
            initiator=initiator,
            verifier=proof.verifier,
            redirect_uri=redirect,
            expires_at=self._clock.now() + FLOW_SECONDS,
            confirm=confirm,
            approver=approver,
        )
        await self._vault.put(flow_owner(proof.state), FLOW, msgspec.json.encode(flow))
        return Started(state=proof.state, url=url, expires_at=flow.expires_at)

    async def finish(
        self, state: str, code: str, issuer: str | None, initiator: str | None = None
    ) -> Finished:
        """What a browser, or a person who pasted it, brought back. A state is good once, whatever comes with it."""
        flow = await self._take(state)
        if initiator is not None and not hmac.compare_digest(flow.initiator, initiator):
            raise InvalidArgs("This sign-in was begun by somebody else, who has to finish it")
        check_issuer(flow.server, issuer)
        tokens = await self._endpoint(flow).redeem(code, flow.verifier, flow.redirect_uri)
        connected = self._connected("oauth", flow, tokens, flow.initiator)
        return Finished(flow.owner, flow.source, connected, flow.confirm, flow.approver)

    async def finish_pasted(self, state: str, pasted: str, initiator: str) -> Finished:
        """The code, or the whole address at which a browser ended where nothing answered."""
        if "://" not in pasted:
            if (await self.look(state)).server.says_issuer:
                raise InvalidArgs(WHOLE_ADDRESS)
            return await self.finish(state, pasted.strip(), None, initiator)
        came = answer_in(pasted)
        if "code" not in came:
            raise InvalidArgs("There is no code in this address. Copy it whole from the browser")
        return await self.finish(came.get("state", state), came["code"], came.get("iss"), initiator)

    async def look(self, state: str) -> Flow:
        """The flow of this state, which goes on."""
        kept = await self._vault.get(flow_owner(state), FLOW)
        if kept is None:
            raise InvalidArgs(NO_FLOW)
        return msgspec.json.decode(kept.value, type=Flow)

    async def drop(self, flow: str) -> None:
        """End a flow that brought nothing."""
        await self._vault.remove(flow, FLOW)

    async def _take(self, state: str) -> Flow:
        """The flow of this state, which from now on nobody else gets."""
        owner = flow_owner(state)
        kept = await self._vault.get(owner, FLOW)
        if kept is None:
            raise InvalidArgs(NO_FLOW)
        gone = Statement("DELETE FROM vault WHERE owner = ? AND field = ?", (owner, FLOW), expect=1)
        try:
            await self._vault.write(gone)
        except Conflict:
            raise InvalidArgs(NO_FLOW) from None
        flow = msgspec.json.decode(kept.value, type=Flow)
        if flow.expires_at <= self._clock.now():
            raise InvalidArgs(NO_FLOW)
        return flow

    async def start_device(
        self,
        settings: SignInSettings,
        owner: str,
        initiator: str,
        *,
        confirm: bool = False,
        approver: str = "",
    ) -> tuple[Started, Callable[[], Awaitable[Finished]]]:
        """A code to type in somewhere, and the waiting for it."""
        server, resource = await self._find(settings, None)
        client = await self._find_client(settings, server, grants=(DEVICE, "refresh_token"))
        dealing, reach = deal(settings, server, client, resource), settings.reach()
        code = await start_device(
            self._web, server, client, dealing.scope, reach, dealing.private_key, dealing.resource
        )

        async def wait() -> Finished:
            tokens = await poll_device(self._endpoint(dealing), code, self._clock)
            connected = self._connected("oauth", dealing, tokens, initiator)
            return Finished(owner, settings.source, connected, confirm, approver)

        return self._started(code), wait

    def _started(self, code: DeviceCode) -> Started:
        return Started(
            state="",
            url=code.verification_uri_complete or code.verification_uri,
            user_code=code.user_code,
            expires_at=self._clock.now() + code.expires_in,
        )

    async def connect_machine(self, settings: SignInSettings, owner: str, initiator: str) -> Finished:
        """By the gateway's own credentials, without a person."""
        dealing = await self._deal_alone(settings, "client_id, and client_secret or private_key,")
        tokens = await self._endpoint(dealing).exchange_credentials(dealing.scope)
        connected = self._connected("machine", dealing, tokens, initiator)
        return Finished(owner, settings.source, connected, False)

    async def exchange(self, settings: SignInSettings, owner: str, identity: str, initiator: str) -> Finished:
        """By an identity of another issuer, without a person: its token for one of this server's."""
        dealing = await self._deal_alone(settings, "client_id")
        endpoint, server, scope = self._endpoint(dealing), dealing.server, dealing.scope
        if settings.identity_url:
            grant = await self._fetch_grant(settings, identity, server.issuer, dealing.resource, scope)
            tokens = await endpoint.exchange_assertion(grant, scope)
        elif EXCHANGE in server.grants:
            audience = dealing.resource or server.issuer
            tokens = await endpoint.exchange(identity, audience, scope, ACCESS_TOKEN, JWT)
        else:
            tokens = await endpoint.exchange_assertion(identity, scope)
        tokens = msgspec.structs.replace(tokens, refresh_token=None)
        connected = self._connected("exchange", dealing, tokens, initiator)
        return Finished(owner, settings.source, connected, False)

    async def _deal_alone(self, settings: SignInSettings, needs: str) -> Dealing:
        """As the client that the file names; `needs` says what has to stand there."""
        server, resource = await self._find(settings, None)
        client = configured_client(server, settings.client)
        if client is None:
            raise InvalidArgs(f"{settings.title} needs {needs} under its auth")
        return deal(settings, server, client, resource)

    async def _fetch_grant(
        self, settings: SignInSettings, identity: str, issuer: str, resource: str | None, scope: str | None
    ) -> str:
        """What the identity's own issuer says to the other one for it (ID-JAG)."""
        own = AuthorizationServer(issuer=settings.identity_url or "", token_url=settings.identity_url)
        client = configured_client(own, settings.identity_client) or OAuthClient(
            issuer=own.issuer, client_id=""
        )
        reach = Reach.of(settings.identity_url)
        endpoint = TokenEndpoint(self._web, own, client, reach, resource=resource)
        return (await endpoint.exchange(identity, issuer, scope, ID_JAG, ID_TOKEN)).access_token

    async def _find(
        self, settings: SignInSettings, challenge: BearerChallenge | None
    ) -> tuple[AuthorizationServer, ProtectedResource | None]:
        """The authorization server: as the file says, else as the source's server does."""
        reach = settings.reach()
        if settings.token_url:
            return configured_server(settings), None
        resource = await find_resource(self._web, settings.url, challenge, reach)
        issuer = resource.issuer if resource else None
        if issuer is None:
            own = guessed_server(settings.url)
            return await find_server(self._web, own.issuer, reach) or own, None
        server = await find_server(self._web, issuer, reach)
        if server is None:
            raise AuthorizationFault(f"The authorization server {issuer} does not describe itself")
        return server, resource

    async def _find_client(
        self,
        settings: SignInSettings,
        server: AuthorizationServer,
        grants: tuple[str, ...] = ("authorization_code", "refresh_token"),
    ) -> OAuthClient:
        """Who we are there: as configured, as registered before at this very issuer, or registered now."""
        ours = replace(settings.client, document_url=self._document_url())
        configured = configured_client(server, ours)
        if configured is not None:
            return configured
        place, redirect = f"issuer:{server.issuer}", self._redirect_uri()
        kept = await self._vault.get(place, CLIENT)
        if kept is not None:
            client = msgspec.json.decode(kept.value, type=OAuthClient)
            if client.redirect_uri == redirect:
                return client
        client = await register_client(self._web, server, redirect, grants, settings.reach())
        await self._vault.put(place, CLIENT, msgspec.json.encode(client))
        return client

    def _endpoint(self, dealing: Dealing) -> TokenEndpoint:
        return TokenEndpoint(
            self._web,
            dealing.server,
            dealing.client,
            Reach(frozenset(dealing.named)),
            private_key=dealing.private_key,
            resource=dealing.resource,
            proof_key=dealing.proof_key,
        )

    def _connected(
        self,
        kind: Literal["oauth", "machine", "exchange"],
        dealing: Dealing,
        tokens: OAuthTokens,
        by: str,
    ) -> Connected:
        return Connected(
            kind=kind,
            tokens=tokens,
            server=dealing.server,
            client=dealing.client,
            private_key=dealing.private_key,
            proof_key=dealing.proof_key,
            resource=dealing.resource,
            scope=tokens.scope or dealing.scope,
            account=account_of(tokens),
            named=dealing.named,
            by=by,
            since=self._clock.now(),
        )

    async def forget_old(self) -> None:
        """Flows that nobody finished."""
        await self._vault.write(
            Statement(
                "DELETE FROM vault WHERE field = ? AND updated_at < ?",
                (FLOW, self._clock.now() - FLOW_SECONDS),
            )
        )


def deal(
    settings: SignInSettings,
    server: AuthorizationServer,
    client: OAuthClient,
    resource: ProtectedResource | None,
    challenged: str | None = None,
    challenge: BearerChallenge | None = None,
) -> Dealing:
    """How a source's tokens are got there; `challenged` is the scope that it asked for."""
    return Dealing(
        server=server,
        client=client,
        scope=chosen_scope(settings.scopes, challenged, resource.scopes if resource else (), server),
        resource=resource.resource if resource else settings.audience,
        private_key=settings.client.private_key,
        proof_key=proof_key_for(server, resource, challenge),
        named=tuple(sorted(settings.reach().named)),
    )


def proof_key_for(
    server: AuthorizationServer, resource: ProtectedResource | None, challenge: BearerChallenge | None = None
) -> str | None:
    """A key of the account's own, where both the one that gives tokens and the one that takes them bind them to one."""
    asked = challenge is not None and challenge.scheme.lower() == "dpop"
    taken = asked or (resource is not None and resource.takes_possession)
    return new_proof_key() if server.takes_possession and taken else None


def configured_server(settings: SignInSettings) -> AuthorizationServer:
    """An authorization server that the operator wrote down."""
    return AuthorizationServer(
        issuer=settings.token_url or "",
        authorize_url=settings.authorize_url,
        token_url=settings.token_url,
        device_url=settings.device_url,
        token_methods=("none", "client_secret_post", "client_secret_basic"),
        challenge_methods=("S256",),
    )


def account_of(tokens: OAuthTokens) -> str | None:
    """Whose account it is, as the server's own statement says; for people's eyes only, nothing is decided by it."""
    if tokens.id_token is None or tokens.id_token.count(".") != 2:
        return None
    payload = tokens.id_token.split(".")[1]
    try:
        claims: Any = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, msgspec.DecodeError):
        return None
    for name in ("email", "preferred_username", "name", "sub"):
        if isinstance(claims, dict) and isinstance(claims.get(name), str):
            return str(claims[name])[:120]
    return None
