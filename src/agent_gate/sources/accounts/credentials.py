"""What a source proves itself with where its file refers to a secret, or where an account has to be connected."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from shlex import quote

from agent_gate.core.credentials import (
    KEY_KINDS,
    PERSON,
    CallerSignInNeeded,
    Credentials,
    Identity,
    Proof,
    SignIn,
    SignInNeeded,
)
from agent_gate.core.ports import Clock
from agent_gate.core.references import references_of
from agent_gate.net.auth import prove
from agent_gate.sources.access import FixedCredentials
from agent_gate.vault.accounts import Connected
from agent_gate.vault.custody import Custody
from agent_gate.vault.flows import Finished, SignInSettings
from agent_gate.vault.oauth.clients import ConfiguredClient
from agent_gate.vault.oauth.dpop import Possession
from agent_gate.vault.oauth.reach import AuthorizationFault
from agent_gate.vault.oauth.tokens import OAuthRefusal

KEPT_SECONDS = 5.0
"""How long what a reference led to is used before it is looked up again."""
GATEWAY = "gateway"
OF_SOURCE, OF_HOLDER = "source:", "\n"  # no key, no agent and no person has a newline in its name
OF_AGENT = "agent:"
Begin = Callable[[str, str], Awaitable[str]]
"""Begins a sign-in of a caller at a source; the link."""


def owner_of(source: str, caller: str = "") -> str:
    """Whose name an account of a source is kept under: the source's own, or that of one of its callers, which is an
    agent or the person that agents work for (`account_holder`)."""
    if not caller:
        return f"{OF_SOURCE}{source}"
    return f"{OF_SOURCE}{source}{OF_HOLDER}{'' if caller.startswith(PERSON) else OF_AGENT}{caller}"


def parts_of(owner: str) -> tuple[str, str]:
    """The source and the caller that an account belongs to."""
    source, _, caller = owner.removeprefix(OF_SOURCE).partition(OF_HOLDER)
    return source, caller.removeprefix(OF_AGENT)


def named(caller: str) -> str:
    """Whose account it is, for people."""
    return caller.removeprefix(PERSON)


def what_to_do(who: Identity) -> str:
    """The sentence for a source that nobody has connected yet."""
    title = who.title or who.source
    if who.sign_in is not None and who.sign_in.kind in KEY_KINDS:
        variable = f"Set the environment variable {who.sign_in.env}, or s" if who.sign_in.env else "S"
        return (
            f"{title} needs a key. {variable}tore one with `agent-gate auth key {quote(who.source)}`, on the page, "
            "or by connections_key"
        )
    if who.sign_in is not None and who.sign_in.kind == "token-exchange":
        return f"{title} takes an identity of another issuer: see identity_token under its auth, then reconnect it"
    return f"{title} needs a sign-in: `agent-gate auth start {quote(who.source)}`, Sign in on the page, or connections_start"


class SourceCredentials:
    """The credentials of one source. What counts is kept as a `Proof` until the account or the secret changes."""

    def __init__(self, who: Identity, custody: Custody, clock: Clock, caller: str = "") -> None:
        self._who, self._custody, self._clock = who, custody, clock
        self._accounts, self._owner = custody.accounts, owner_of(who.source, caller)
        self._refers = any(references_of(who))
        self._made_of: tuple[Identity, str] | None = None
        self._seen: tuple[Connected, int] | None = None
        self._proof: Proof | None = None
        self._until, self._changes = 0.0, 0
        self._machine = asyncio.Lock()
        self._caller, self._spent = caller, None  # type: str, Connected | None

    def at_hand(self, _caller: str, /) -> Proof | None:
        if self._accounts.known.get(self._owner) is not self._seen or self._clock.monotonic() >= self._until:
            return None
        return self._proof if self._changes == self._custody.secrets.changes else None

    async def fetch(self, _caller: str, /) -> Proof:
        self._changes = self._custody.secrets.changes
        filled = await self._custody.secrets.fill(self._who)
        key = self._written_key(filled)
        account = None if key or filled.sign_in is None else await self._find_account(filled, filled.sign_in)
        return self._take(filled, key, account)

    def _written_key(self, filled: Identity) -> str:
        """A key that the operator gave for everybody; where each caller has its own, there is none."""
        if filled.per_caller:
            return ""
        env = filled.sign_in.env if filled.sign_in else ""
        return filled.token or self._custody.secrets.variable(env)

    async def _find_account(self, filled: Identity, signing: SignIn) -> Connected | None:
        """The account with a token that is good for now; None where it has to be refused first."""
        if signing.kind == "token-exchange":
            return await self._exchange(filled, signing)
        known = self._accounts.at_hand(self._owner) or await self._accounts.look_again(self._owner)
        if known is None:
            if signing.on_refusal:
                return None
            if signing.kind == "client-credentials":
                return await self._connect_machine(filled)
            raise SignInNeeded(what_to_do(self._who))
        try:
            return await self._accounts.renew_if_due(self._owner)
        except SignInNeeded as error:
            raise SignInNeeded(f"{error.message}. {what_to_do(self._who)}") from None
        except AuthorizationFault:
            ends = known.tokens.expires_at
            if ends is None or ends <= self._clock.now():
                raise
            return known  # the authorization server is away, and the token is still good

    async def _connect_machine(self, filled: Identity) -> Connected:
        async with self._machine:
            known = self._accounts.at_hand(self._owner)
            if known is None:
                settings = sign_in_settings(filled)
                known = await self._sign_in(
                    self._custody.flows.connect_machine(settings, self._owner, GATEWAY)
                )
            return known

    async def _sign_in(self, work: Awaitable[Finished]) -> Connected:
        """The account of a sign-in that needs no person. One that the server refuses is not tried again by itself."""
        try:
            finished = await work
        except OAuthRefusal as refusal:
            raise SignInNeeded(f"{refusal.message}. {what_to_do(self._who)}") from None
        await self._accounts.keep(self._owner, finished.connected)
        return self._accounts.at_hand(self._owner) or finished.connected

    async def _exchange(self, filled: Identity, signing: SignIn) -> Connected:
        """An account by the identity of another issuer: the caller's, or the one that the file refers to."""
        async with self._machine:
            known = self._accounts.at_hand(self._owner)
            if known is not None and not known.is_due(self._clock.now()) and known is not self._spent:
                return known
            mine = self._caller
            identity = await self._custody.find_identity(mine) if mine else signing.identity_token
            if not identity:
                whose = f"{named(self._caller)} is" if self._caller else "the gateway is"
                raise SignInNeeded(
                    f"{self._who.title or self._who.source} takes an identity, and {whose} without one"
                )
            settings = sign_in_settings(filled)
            return await self._sign_in(self._custody.flows.exchange(settings, self._owner, identity, GATEWAY))

    def _take(self, filled: Identity, key: str, account: Connected | None) -> Proof:
        token = key or (account.tokens.access_token if account is not None else "")
        if self._proof is None or self._made_of != (filled, token):
            self._made_of, self._proof = (filled, token), bound(prove(presented(filled, token)), account)
        self._seen, self._until = self._accounts.known.get(self._owner), self._good_until(account)
        return self._proof

    def _good_until(self, account: Connected | None) -> float:
        now = self._clock.monotonic()
        until = now + KEPT_SECONDS if self._refers else math.inf
        if account is not None and account.can_renew and account.due_at is not None:
            until = min(until, now + max(1.0, account.due_at - self._clock.now()))
        return until

    async def refused(self, caller: str, proof: Proof, challenge: str, /) -> Proof | None:
        """Another proof: one that came meanwhile, or one that is renewed for this. Else a person has to do something."""
        self._until = 0.0
        fresh = await self.fetch(caller)
        if fresh is not proof or self._who.sign_in is None:
            return None if fresh is proof else fresh
        self._custody.challenged(self._who.source, challenge)
        account = self._seen[0] if self._seen is not None else None
        if account is None:
            if self._written_key(self._who):
                return None
            raise SignInNeeded(what_to_do(self._who))
        if self._custody.challenges[self._who.source].error == "insufficient_scope":
            raise SignInNeeded(f"The account may not do this. {what_to_do(self._who)}")
        if account.kind == "exchange" and account is not self._spent:
            self._spent = account
            return await self.fetch(caller)
        if not account.can_renew:
            self._accounts.note_refused(self._owner, account)
            raise SignInNeeded(f"The account is not taken any more. {what_to_do(self._who)}")
        try:
            await self._accounts.renew(self._owner, account.tokens.access_token)
        except SignInNeeded as error:
            raise SignInNeeded(f"{error.message}. {what_to_do(self._who)}") from None
        return await self.fetch(caller)


