"""What a person can say yes to: the terms of a sign-in, as asked and as made narrower."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, get_args

from agent_gate.access.door import CatchUp
from agent_gate.access.oidc.allowance import Allowance
from agent_gate.access.sign_in.clients import SignInClients
from agent_gate.access.sign_in.consents import AgreedTerms, BegunSignIn, ProvedPerson, SignInsBegun
from agent_gate.access.sign_in.families import NewSignIn, SignedIn, TokenPair, VouchedLogin
from agent_gate.access.sign_in.faults import SignInFault, dead_grant
from agent_gate.access.sign_in.redirects import destination
from agent_gate.access.sign_in.request import AskedFor, proves
from agent_gate.core.approval import Answer, Approval
from agent_gate.core.call import Mode
from agent_gate.core.ids import fold_namespace
from agent_gate.core.ports import Clock
from agent_gate.errors import InvalidArgs
from agent_gate.store.statement import Conflict, Statement

KEY, TOOL = "agents", "sign_in"
WIRE = f"{KEY}__{TOOL}"
MODES = get_args(Mode)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}/[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.@-]+")
TERMS = frozenset({"agent", "namespaces", "mode", "days"})
MOST_OF_ONE_NAME = 100


def nothing_by_itself(_groups: Collection[str]) -> Allowance | None:
    """Where no provider is in use, people are asked about everybody."""
    return None


class SignInDesk:
    """`taken` says whether an agent of the configuration, or one made here, has a name; `allowance` is what agents of a
    group's members may be by their person's login alone; `catch_up` returns when what the other gateways did is known
    here."""

    def __init__(
        self,
        clients: SignInClients,
        begun: SignInsBegun,
        signed_in: SignedIn,
        clock: Clock,
        taken: Callable[[str], bool],
        allowance: Callable[[Collection[str]], Allowance | None] = nothing_by_itself,
        catch_up: CatchUp | None = None,
    ) -> None:
        self.clients, self.begun, self.signed_in, self._catch_up = clients, begun, signed_in, catch_up
        self._clock, self._taken, self._allowance = clock, taken, allowance

    def check_terms(self, approval: Approval, answer: Answer) -> None:
        """Refuse terms that are wider than what was asked, or a name that another has; the question stays open."""
        if approval.asked.wire != WIRE:
            if answer.terms:
                raise InvalidArgs(
                    "This question can be answered with yes or no; there is nothing to make narrower"
                )
            return
        unknown = sorted(answer.terms.keys() - TERMS)
        if unknown:
            raise InvalidArgs(
                f"Of a sign-in can be said: {', '.join(sorted(TERMS))}; not {', '.join(unknown)}"[:300]
            )
        self.agree(approval.arguments, answer.terms, answer.person)

    def agree(self, asked: Mapping[str, Any], terms: Mapping[str, Any], person: str) -> AgreedTerms:
        """What a yes of this person on these terms means. The agent works for whom the provider vouched for, or else for
        who says yes."""
        proved = asked.get("person")
        whose = str(proved or person)
        if (given := terms.get("agent")) is None:
            agent = self._free_name(str(asked["client"]), str(asked["client_id"]), whose)
        else:
            agent = self._check_name(given, str(asked["client_id"]), whose if proved else None)
        return AgreedTerms(
            agent=agent,
            person=whose,
            namespaces=narrowed(asked.get("namespaces"), terms.get("namespaces")),
            mode=checked_mode(terms.get("mode", asked["mode"])),
            days=checked_days(terms.get("days", asked["days"]), float(asked["days"])),
        )

    def own_terms(self, asked: AskedFor, proved: ProvedPerson) -> AgreedTerms | None:
        """What a person's login alone lets their agent be; None where people have to be asked."""
        allowed = self._allowance(proved.groups)
        if allowed is None or not allowed.covers(asked.namespaces):
            return None
        return AgreedTerms(
            agent=self._free_name(asked.client, asked.client_id, proved.person),
            person=proved.person,
            namespaces=allowed.given(asked.namespaces),
            mode=allowed.mode,
            days=allowed.days,
            own=True,
        )

    async def grant_own(self, sign_in: str) -> AgreedTerms:
        """Let a sign-in go on whose person's login is its yes, as the store has it and as the settings are now."""
        kept = await self.begun.get(sign_in)
        terms = self.own_terms(kept.asked, kept.proved) if kept is not None and kept.proved else None
        if terms is None or not await self.begun.grant(sign_in, terms):
            raise SignInFault("access_denied", "Nobody is let in without a person's yes")
        return terms

    def _check_name(self, given: object, client_id: str, person: str | None) -> str:
        """A name that whoever says yes chose."""
        if not isinstance(given, str) or not NAME.fullmatch(given):
            raise InvalidArgs("The agent's name is client/person, such as claude/ada")
        if not self._is_free(given, client_id, person):
            raise InvalidArgs(f"There is another agent named {given} already. Choose another name")
        return given

    def _free_name(self, client: str, client_id: str, person: str) -> str:
        """The name by client and person, with a number where another client's agent has it, or that of another person
        whose name is written so."""
        name = f"{client}/{NOT_IN_NAMES.sub('-', person).strip('-') or 'somebody'}"
        tries = [name, *(f"{name}-{number}" for number in range(2, MOST_OF_ONE_NAME))]
        free = next((one for one in tries if self._is_free(one, client_id, person)), None)
        if free is None:
            raise InvalidArgs(f"Too many agents are named {name}. Give this one a name of its own")
        return free

    def _is_free(self, name: str, client_id: str, person: str | None = None) -> bool:
        known = self.signed_in.named(name)
        if known is None or self._taken(name):
            return not self._taken(name)
        return known.client == client_id and person in (None, known.person)

    async def grant(self, approval: Approval) -> AgreedTerms:
        """Let a sign-in go on to its code, on the terms that were agreed to."""
        terms = self.agree(approval.arguments, approval.answered.terms, approval.answered.by)
        sign_in = str(approval.arguments["sign_in"])
        if not await self.begun.grant(sign_in, terms):
            kept = await self.begun.get(sign_in)
            if kept is None or kept.granted is None:
                raise SignInFault("access_denied", "The browser that asked is gone. Sign in again")
            return kept.granted
        return terms

    async def redeem(
        self,
        code: str,
        client_id: str,
        redirect_uri: str | None,
        verifier: str,
        proving: tuple[Statement, ...] = (),
    ) -> TokenPair:
        """Tokens for a code, once; a code that comes twice was stolen, and what it gave ends. `proving` uses the
        client's proof up with it."""
        sign_in = await self.begun.find_by_code(code)
        if sign_in is None or sign_in.granted is None or sign_in.asked.client_id != client_id:
            raise dead_grant()
        if sign_in.state == "done" and sign_in.family:
            await self.signed_in.revoke_family(sign_in.family)
        if sign_in.state != "coded" or (sign_in.code_expires_at or 0) <= self._clock.now():
            raise dead_grant()
        if redirect_uri not in (None, sign_in.asked.redirect_uri) or not proves(
            verifier, sign_in.asked.challenge
        ):
            raise dead_grant()
        if self._catch_up is not None:
            # The person may have logged in elsewhere, and the agent has the groups of the last login.
            await self._catch_up()
        return await self._open(sign_in, sign_in.granted, code, proving)

    async def open_proved(self, sign_in: str, proving: tuple[Statement, ...] = ()) -> TokenPair:
        """Tokens of a sign-in without a browser that was let in just now."""
        kept = await self.begun.get(sign_in)
        code = await self.begun.make_code(kept) if kept is not None and kept.granted is not None else None
        if kept is None or kept.granted is None or code is None:
            raise dead_grant()
        return await self._open(kept, kept.granted, code, proving)

    async def _open(
        self, sign_in: BegunSignIn, terms: AgreedTerms, code: str, proving: tuple[Statement, ...]
    ) -> TokenPair:
        if self._taken(terms.agent):
            raise dead_grant()
        asked = sign_in.asked
        new = NewSignIn(
            terms=terms,
            client=asked.client_id,
            resource=asked.resource,
            destination=destination(asked.redirect_uri),
            vouched=vouched_by(sign_in.id, sign_in.proved, lasting=bool(asked.challenge)),
        )
        using = (*self.clients.using(asked.client_id), *proving)
        try:
            return await self.signed_in.open_family(
                new, lambda family: [self.begun.redeeming(sign_in, code, family), *using]
            )
        except Conflict:
            raise dead_grant() from None


