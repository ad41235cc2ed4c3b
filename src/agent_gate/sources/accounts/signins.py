"""`SignIns`: connects accounts for sources, by whichever way a person or an agent takes, and tells how they are."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from agent_gate.core.credentials import KEY_KINDS, Identity, SignIn
from agent_gate.core.ports import Clock
from agent_gate.errors import GatewayError, InvalidArgs, ViewFailed
from agent_gate.sources.accounts.credentials import GATEWAY, Roster, owner_of, sign_in_settings, what_to_do
from agent_gate.sources.state import SourceState, Status
from agent_gate.vault.accounts import Connected
from agent_gate.vault.custody import Custody
from agent_gate.vault.flows import NO_FLOW, Finished, Started
from agent_gate.vault.oauth.tokens import OAuthTokens, is_token

log = logging.getLogger("agent_gate.vault")
HELD = "unconfirmed"
OUTCOME_SECONDS, LOOK_AGAIN = 20.0, 0.05
SETTLED = frozenset({Status.READY, Status.DEGRADED, Status.FAILED, Status.NEEDS_AUTH, Status.DISABLED})


class Handled(Protocol):
    """The sources, as far as an account changes them."""

    def states(self) -> Sequence[SourceState]: ...
    def connect_anew(self, key: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountState:
    """How one source stands with its account. `how` says what a person does: paste a key, click a link, type a code."""

    source: str
    title: str
    how: str
    connected: bool
    needed: bool
    unconfirmed: bool = False
    account: str | None = None
    scopes: tuple[str, ...] = ()
    expires_at: float | None = None
    renewed_at: float | None = None
    since: float | None = None
    by: str = ""
    status: str = ""
    reason: str = ""
    tools: int = 0


HOW = {"api-key": "key", "bearer": "key", "device-code": "code", "client-credentials": "machine"}
Ask = Callable[[Identity, Finished], Awaitable[None]]


async def nobody_asks(_who: Identity, _finished: Finished) -> None:
    return None


class SignIns:
    """Begins, finishes and ends; whatever it connects, its source uses at once.

    `ask` puts the account of a flow that an agent began to the person who has to confirm it.
    """

    def __init__(
        self, custody: Custody, roster: Callable[[], Roster], sources: Handled, clock: Clock
    ) -> None:
        self._custody, self._roster, self._sources, self._clock = custody, roster, sources, clock
        self._begun: dict[tuple[str, str], str] = {}
        self._polling: dict[str, asyncio.Task[None]] = {}
        self._held: set[str] = set()
        self.ask: Ask = nobody_asks

    async def load(self) -> None:
        if self._custody.vault.is_open:
            self._held = set(await self._custody.vault.all(HELD))

    async def close(self) -> None:
        for task in self._polling.values():
            task.cancel()
        await asyncio.gather(*self._polling.values(), return_exceptions=True)

    def known(self) -> list[Identity]:
        """The sources whose credential does not stand in a file."""
        return [who for who in self._roster().known.values() if who.sign_in is not None]

    def wanted(self) -> list[Identity]:
        """Those that need an account, as far as is known: a server of which nothing is said, once it refused us."""
        return [who for who in self.known() if self._is_wanted(who)]

    def _is_wanted(self, who: Identity) -> bool:
        says_so = who.sign_in is not None and not who.sign_in.on_refusal
        refused = who.source in self._custody.challenges
        return says_so or refused or self._custody.accounts.at_hand(owner_of(who.source)) is not None

    def all(self) -> list[AccountState]:
        return [self._state(who) for who in sorted(self.wanted(), key=lambda who: who.source)]

    def status(self, source: str) -> AccountState:
        return self._state(self._identity(source)[0])

    def _identity(self, source: str) -> tuple[Identity, SignIn]:
        who = self._roster().known.get(source)
        if who is None:
            raise ViewFailed(f"There is no source named {source[:64]}. See `agent-gate sources`")
        if who.sign_in is None:
            raise InvalidArgs(f"{who.title or source} has its credential in the configuration")
        return who, who.sign_in

    def _state(self, who: Identity) -> AccountState:
        source = next((one for one in self._sources.states() if one.key == who.source), None)
        account = self._custody.accounts.at_hand(owner_of(who.source))
        waits = source is not None and source.status is Status.NEEDS_AUTH
        shown: dict[str, Any] = {}
        if account is not None:
            shown = {
                "account": account.account,
                "scopes": tuple((account.scope or "").split()),
                "expires_at": account.tokens.expires_at,
                "renewed_at": account.renewed_at,
                "since": account.since,
                "by": account.by,
            }
        return AccountState(
            source=who.source,
            title=who.title or who.source,
            how=HOW.get(who.sign_in.kind, "link") if who.sign_in else "",
            connected=account is not None and not waits,
            needed=waits,
            unconfirmed=owner_of(who.source) in self._held,
            status=source.status if source else "",
            reason=source.reason if source else "",
            tools=source.tools if source else 0,
            **shown,
        )

    async def start(
        self, source: str, initiator: str, *, confirm: bool = False, approver: str = ""
    ) -> dict[str, Any]:
        """A link to click, a code to type in, or, for the gateway's own account, its end."""
        who, signing = self._identity(source)
        if signing.kind in KEY_KINDS:
            raise InvalidArgs(what_to_do(who))
        filled = await self._custody.secrets.filled(who)
        settings, owner = sign_in_settings(filled), owner_of(source)
        if signing.kind == "client-credentials":
            await self._take_over(await self._custody.flows.connect_machine(settings, owner, GATEWAY))
            return {"connected": True}
        if signing.kind == "device-code":
            started, wait = await self._custody.flows.start_device(
                settings, owner, initiator, confirm=confirm, approver=approver
            )
            self._poll(source, wait)
            return told(started)
        known = self._custody.accounts.at_hand(owner)
        started = await self._custody.flows.start(
            settings,
            owner,
            initiator,
            confirm=confirm,
            approver=approver,
            challenge=self._custody.challenges.get(source),
            earlier_scope=known.scope if known is not None else None,
        )
        self._begun[source, initiator] = started.state
        return told(started)

    def _poll(self, source: str, wait: Callable[[], Awaitable[Finished]]) -> None:
        async def until_entered() -> None:
            try:
                await self._finished(await wait())
            except GatewayError as error:
                log.warning("The sign-in for %s ended: %s", source, error.message)

        before = self._polling.pop(source, None)
        if before is not None:
            before.cancel()
        self._polling[source] = asyncio.ensure_future(until_entered())

    async def code(self, source: str, pasted: str, initiator: str) -> AccountState:
        """What a person copied: the code, or the whole address at which the browser ended."""
        self._identity(source)
        state = self._begun.get((source, initiator))
        if state is None and "://" not in pasted:
            raise InvalidArgs(NO_FLOW)
        await self._finished(await self._custody.flows.finish_pasted(state or "", pasted, initiator))
        self._begun.pop((source, initiator), None)
        return await self.outcome(source)

    async def came_back(self, state: str, code: str, issuer: str | None) -> str:
        """A browser brought a code; the name of what is connected by it."""
        finished = await self._custody.flows.finish(state, code, issuer)
        await self._finished(finished)
        return finished.source

    async def turned_away(self, state: str) -> None:
        """The person said no there: the flow is over."""
        await self._custody.flows.drop(state)

    async def key(self, source: str, value: str, by: str) -> AccountState:
        """Keep a key, and see at once whether the source takes it."""
        self._identity(source)
        if not is_token(value):
            raise InvalidArgs("A key is one line of plain characters")
        connected = Connected(
            kind="key", tokens=OAuthTokens(access_token=value), by=by, since=self._clock.now()
        )
        before = self._clock.now()
        await self._keep(owner_of(source), source, connected)
        state = await self.outcome(source, before)
        if state.status == Status.NEEDS_AUTH:
            await self._custody.accounts.end(owner_of(source))
            raise InvalidArgs(f"{state.title} does not take this key; it was not kept. {state.reason}")
        return state

    async def end(self, source: str) -> AccountState:
        """Forget the account, take its tokens back where that is offered, and let the source notice."""
        self._identity(source)
        owner = owner_of(source)
        await self._custody.vault.remove(owner, HELD)
        self._held.discard(owner)
        before = self._clock.now()
        await self._custody.accounts.end(owner)
        self._sources.connect_anew(source)
        return await self.outcome(source, before)

    async def confirm(self, source: str) -> AccountState:
        """The person says that the account which came back is theirs: it counts from now on."""
        owner = owner_of(source)
        kept = await self._custody.vault.get(owner, HELD)
        if kept is None:
            raise InvalidArgs("There is no account to confirm any more. Begin anew")
        before = self._clock.now()
        await self._custody.vault.remove(owner, HELD)
        self._held.discard(owner)
        await self._keep(owner, source, msgspec.json.decode(kept.value, type=Connected))
        return await self.outcome(source, before)

    async def _finished(self, finished: Finished) -> None:
        if not finished.confirm:
            await self._take_over(finished)
            return
        who, _ = self._identity(finished.source)
        await self._custody.vault.put(finished.owner, HELD, msgspec.json.encode(finished.connected))
        self._held.add(finished.owner)
        await self.ask(who, finished)

    async def _take_over(self, finished: Finished) -> None:
        await self._keep(finished.owner, finished.source, finished.connected)

    async def _keep(self, owner: str, source: str, connected: Connected) -> None:
        await self._custody.accounts.keep(owner, connected)
        log.info("An account was connected", extra={"source": source, "by": connected.by})
        self._sources.connect_anew(source)

    async def outcome(self, source: str, since: float | None = None) -> AccountState:
        """The state once the source has been tried with what it has now; as it is, where that takes too long."""
        began = self._clock.now() if since is None else since
        deadline = self._clock.monotonic() + OUTCOME_SECONDS
        while self._clock.monotonic() < deadline:
            now = next((one for one in self._sources.states() if one.key == source), None)
            if now is None or (now.status in SETTLED and now.since >= began):
                break
            await asyncio.sleep(LOOK_AGAIN)
        return self.status(source)


def told(started: Started) -> dict[str, Any]:
    """What a person needs, in the words of the admin API."""
    out: dict[str, Any] = {
        "auth_url": started.url,
        "state": started.state,
        "expires_at": started.expires_at,
    }
    return out if started.user_code is None else {**out, "user_code": started.user_code}


def sentence_of(state: AccountState) -> str:
    """How it stands, for people."""
    if state.unconfirmed:
        return f"{state.title}: the account has to be confirmed by the person who let this begin"
    if state.status in (Status.READY, Status.DEGRADED):
        return f"{state.title}: connected, I see {state.tools} tool{'' if state.tools == 1 else 's'}"
    return f"{state.title} is {state.status}" + (f": {state.reason}" if state.reason else "")