class CallerCredentials:
    """The credentials of a source at which each caller has an account of its own; of a caller that works for a person, it
    is that person's, for all of their agents.

    Nobody's account serves another's call. Only what no call is for, the list of tools, is asked for with the source's
    own account, or where it has none with the one that was connected first.
    """

    def __init__(self, who: Identity, custody: Custody, clock: Clock, begin: Begin) -> None:
        self._who, self._custody, self._clock, self._begin = who, custody, clock, begin
        self._by_caller: dict[str, SourceCredentials] = {}

    def at_hand(self, caller: str, /) -> Proof | None:
        return self._of(caller).at_hand(caller)

    def _of(self, caller: str) -> SourceCredentials:
        name = caller or self._lister()
        found = self._by_caller.get(name)
        if found is None:
            found = self._by_caller[name] = SourceCredentials(self._who, self._custody, self._clock, name)
        return found

    def _lister(self) -> str:
        """The caller with whose account tools are listed; nobody where the source has an account itself."""
        accounts = self._custody.accounts
        mine = owner_of(self._who.source)
        if accounts.at_hand(mine) is not None:
            return ""
        found = [owner for owner in accounts.owners() if owner.startswith(f"{mine}{OF_HOLDER}")]
        first = min(
            found, key=lambda owner: known.since if (known := accounts.at_hand(owner)) else 0.0, default=""
        )
        return parts_of(first)[1]

    async def fetch(self, caller: str, /) -> Proof:
        try:
            return await self._of(caller).fetch(caller)
        except SignInNeeded as error:
            raise await self._invite(caller, error) from None

    async def refused(self, caller: str, proof: Proof, challenge: str, /) -> Proof | None:
        try:
            return await self._of(caller).refused(caller, proof, challenge)
        except SignInNeeded as error:
            raise await self._invite(caller, error) from None

    async def _invite(self, caller: str, error: SignInNeeded) -> SignInNeeded:
        """What a call without an account is told: the link for its own person, where there can be one."""
        if not caller or self._who.sign_in is None:
            return error
        if self._who.sign_in.kind == "token-exchange":
            return CallerSignInNeeded(error.message)
        title = self._who.title or self._who.source
        if self._who.sign_in.kind in KEY_KINDS:
            return CallerSignInNeeded(
                f"{named(caller)} has no key of its own for {title}. Store one with connections_key, or "
                f"`agent-gate auth key {quote(self._who.source)} --agent {quote(caller)}`"
            )
        try:
            link = await self._begin(self._who.source, caller)
        except AuthorizationFault as fault:
            return CallerSignInNeeded(f"{error.message}. {fault.message}")
        return CallerSignInNeeded(
            f"{named(caller)} has no account of its own at {title}. Its person signs in at {link} and makes the call again",
            details={"auth_url": link, "source": self._who.source},
        )


