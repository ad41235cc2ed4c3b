"""Real calls over a real store, with a source whose tools are functions of the test; no surface."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path

from agent_gate.approval.grants import Grants
from agent_gate.approval.inbox import Inbox
from agent_gate.audit import show
from agent_gate.calls.in_force import InForce, Terms
from agent_gate.calls.pipeline import make_calls
from agent_gate.calls.recovery import recover
from agent_gate.calls.shaping import Shaper
from agent_gate.calls.sweeper import Sweeper
from agent_gate.config.settings import ResultsSettings, Settings
from agent_gate.core.approval import Answer as PersonsAnswer
from agent_gate.core.call import Call, Caller, Result
from agent_gate.core.catalog import Listing, Shelf, build
from agent_gate.core.tool import Definition
from agent_gate.discovery.tokens import fits
from agent_gate.observe.metrics import Metrics
from agent_gate.observe.redact import Redactor
from agent_gate.policy import Policy
from agent_gate.policy.rule import make_rule
from agent_gate.results.artifacts import Artifacts
from agent_gate.store import StoreSettings, open_store
from agent_gate.store.engine import Fault
from agent_gate.store.writer import refusal

ANNA = Caller(name="anna", max_pending=2, calls_per_minute=0)
YES = PersonsAnswer(verdict="approve", person="operator", channel="test")
NO = PersonsAnswer(verdict="deny", person="operator", channel="test")


def in_force(*rules, budget=None):
    """These rules, with the settings of an empty file."""
    settings = Settings(results=ResultsSettings(budget=budget))
    return InForce(Terms(settings=settings, policy=Policy(rules)))


class Clock:
    """Stands still until a test moves it."""

    def __init__(self):
        self.time = 1000.0

    def now(self):
        return self.time

    def monotonic(self):
        return self.time


class Failing:
    """A real store that refuses the writes a test picks, as one whose disk is full does."""

    def __init__(self, store, refuses):
        self._store, self.refuses = store, refuses

    def __getattr__(self, name):
        return getattr(self._store, name)

    def write(self, *statements):
        if any(self.refuses(statement) for statement in statements):
            raise refusal(Fault("disk full"))
        return self._store.write(*statements)


class Slow(Failing):
    """A real store that takes six seconds to say that a call was claimed."""

    def __init__(self, store):
        super().__init__(store, lambda _statement: False)

    async def write(self, *statements):
        written = await super().write(*statements)
        if any("dispatching" in statement.params for statement in statements):
            self.clock.time += 6
        return written


class SmallCalls:
    """One tool, `lab__act`, that does what `work` says, and every part of a call between it and the store."""

    def __init__(
        self,
        store,
        work=None,
        *,
        action="allow",
        via="person",
        clock=None,
        vault=None,
        shelf=None,
        sources=None,
        witnesses=(),
        sentence="",
    ):
        self.store, self.work, self.clock = store, work, clock or Clock()
        self.jobs, self.sentence = [], sentence
        self.shelf, self.metrics, redactor = shelf or Shelf(), Metrics(), Redactor()
        if sources is None:
            self.publish()
        self.inbox, self.grants = Inbox(store, self.clock, vault), Grants(store, self.clock)
        self.artifacts = Artifacts(store, self.clock)
        self.in_force = in_force(make_rule(pattern="*", action=action, via=via))
        self.shaper = Shaper(self.artifacts, fits, self.in_force)
        self.calls = make_calls(
            store=store,
            clock=self.clock,
            shelf=self.shelf,
            inbox=self.inbox,
            grants=self.grants,
            sources=sources or {"lab": self},
            witnesses=witnesses or {},
            sweeper=Sweeper(self.clock),
            in_force=self.in_force,
            shaper=self.shaper,
            metrics=self.metrics,
            redactor=redactor,
        )

    def publish(self, *, available=True, gone=False, description=""):
        definitions = () if gone else (Definition(name="act", description=description, ask=self.sentence),)
        listing = Listing(key="lab", namespace="lab", definitions=definitions, available=available)
        self.shelf.swap(build([listing], self.shelf.catalog))

    def check(self):
        pass

    async def answer(self, job):
        self.jobs.append(job)
        made = await self.work(job) if self.work is not None else Result(b'{"done":true}')
        return made if isinstance(made, Result) else Result(made)

    def call(self, **more):
        return Call(**{"tool": "lab__act", "arguments": {}, "caller": ANNA} | more)

    async def story(self, call_id):
        """The states that the record knows of a call."""
        await self.store.flush()
        return [row.state for row in await show(self.store, call_id)]

    async def asked(self):
        """The one open question, once it is there."""
        while not self.inbox.open():
            await asyncio.sleep(0)
        [approval] = self.inbox.open()
        return approval

    async def recover(self):
        return await recover(self.calls, self.store, self.inbox, self.clock)


@asynccontextmanager
async def opened(folder: Path):
    store = open_store(StoreSettings(path=folder / "gate.db"))
    try:
        yield store
    finally:
        await store.close()
