"""`SignIns`: connects accounts for sources, by whichever way a person or an agent takes, and tells how they are."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec

from agent_gate.core.call import Caller
from agent_gate.core.credentials import KEY_KINDS, PERSON, Identity, SignIn, SignInNeeded, account_holder
from agent_gate.core.ports import Clock
from agent_gate.core.source_state import AccountState, SourceState, Status
from agent_gate.errors import Forbidden, GatewayError, InvalidArgs, ViewFailed
from agent_gate.sources.accounts.credentials import (
    GATEWAY,
    OF_HOLDER,
    Roster,
    named,
    owner_of,
    parts_of,
    sign_in_settings,
    what_to_do,
)
from agent_gate.sources.accounts.questions import AccountCalls
from agent_gate.sources.supervisor import Supervisor
from agent_gate.vault.accounts import Connected
from agent_gate.vault.custody import Custody
from agent_gate.vault.flows import NO_FLOW, Finished, Started, answer_in, flow_owner
from agent_gate.vault.oauth.tokens import OAuthTokens, is_token

log = logging.getLogger("agent_gate.vault")
HELD = "unconfirmed"
OUTCOME_SECONDS, LOOK_AGAIN = 20.0, 0.05
SETTLED = frozenset({Status.READY, Status.DEGRADED, Status.FAILED, Status.NEEDS_AUTH, Status.DISABLED})
WELL = frozenset({Status.READY, Status.DEGRADED})


HOW = {
    "api-key": "key",
    "bearer": "key",
    "device-code": "code",
    "client-credentials": "machine",
    "token-exchange": "machine",
}


class SignIns:
    """Begins, finishes and ends; whatever it connects, its source uses at once.

    `caller` is whose account it is, at sources where each has its own: an agent, or the person that agents work for; else
    empty.
    """

    calls: AccountCalls

    def __init__(
        self,
        custody: Custody,
        roster: Callable[[], Roster],
        sources: Supervisor,
        clock: Clock,
        person_of: Callable[[str], str] = lambda _agent: "",
    ) -> None:
        """`person_of` says for whom the agent of a name works, as far as that is one person."""
        self._person_of = person_of
        self._custody, self._roster, self._sources, self._clock = custody, roster, sources, clock
        self._begun: dict[tuple[str, str], str] = {}
        self._open: dict[str, Started] = {}
        self._polling: dict[str, asyncio.Task[None]] = {}
        self._arrived: dict[str, Finished] = {}
        self._held: set[str] = set()

    async def load(self) -> None:
        if self._custody.vault.is_open:
            self._held = set(await self._custody.vault.read_all(HELD))

    async def hear(self, owner: str) -> None:
        """Another gateway changed an account. One that it connected or ended changes its source; one that it renewed
        does not."""
        accounts = self._custody.accounts
        before, now = accounts.at_hand(owner), await accounts.look_again(owner)
        await self.load()
        if (before.since if before else None) != (now.since if now else None):
            await self._notice(owner)

    async def close(self) -> None:
        for task in self._polling.values():
            task.cancel()
        await asyncio.gather(*self._polling.values(), return_exceptions=True)

    def holder(self, agent: str) -> str:
        """Whose accounts an operator means who names an agent."""
        return account_holder(agent, self._person_of(agent))

    def known(self) -> list[Identity]:
        """The sources whose credential does not stand in a file."""
        return [who for who in self._roster().known.values() if who.sign_in is not None]

    def wanted(self) -> list[Identity]:
        """Those that need an account, as far as is known: a server of which nothing is said, once it refused us."""
        return [who for who in self.known() if self._is_wanted(who)]

    def _is_wanted(self, who: Identity) -> bool:
        says_so = who.sign_in is not None and not who.sign_in.on_refusal
        refused = who.source in self._custody.challenges
        return says_so or refused or bool(self._callers(who) or self._account(who))

    def _account(self, who: Identity, caller: str = "") -> Connected | None:
        return self._custody.accounts.at_hand(owner_of(who.source, caller))

    def _callers(self, who: Identity) -> list[str]:
        """The callers that have an account of their own there, or one that waits to be confirmed."""
        start = f"{owner_of(who.source)}{OF_HOLDER}"
        owners = {*self._custody.accounts.owners(), *self._held}
        return sorted(parts_of(owner)[1] for owner in owners if owner.startswith(start))

    def all(self) -> list[AccountState]:
        return [
            self._state(who, caller)
            for who in sorted(self.wanted(), key=lambda who: who.source)
            for caller in self._shown(who)
        ]

    def _shown(self, who: Identity) -> list[str]:
        """Whose accounts are told of: the source's own, unless only its callers have some."""
        callers = self._callers(who) if who.per_caller else []
        return callers if callers and self._account(who) is None else ["", *callers]

    def status(self, source: str, caller: str = "") -> AccountState:
        return self._state(self._identity(source)[0], caller)

    def has_own_accounts(self, source: str) -> bool:
        """Whether each caller signs in there for itself."""
        who = self._roster().known.get(source)
        return who is not None and who.per_caller

    def _identity(self, source: str) -> tuple[Identity, SignIn]:
        who = self._roster().known.get(source)
        if who is None:
            raise ViewFailed(f"There is no source named {source[:64]}. See `agent-gate sources`")
        if who.sign_in is None:
            raise InvalidArgs(f"{who.title or source} has its credential in the configuration")
        return who, who.sign_in

    def _owner(self, source: str, caller: str) -> str:
        who, _ = self._identity(source)
        if caller and not who.per_caller:
            raise InvalidArgs(f"{who.title or source} has one account for all; write credentials: per-caller")
        return owner_of(source, caller)

    def _source(self, key: str) -> SourceState | None:
        return next((one for one in self._sources.states() if one.key == key), None)

    def _state(self, who: Identity, caller: str = "") -> AccountState:
        source, account = self._source(who.source), self._account(who, caller)
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
            needed=waits or (bool(caller) and account is None),
            agent=caller,
            unconfirmed=owner_of(who.source, caller) in self._held,
            status=source.status if source else "",
            reason=source.reason if source else "",
            tools=source.tools if source else 0,
            **shown,
        )

    async def start(
        self, source: str, initiator: str, *, caller: str = "", confirm: bool = False, approver: str = ""
    ) -> Started | None:
        """A link to click, or a code to type in; None for the gateway's own account, which is connected then."""
        who, signing = self._identity(source)
        owner = self._owner(source, caller)
        if signing.kind in KEY_KINDS:
            raise InvalidArgs(what_to_do(who))
        settings = sign_in_settings(await self._custody.secrets.fill(who))
        if signing.kind == "token-exchange":
            self._sources.connect_anew(source)
            return None
        if signing.kind == "client-credentials":
            await self._take_over(await self._custody.flows.connect_machine(settings, owner, GATEWAY))
            return None
        if signing.kind == "device-code":
            started, wait = await self._custody.flows.start_device(
                settings, owner, initiator, confirm=confirm, approver=approver
            )
            self._poll(owner, approver or initiator, wait)
            return started
        known = self._account(who, caller)
        started = await self._custody.flows.start(
            settings,
            owner,
            initiator,
            confirm=confirm,
            approver=approver,
            challenge=self._custody.challenges.get(source),
            earlier_scope=known.scope if known is not None else None,
        )
        self._begun[owner, initiator] = started.state
        return started

    async def begin_for(self, source: str, caller: str) -> str:
        """The link for a caller whose call found no account of its own; the same one while it is good."""
        owner = owner_of(source, caller)
        known = self._open.get(owner)
        if known is not None and known.expires_at - self._clock.now() > 60:
            return known.url
        requester = named(caller) if caller.startswith(PERSON) else f"agent {caller}"
        started = await self.start(source, requester, caller=caller, confirm=True)
        if started is None:
            raise SignInNeeded(f"{source} has no accounts of people")
        self._open[owner] = started
        await self.calls.invite(source, flow_of(started, owner), started, requester, "")
        return started.url

    def _poll(self, owner: str, person: str, wait: Callable[[], Awaitable[Finished]]) -> None:
        source = parts_of(owner)[0]

        async def until_entered() -> None:
            ticket = secrets.token_urlsafe(16)
            try:
                self._arrived[ticket] = await wait()
                await self.calls.finish(source, person, f"ticket={ticket}", "device")
            except GatewayError as error:
                log.warning("The sign-in for %s ended: %s", source, error.message)
            finally:
                self._arrived.pop(ticket, None)
                await self.calls.over(device_flow(owner))

        before = self._polling.pop(owner, None)
        if before is not None:
            before.cancel()
        self._polling[owner] = asyncio.ensure_future(until_entered())

    async def take_code(self, source: str, pasted: str, initiator: str, caller: str = "") -> AccountState:
        """What a person copied: the code, or the whole address at which the browser ended."""
        owner = self._owner(source, caller)
        state = self._begun.get((owner, initiator))
        if state is None and "://" not in pasted:
            raise InvalidArgs(NO_FLOW)
        before = self._clock.now()
        finished = await self._custody.flows.finish_pasted(state or "", pasted, initiator)
        tried = await self._take_finished(finished)
        self._begun.pop((owner, initiator), None)
        return await self.await_state(source, caller, before if tried else None)

    async def find_begun(self, pasted: str, initiator: str) -> str:
        """The source of the sign-in that a person finishes without naming it: by the address, or the only one begun."""
        if "://" in pasted:
            return (await self.find_owner(answer_in(pasted).get("state", "")))[0]
        found = {parts_of(owner)[0] for owner, began in self._begun if began == initiator}
        if len(found) != 1:
            raise InvalidArgs(
                "Say for which source this code is: agent-gate auth code SOURCE" if found else NO_FLOW
            )
        return found.pop()

    async def find_owner(self, state: str) -> tuple[str, str]:
        """The source of a sign-in under way, and the person whose it is."""
        flow = await self._custody.flows.look(state)
        return flow.source, flow.approver or flow.initiator

    async def take_return(self, state: str, code: str, issuer: str | None) -> AccountState:
        """A browser brought a code."""
        finished = await self._custody.flows.finish(state, code, issuer)
        await self._take_finished(finished)
        await self.calls.over(flow_owner(state))
        return self.status(*parts_of(finished.owner))

    async def take_arrived(self, ticket: str) -> AccountState:
        """Somebody typed a code in on a device."""
        finished = self._arrived.pop(ticket, None)
        if finished is None:
            raise InvalidArgs(NO_FLOW)
        await self._take_finished(finished)
        return self.status(*parts_of(finished.owner))

    async def take_refusal(self, state: str) -> None:
        """The person said no there: the flow is over."""
        await self.end_unwanted(flow_owner(state))
        raise Forbidden("The other side said no. Nothing was connected")

    async def end_unwanted(self, flow: str) -> None:
        """End a flow that a person does not want."""
        polling = next((task for owner, task in self._polling.items() if device_flow(owner) == flow), None)
        if polling is not None:
            polling.cancel()
        else:
            await self._custody.flows.drop(flow)
        self._open = {owner: one for owner, one in self._open.items() if flow_of(one, owner) != flow}
        await self.calls.over(flow)

    async def take_key(self, source: str, value: str, by: str, caller: str = "") -> AccountState:
        """Keep a key, and see at once whether the source takes it."""
        owner = self._owner(source, caller)
        if not is_token(value):
            raise InvalidArgs("A key is one line of plain characters")
        connected = Connected(
            kind="key", tokens=OAuthTokens(access_token=value), by=by, since=self._clock.now()
        )
        before = self._clock.now()
        tried = await self._keep(owner, connected)
        state = await self.await_state(source, caller, before if tried else None)
        why = state.reason if state.status == Status.NEEDS_AUTH else await self._find_refusal(source, caller)
        if why:
            await self._custody.accounts.end(owner)
            raise InvalidArgs(f"{state.title} does not take this key; it was not kept. {why}")
        return state

    async def _find_refusal(self, source: str, caller: str) -> str:
        """Why a caller's own account does not let it in; empty where it does."""
        try:
            if caller:
                await self._sources.try_as(source, caller)
        except SignInNeeded as error:
            return error.message
        return ""

    async def end(self, source: str, caller: str = "") -> AccountState:
        """Forget the account, take its tokens back where that is offered, and let the source notice."""
        owner = self._owner(source, caller)
        await self._custody.vault.remove(owner, HELD)
        self._held.discard(owner)
        self._open.pop(owner, None)
        before = self._clock.now()
        await self._custody.accounts.end(owner)
        tried = await self._notice(owner)
        return await self.await_state(source, caller, before if tried else None)

    async def confirm(self, owner: str) -> AccountState:
        """The person says that the account which came back is theirs: it counts from now on."""
        kept = await self._custody.vault.get(owner, HELD)
        if kept is None:
            raise InvalidArgs("There is no account to confirm any more. Begin anew")
        source, caller = parts_of(owner)
        before = self._clock.now()
        await self._custody.vault.remove(owner, HELD)
        self._held.discard(owner)
        tried = await self._keep(owner, msgspec.json.decode(kept.value, type=Connected))
        return await self.await_state(source, caller, before if tried else None)

    async def move_to_people(self, callers: Iterable[Caller]) -> None:
        """Give accounts that agents connected for themselves to the people they work for now. Where a person has one
        already, or gets a newer one, an agent's own stays where it is and serves nobody."""
        people = {caller.name: account_holder(caller.name, caller.person) for caller in callers}
        accounts = self._custody.accounts
        for owner in sorted(accounts.owners(), key=accounts.connected_at, reverse=True):
            source, agent = parts_of(owner)
            holder = people.get(agent, agent)
            if holder != agent:
                await accounts.move(owner, owner_of(source, holder))

    async def _take_finished(self, finished: Finished) -> bool:
        """Use the account, or hold it until it is confirmed; whether the source is tried with it now."""
        self._open.pop(finished.owner, None)
        if not finished.confirm:
            return await self._take_over(finished)
        self._identity(finished.source)
        await self._custody.vault.put(finished.owner, HELD, msgspec.json.encode(finished.connected))
        self._held.add(finished.owner)
        await self.calls.confirm(finished)
        return False

    async def _take_over(self, finished: Finished) -> bool:
        return await self._keep(finished.owner, finished.connected)

    async def _keep(self, owner: str, connected: Connected) -> bool:
        await self._custody.accounts.keep(owner, connected)
        log.info("An account was connected", extra={"source": parts_of(owner)[0], "by": connected.by})
        return await self._notice(owner)

    async def _notice(self, owner: str) -> bool:
        """Let the source use what it has now; whether it begins anew for that. A caller's own account changes nothing
        for the others."""
        source, caller = parts_of(owner)
        now = self._source(source)
        if caller:
            await self._sources.forget_caller(source, caller)
        anew = not caller or now is None or now.status not in WELL or self._lists_with(source, caller)
        if anew:
            self._sources.connect_anew(source)
        return anew

    def _lists_with(self, source: str, caller: str) -> bool:
        """Whether tools are listed with this caller's account: no other is there."""
        who = self._identity(source)[0]
        return self._account(who) is None and set(self._callers(who)) <= {caller}

    async def await_state(self, source: str, caller: str, since: float | None) -> AccountState:
        """How it stands; where the source began anew after `since`, once it has been tried, or that takes too long."""
        deadline = self._clock.monotonic() + OUTCOME_SECONDS
        while since is not None and self._clock.monotonic() < deadline:
            now = self._source(source)
            if now is None or (now.status in SETTLED and now.since >= since):
                break
            await asyncio.sleep(LOOK_AGAIN)
        return self.status(source, caller)


def device_flow(owner: str) -> str:
    return f"device:{owner}"


def flow_of(started: Started, owner: str) -> str:
    """What finds a flow again: its state's digest, or whose it is, for a device that is polled for."""
    return flow_owner(started.state) if started.state else device_flow(owner)


def told(started: Started | None) -> dict[str, Any]:
    """What a person needs, in the words of the admin API."""
    if started is None:
        return {"connected": True}
    out: dict[str, Any] = {
        "auth_url": started.url,
        "state": started.state,
        "expires_at": started.expires_at,
    }
    return out if started.user_code is None else {**out, "user_code": started.user_code}


def sentence_of(state: AccountState) -> str:
    """How it stands, for people."""
    title = f"{state.title} for {named(state.agent)}" if state.agent else state.title
    if state.unconfirmed:
        return f"{title}: the account has to be confirmed by the person who let this begin"
    if state.agent and not state.connected:
        return f"{title}: no account"
    if state.status in WELL:
        return f"{title}: connected, I see {state.tools} tool{'' if state.tools == 1 else 's'}"
    return f"{title} is {state.status}" + (f": {state.reason}" if state.reason else "")