def vouched_by(sign_in: str, proved: ProvedPerson | None, *, lasting: bool) -> VouchedLogin | None:
    """The login at the provider that a sign-in came of, where it did; it lasts where a browser made it."""
    if proved is None:
        return None
    return VouchedLogin(
        issuer=proved.issuer, subject=proved.subject, session=proved.session, sign_in=sign_in, lasting=lasting
    )


def narrowed(asked: Any, given: object) -> tuple[str, ...] | None:
    """The namespaces of a yes: those that were asked for, or fewer."""
    wanted = None if asked is None else tuple(asked)
    if given is None:
        return wanted
    if not isinstance(given, list) or not given or not all(isinstance(name, str) and name for name in given):
        raise InvalidArgs("namespaces is a list of names; leave it out to show all that were asked for")
    chosen = tuple(sorted({fold_namespace(name) for name in given}))
    if wanted is not None and not set(chosen) <= set(wanted):
        raise InvalidArgs(f"It asks for {', '.join(wanted)} alone; a yes can give less, not more")
    return chosen


def checked_mode(given: object) -> str:
    if given not in MODES:
        raise InvalidArgs(f"mode is one of {', '.join(MODES)}")
    return str(given)


def checked_days(given: object, most: float) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= most:
        raise InvalidArgs(f"days is a number above 0, and at most {most:g}")
    return float(given)
