"""The built-in source `connections`: the tools by which an agent, or a person, connects accounts. Nobody reads a token.

A flow that an agent began is finished by whoever has its link; so what comes back counts only when the person who let
it begin says that the account is theirs (`confirm`, which no agent can call).
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import parse_qs

import msgspec

from agent_gate.core.call import Call, Caller, Result
from agent_gate.core.credentials import account_holder
from agent_gate.core.ids import fold_namespace
from agent_gate.core.ports import Job, Plan
from agent_gate.core.source_state import AccountState
from agent_gate.core.tool import Definition
from agent_gate.core.traits import Traits
from agent_gate.errors import ToolNotFound
from agent_gate.sources.accounts.credentials import owner_of, parts_of
from agent_gate.sources.accounts.links import has_shown, show_link
from agent_gate.sources.accounts.questions import KEY, QUESTIONS, AccountCalls
from agent_gate.sources.accounts.signins import SignIns, flow_of, sentence_of, told
from agent_gate.sources.base import SourceBase
from agent_gate.vault.flows import Started

SOURCE = {"type": "string", "description": "Key of the server or service, as connections_status lists them."}
AGENT = {"type": "string", "description": "For people only: the agent whose own account is meant."}
Approver = Callable[[str], Awaitable[str]]


def tool(
    name: str, description: str, ask: str, more: Mapping[str, Any] | None = None, **traits: bool
) -> Definition:
    required = [] if name == "status" else ["source", *(more or {})]
    return Definition(
        name=name,
        wire=f"{KEY}_{name}",
        description=description,
        input_schema={
            "type": "object",
            "properties": {"source": SOURCE, **(more or {}), "agent": AGENT},
            "required": required,
            "additionalProperties": False,
        },
        secret=frozenset(more or ()),
        traits=Traits(trusted=True, **traits),
        ask=ask,
    )


TEXT = {"type": "string"}
TOOLS = (
    tool(
        "start",
        "Begin to sign in to a server or service for your user. Returns a link (auth_url), or a code to type in at it "
        "(user_code): pass them on exactly as they are. Then look at connections_status, or hand back what your user "
        "pastes with connections_code. For one that takes a key, use connections_key.",
        "Begin a sign-in for {source}?",
    ),
    tool(
        "status",
        "Which servers and services need a sign-in, and which are connected. Never shows a token.",
        "Show which accounts are connected?",
        read_only=True,
        idempotent=True,
    ),
    tool(
        "code",
        "Finish a sign-in with what your user pasted: the code, or the whole address at which the browser ended.",
        "Finish the sign-in for {source} with what was pasted?",
        {"code": TEXT},
    ),
    tool(
        "key",
        "Store an API key that your user gave you, and check it at once.",
        "Store a key for {source}?",
        {"key": TEXT},
    ),
    tool(
        "end",
        "End a connection: the account is forgotten, and its tokens are revoked where that is offered.",
        "End the connection of {source}?",
        destructive=True,
        idempotent=True,
    ),
)


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts: a person at the page or the terminal, or an agent, whose flows a person confirms.

    `agent` is the agent's own name; a person may act for one.
    """

    name: str
    is_agent: bool
    agent: str
    sees: Callable[[str], bool]


def actor_of(caller: Caller, agent: str) -> Actor:
    if caller.kind == "operator":
        return Actor(caller.name, False, agent, lambda _namespace: True)
    return Actor(f"agent {caller.name}", True, account_holder(caller.name, caller.person), caller.sees)