def presented(who: Identity, token: str) -> Identity:
    """The identity with its token where it belongs; without one, with what else its file says."""
    if who.sign_in is None:
        return who
    if not token:
        return replace(who, type="none")
    env = {who.sign_in.env: token, **who.env} if who.sign_in.env else who.env
    return replace(who, token=token, env=env)


def bound(proof: Proof, account: Connected | None) -> Proof:
    """The proof with a signature for each request, where the token is bound to the account's key."""
    if account is None or account.proof_key is None or account.tokens.token_type.lower() != "dpop":
        return proof
    token = account.tokens.access_token
    headers = [
        (name, b"DPoP " + token.encode() if name == b"authorization" else value)
        for name, value in proof.headers
    ]
    return replace(proof, headers=tuple(headers), signs=Possession(account.proof_key, token))


def sign_in_settings(who: Identity) -> SignInSettings:
    """How a source signs in, for a flow; its references are filled."""
    signing = who.sign_in or SignIn(kind="oauth2-pkce")
    return SignInSettings(
        source=who.source,
        title=who.title or who.source,
        url=signing.url,
        client=ConfiguredClient(
            client_id=signing.client_id or None,
            client_secret=signing.client_secret or None,
            private_key=signing.private_key or None,
        ),
        scopes=signing.scopes,
        authorize_url=signing.authorize_url or None,
        token_url=signing.token_url or None,
        device_url=signing.device_url or None,
        audience=signing.audience or None,
        identity_url=signing.identity_url or None,
        identity_client=ConfiguredClient(
            client_id=signing.identity_client_id or None, client_secret=signing.identity_client_secret or None
        ),
    )


class Roster:
    """Who the sources of one configuration are, each with its credentials."""

    def __init__(self, custody: Custody, clock: Clock, begin: Begin) -> None:
        self._custody, self._clock, self._begin = custody, clock, begin
        self.known: dict[str, Identity] = {}

    def credentials(self, who: Identity) -> Credentials:
        self.known[who.source] = who
        if who.sign_in is None and not any(references_of(who)):
            return FixedCredentials(who)
        if who.per_caller and who.sign_in is not None:
            return CallerCredentials(who, self._custody, self._clock, self._begin)
        return SourceCredentials(who, self._custody, self._clock)

    def references(self) -> Iterator[tuple[str, str]]:
        """Every secret of the vault that a source refers to, with the source."""
        for key, who in self.known.items():
            yield from sorted({(one.name, key) for one in references_of(who) if one.where == "vault"})

    def referring_to(self, name: str) -> list[str]:
        """The sources that use a secret of the vault."""
        return [key for used, key in self.references() if used == name]
