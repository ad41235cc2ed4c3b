"""The built-in source `connections`: the tools by which an agent, or a person, connects accounts. Nobody reads a token.

A flow that an agent began is finished by whoever has its link; so what comes back counts only when the person who let
it begin says that the account is theirs (`confirm`, which no agent can call).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import msgspec

from agent_gate.core.call import Call, Caller, Result
from agent_gate.core.credentials import Identity
from agent_gate.core.ids import fold_namespace
from agent_gate.core.ports import Job, Plan
from agent_gate.core.tool import Definition
from agent_gate.core.traits import Traits
from agent_gate.errors import ToolNotFound
from agent_gate.sources.accounts.signins import AccountState, SignIns, sentence_of
from agent_gate.vault.flows import Finished

KEY = "connections"
SOURCE = {"type": "string", "description": "Key of the server or service, as connections_status lists them."}
UNKNOWN = "an account whose name is not known"
Approver = Callable[[str], Awaitable[str]]
Put = Callable[[Call, str, str], Awaitable[object]]


def tool(
    name: str, description: str, ask: str, more: Mapping[str, Any] | None = None, **traits: bool
) -> Definition:
    properties = {"source": SOURCE, **(more or {})}
    required = [] if name == "status" else list(properties)
    return Definition(
        name=name,
        wire=f"{KEY}_{name}",
        description=description,
        input_schema={
            "type": "object",
            "properties": properties,
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
CONFIRM = Definition(
    name="confirm",
    method="confirm",
    effect="confirm",
    description="Use the account that came back from a sign-in which an agent began.",
    input_schema={
        "type": "object",
        "properties": {"source": TEXT, "account": TEXT, "at": TEXT},
        "required": ["source", "account", "at"],
    },
    ask="Somebody signed in to {source} as {account} at {at}, by a link that an agent had asked for. Is it yours, and shall it be used?",
)


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts: a person at the page or the terminal, or an agent, whose flows a person confirms."""

    name: str
    is_agent: bool
    sees: Callable[[str], bool]


def actor_of(caller: Caller) -> Actor:
    if caller.kind == "operator":
        return Actor(caller.name, False, lambda _namespace: True)
    return Actor(f"agent {caller.name}", True, caller.sees)


class ConnectionsSource:
    """Answers the tools through `SignIns`. `approver` says who approved a call, `put` puts a question to people."""

    kind = "builtin"
    key = namespace = KEY
    title = "Connections"
    unwell: str | None = None
    about, watched, context = "", False, None

    def __init__(self, sign_ins: SignIns, approver: Approver, put: Put) -> None:
        self._sign_ins, self._approver, self._put = sign_ins, approver, put
        sign_ins.ask = self._ask

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def connect(self) -> tuple[Definition, ...]:
        return TOOLS

    async def watch(self) -> None:
        await asyncio.Event().wait()

    async def answer(self, job: Job) -> Result:
        call, name = job.case.call, job.case.tool.upstream
        actor = actor_of(call.caller)
        source = str(call.arguments.get("source", ""))
        if source and not actor.sees(fold_namespace(source)):
            raise ToolNotFound(f"There is no source named {source[:64]}")
        return Result(msgspec.json.encode(await self._do(name, source, call.arguments, actor, call.id)))

    async def _do(
        self, name: str, source: str, arguments: Mapping[str, Any], actor: Actor, call_id: str
    ) -> object:
        if name == "start":
            approver = await self._approver(call_id) if actor.is_agent else ""
            return await self._sign_ins.start(source, actor.name, confirm=actor.is_agent, approver=approver)
        if name == "code":
            return shown(await self._sign_ins.code(source, str(arguments["code"]), actor.name))
        if name == "key":
            return shown(await self._sign_ins.key(source, str(arguments["key"]), actor.name))
        if name == "end":
            return shown(await self._sign_ins.end(source))
        if name == "confirm":
            return shown(await self._sign_ins.confirm(source))
        if source:
            return shown(self._sign_ins.status(source))
        return [shown(state) for state in self._sign_ins.all() if actor.sees(fold_namespace(state.source))]

    async def _ask(self, who: Identity, finished: Finished) -> None:
        """Ask the person who let the flow begin, or whoever may answer where no person did."""
        at = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
        account = finished.connected.account or UNKNOWN
        call = Call(
            tool=f"{KEY}__confirm",
            arguments={"source": who.source, "account": account, "at": at},
            caller=Caller(name="gateway", kind="operator", max_pending=100),
            surface="connections",
            reads=True,
        )
        await self._put(call, "an account that came back by a link", finished.approver)


def shown(state: AccountState) -> dict[str, Any]:
    return {**asdict(state), "message": sentence_of(state)}


def plan(source: ConnectionsSource) -> Plan:
    return Plan(source=source, settings=KEY, known=TOOLS, reads=(CONFIRM,), counts_for_ready=False)