class ConnectionsSource(SourceBase):
    """Answers the tools through `SignIns`. `approver` says who approved a call."""

    kind = "builtin"
    key = namespace = KEY
    title = "Accounts"

    def __init__(self, sign_ins: SignIns, calls: AccountCalls, approver: Approver) -> None:
        self._sign_ins, self._calls, self._approver = sign_ins, calls, approver
        sign_ins.calls = calls

    async def connect(self) -> tuple[Definition, ...]:
        return TOOLS

    async def answer(self, job: Job) -> Result:
        call, name = job.case.call, job.case.tool.upstream
        actor = actor_of(call.caller, self._sign_ins.holder(str(call.arguments.get("agent", ""))))
        source = str(call.arguments.get("source", ""))
        if source and not actor.sees(fold_namespace(source)):
            raise ToolNotFound(f"There is no source named {source[:64]}")
        if name == "start":
            return await self._start(source, actor, call)
        if job.case.tool.definition.method:
            return result(await self._run_own(name, source, call))
        return result(await self._do(name, source, call.arguments, actor))

    async def _start(self, source: str, actor: Actor, call: Call) -> Result:
        """Begin, and bring the link to the client's user where the client opens links."""
        caller = self._of_whom(source, actor)
        if has_shown(call.meta):
            return result(shown(self._sign_ins.status(source, caller)))
        approver = await self._approver(call.id) if actor.is_agent else ""
        started = await self._sign_ins.start(
            source, actor.name, caller=caller, confirm=actor.is_agent, approver=approver
        )
        said = told(started)
        if started is None or not actor.is_agent:
            return result(said)
        if started.user_code:
            await self._invite(started, owner_of(source, caller), actor.name, approver)
            return result(said)
        return await show_link(call.conversation, source, said) or result(said)

    def _of_whom(self, source: str, actor: Actor) -> str:
        """Whose account is meant: the agent's own or its person's, where each has one."""
        if actor.is_agent:
            return actor.agent if self._sign_ins.has_own_accounts(source) else ""
        return actor.agent

    async def _do(self, name: str, source: str, arguments: Mapping[str, Any], actor: Actor) -> object:
        caller = self._of_whom(source, actor)
        if name == "code":
            return shown(await self._sign_ins.take_code(source, str(arguments["code"]), actor.name, caller))
        if name == "key":
            return shown(await self._sign_ins.take_key(source, str(arguments["key"]), actor.name, caller))
        if name == "end":
            return shown(await self._sign_ins.end(source, caller))
        if source:
            return shown(self._sign_ins.status(source, caller))
        return [shown(state) for state in self._sign_ins.all() if self._may_see(state, actor)]

    def _may_see(self, state: AccountState, actor: Actor) -> bool:
        """No agent sees another's accounts."""
        theirs = not actor.is_agent or state.agent in ("", actor.agent)
        return theirs and actor.sees(fold_namespace(state.source))

    async def _run_own(self, name: str, source: str, call: Call) -> object:
        """What the gateway asked people, answered with yes; and what a sign-in brought back."""
        if name == "finish":
            return shown(await self._finish(str(call.arguments["answer"])))
        if name == "confirm":
            return shown(await self._sign_ins.confirm(str(call.arguments["owner"])))
        if name == "again":
            return await self._sign_in_again(
                source, str(call.arguments["owner"]), await self._approver(call.id)
            )
        return shown(self._sign_ins.status(source))

    async def _finish(self, answer: str) -> AccountState:
        came = {name: values[0] for name, values in parse_qs(answer, keep_blank_values=True).items()}
        if "ticket" in came:
            return await self._sign_ins.take_arrived(came["ticket"])
        if "error" in came:
            await self._sign_ins.take_refusal(came["state"])
        return await self._sign_ins.take_return(came["state"], came["code"], came.get("iss"))

    async def _sign_in_again(self, source: str, owner: str, person: str) -> object:
        """A person wants a new sign-in in the place of the one that ended; the link comes to them."""
        caller = parts_of(owner)[1]
        started = await self._sign_ins.start(source, person, caller=caller, confirm=True, approver=person)
        if started is not None:
            await self._invite(started, owner, person, person)
        return {"source": source, "begun": True}

    async def _invite(self, started: Started, owner: str, requester: str, person: str) -> None:
        await self._calls.invite(parts_of(owner)[0], flow_of(started, owner), started, requester, person)


def result(value: object) -> Result:
    return Result(msgspec.json.encode(value))


def shown(state: AccountState) -> dict[str, Any]:
    return {**asdict(state), "message": sentence_of(state)}


def plan(source: ConnectionsSource) -> Plan:
    return Plan(source=source, settings=KEY, known=TOOLS, reads=QUESTIONS, counts_for_ready=False)
