"""The MCP surface over real calls and a real store, with sources that live in the test."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec
from tests.waiting import until

from agent_gate.access.door import Door
from agent_gate.access.tokens import Credential, Tokens, digest
from agent_gate.access.view import View
from agent_gate.approval.grants import Grants
from agent_gate.approval.inbox import Inbox
from agent_gate.calls import Calls
from agent_gate.calls.in_force import InForce, Terms
from agent_gate.calls.pipeline import make_calls
from agent_gate.calls.sweeper import Sweeper
from agent_gate.config.settings import Settings
from agent_gate.core.approval import Answer as PersonsAnswer
from agent_gate.core.approval import Approval
from agent_gate.core.call import Caller, Result
from agent_gate.core.catalog import Listing, Shelf, build
from agent_gate.core.ports import Job, SystemClock
from agent_gate.core.tool import Definition
from agent_gate.net.guard import HostGuard
from agent_gate.net.server import Server
from agent_gate.observe.metrics import Metrics
from agent_gate.observe.redact import Redactor
from agent_gate.policy import Policy
from agent_gate.policy.rule import Rule, make_rule
from agent_gate.sources.mcp.lists.reads import reads
from agent_gate.store import StoreSettings, open_store
from agent_gate.surfaces.mcp import McpSurface

ANNA, BERT = "token-of-anna-0123456789", "token-of-bert-0123456789"
ALLOW = (make_rule(pattern="*", action="allow"),)
ASK = (make_rule(pattern="*", action="ask"),)
Work = Callable[[Job], Awaitable[Any]]


class Cupboard:
    """A source whose tools are functions of the test; it can have resources and prompts too."""

    kind = "test"
    unwell = None

    def __init__(self, key: str = "lab", *, prefix: bool = True) -> None:
        self.key = self.namespace = self.title = key
        self.prefix = prefix
        self.available = True
        self.definitions: dict[str, Definition] = {}
        self.works: dict[str, Work] = {}
        self.jobs: list[Job] = []
        self.context: dict[str, list[Any]] = {}
        self.forwarded: list[tuple[str, Mapping[str, Any]]] = []
        self.answers: dict[str, Any] = {}
        self.listeners: list[Callable[[str, Mapping[str, Any]], None]] = []

    def tool(self, name: str, work: Work | None = None, **more: Any) -> None:
        self.definitions[name] = Definition(name=name, **more)
        self.works[name] = work or echo

    async def connect(self) -> Sequence[Definition]:
        return list(self.definitions.values())

    async def watch(self) -> None:
        await asyncio.Event().wait()

    def check(self) -> None:
        """It is always there."""

    async def answer(self, job: Job) -> Result:
        self.jobs.append(job)
        if method := job.case.tool.definition.method:
            params = {**job.arguments, "_meta": job.case.call.meta}
            return Result(await self.forward(method, params, job.case.call.conversation, job.deadline))
        result = await self.works[job.case.tool.upstream](job)
        return result if isinstance(result, Result) else Result(msgspec.json.encode(result))

    def offers(self, kind: str) -> Sequence[Any]:
        return self.context.get(kind, ())

    def leads_to(self, uri: str) -> bool:
        return uri in self.context.get("links", ())

    def capabilities(self) -> Mapping[str, Any]:
        return {"logging": {}}

    async def forward(
        self, method: str, params: Mapping[str, Any], conversation: Any, deadline: float
    ) -> bytes:
        self.forwarded.append((method, params))
        answer = self.answers.get(method, {})
        if isinstance(answer, Exception):
            raise answer
        return msgspec.json.encode(answer)

    def listen(self, listener: Callable[[str, Mapping[str, Any]], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def announce(self, method: str, **params: Any) -> None:
        for listener in list(self.listeners):
            listener(method, params)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None


async def echo(job: Job) -> Any:
    return dict(job.arguments)


class SmallGate:
    """Two callers, Anna and Bert; `rules` decide."""

    def __init__(
        self, folder: Path, *sources: Cupboard, rules: Sequence[Rule] = ALLOW, **options: Any
    ) -> None:
        self.sources = {source.key: source for source in sources}
        self.clock = SystemClock()
        self.shelf = Shelf()
        self.store = open_store(StoreSettings(type="sqlite", path=folder / "gate.db"))
        self.policy = Policy(rules)
        callers = options.pop("callers", None) or (caller("anna"), caller("bert"))
        tokens = Tokens(
            Credential(digest(token), who) for token, who in zip((ANNA, BERT), callers, strict=True)
        )
        self.view = View(self.shelf, lambda: self.policy)
        self.calls = self._make_calls()
        self.surface = McpSurface(
            self.calls,
            Door(tokens, self.clock),
            self.shelf,
            lambda: self.sources,
            self.view.tools,
            seal_key=b"seal" * 8,
            denies=self.policy.denies,
            clock=self.clock,
            **options,
        )
        self.server = Server(self.surface.handle)

    def _make_calls(self) -> Calls:
        clock, store, metrics, redactor = self.clock, self.store, Metrics(), Redactor()
        self.inbox, self.grants = Inbox(store, clock), Grants(store, clock)
        self.sweeper = Sweeper(clock)
        return make_calls(
            store=store,
            clock=clock,
            shelf=self.shelf,
            inbox=self.inbox,
            grants=self.grants,
            sources=self.sources,
            sweeper=self.sweeper,
            in_force=InForce(Terms(settings=Settings(), policy=self.policy)),
            metrics=metrics,
            redactor=redactor,
        )

    def publish(self) -> None:
        """Make a catalog of what the sources have now."""
        listings = [
            Listing(
                key=source.key,
                namespace=source.namespace,
                definitions=tuple(source.definitions.values()),
                reads=reads(),
                available=source.available,
                prefix=source.prefix,
            )
            for source in self.sources.values()
        ]
        self.shelf.swap(build(listings, self.shelf.catalog))

    async def start(self) -> None:
        self.publish()
        await self.server.start("127.0.0.1", 0)
        self.server.guard = HostGuard(["127.0.0.1"], self.server.port)

    async def stop(self) -> None:
        try:
            await self.surface.close(1.0)
            await self.calls.drain(1.0)
            await self.server.drain(0.2)
        finally:
            await self.store.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}/mcp"

    async def approval(self) -> Approval:
        """The one open question, once it is asked."""
        return (await until(self.inbox.open))[0]

    async def approve(self) -> Approval:
        approval = await self.approval()
        yes = PersonsAnswer(verdict="approve", person="operator", channel="test")
        return await self.calls.answer(approval.id, yes)

    async def approve_and_wait(self) -> None:
        """Say yes, and wait until the call has run: whoever asks next is held for a moment only."""
        approval = await self.approve()
        await self.calls.learn_outcome(approval, 60)


def caller(name: str, **more: Any) -> Caller:
    return Caller(name=name, calls_per_minute=0, **more)


@contextlib.asynccontextmanager
async def small_gate(folder: Path, *sources: Cupboard, **options: Any) -> AsyncIterator[SmallGate]:
    gate = SmallGate(folder, *sources, **options)
    await gate.start()
    try:
        yield gate
    finally:
        await gate.stop()
