"""The Protocols at which folders meet: `Source`, `Witness`, `Conversation`, `Sender`, `Channel`, `Clock`."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

import msgspec

from agent_gate.core.approval import Answer, Approval
from agent_gate.core.call import Call, Case, Result
from agent_gate.core.tool import Definition, Json, Tool


class Clock(Protocol):
    """Wall time for what is written down, monotonic time for what is waited for."""

    def now(self) -> float: ...
    def monotonic(self) -> float: ...


class SystemClock:
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)


def end_of(clock: Clock, began: float, expires_at: float) -> float:
    """When something that expires ends on the monotonic clock, so that setting the clock back gives it no more time."""
    return clock.monotonic() + min(expires_at - clock.now(), expires_at - began)


class Conversation(Protocol):
    """The way back to the caller while its call runs; only surfaces that can carry it offer one."""

    @property
    def protocol(self) -> str:
        """The revision of the protocol that the caller speaks, as traces name it."""
        ...

    @property
    def capabilities(self) -> Mapping[str, Json]: ...

    @property
    def can_be_asked(self) -> bool:
        """Whether the caller's client shows questions to its user."""
        ...

    @property
    def comes_back(self) -> bool:
        """Whether this client is asked by an unfinished result, and makes its request again with the answer."""
        ...

    async def ask(self, approval: Approval) -> Answer | None:
        """Put a question to the client's user while the call waits; None where nothing was said."""
        ...

    async def notify(self, method: str, params: Mapping[str, Json]) -> None:
        """Pass on progress, a log message or another notification that belongs to this call."""
        ...

    async def request(self, method: str, params: Mapping[str, Json]) -> Json:
        """Ask the caller's client (sampling, elicitation, roots) and return its result."""
        ...


class Sender(Protocol):
    """The request that a call came with."""

    @property
    def connected(self) -> bool: ...


DEFAULT_TIMEOUT = 60.0


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One execution handed to a source: run `case` once, before `deadline` (monotonic).

    `limit` is how many seconds the tool has where its caller does not give it less.
    """

    case: Case
    deadline: float
    limit: float = DEFAULT_TIMEOUT

    @property
    def arguments(self) -> Mapping[str, Json]:
        return self.case.call.arguments


class Source(Protocol):
    """Where tools come from. Entered once by the supervisor; connects in `connect`, serves until closed.

    `answer` executes exactly once and raises `UpstreamError`, `DependencyUnavailable`, `CallTimeout` or
    `OutcomeUnknown`. `DependencyUnavailable` promises that nothing was sent; `OutcomeUnknown` says that
    something may have run.
    """

    key: str
    namespace: str
    title: str
    kind: str
    unwell: str | None
    """What a health check found. It is shown and counts for `/ready`; calls go on."""

    @property
    def about(self) -> str:
        """What it says of itself, for those who look for tools; empty where it says nothing."""
        ...

    @property
    def watched(self) -> bool:
        """Whether somebody waits for what it tells by itself, for which it must stay connected."""
        ...

    @property
    def context(self) -> "ContextSource | None":
        """The same source where it has resources and prompts too."""
        ...

    async def connect(self) -> Sequence[Definition]:
        """Connect and return the tools. Raising leaves the source visible with its reason; it is tried again."""
        ...

    async def watch(self) -> None:
        """Return or raise when the connection is lost; the supervisor then reconnects. May wait for ever."""
        ...

    async def answer(self, job: Job) -> Result: ...

    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class ContextSource(Source, Protocol):
    """A source that also has resources and prompts (an MCP server); all objects are raw MCP JSON."""

    def offers(self, kind: str) -> Sequence[Json]:
        """The last known list: `kind` is `resources`, `resourceTemplates` or `prompts`."""
        ...

    def leads_to(self, uri: str) -> bool:
        """Whether one of its tools or results named this resource, which need not be listed."""
        ...

    def capabilities(self) -> Mapping[str, Json]: ...

    async def forward(
        self, method: str, params: Mapping[str, Json], conversation: Conversation | None, deadline: float
    ) -> bytes:
        """Send one request other than `tools/call` upstream (`resources/read`, `prompts/get`,
        `completion/complete`, `resources/subscribe`, `logging/setLevel`) and return the raw result object."""
        ...

    def listen(self, listener: Callable[[str, Mapping[str, Json]], None]) -> Callable[[], None]:
        """Hear the server's own notifications (`notifications/resources/updated`, list changes); returns the undo."""
        ...


class KeepsApart(Protocol):
    """A source that keeps connections of single callers, each with an account of its own."""

    async def forget(self, caller: str) -> None:
        """Close what is open for this caller."""
        ...

    async def try_as(self, caller: str) -> None:
        """Connect for this caller and list; raises what the upstream answers."""
        ...


class RunsOnOne(Protocol):
    """A source that one gateway runs for all on its store."""

    runs_here: bool

    async def read_listing(self) -> Sequence[Definition]:
        """The tools as the gateway that runs it has listed them."""
        ...


class Picture(msgspec.Struct, frozen=True):
    """An image that a person sees beside a question."""

    media_type: str
    body: bytes


class Witness(Protocol):
    """What a source offers that knows more of a call than its arguments say, such as what a page shows at a place."""

    def facts(self, tool: Tool, call: Call) -> Mapping[str, str]:
        """A few words on what the call would act on now, from memory, without I/O (a page's origin, an element's name).

        They are part of what a person approves. They are asked for again just before `answer`; a source that waits
        between that and its act compares them with `job.case.facts` once more.
        """
        ...

    async def picture(self, tool: Tool, call: Call) -> Picture | None:
        """What a person should see before they answer; None where there is nothing to see."""
        ...


class Screen(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a source has open for an agent, such as a page, as a person sees it."""

    id: str
    caller: str
    title: str
    place: str
    busy: bool
    used: float
    """Seconds since it was last used."""


class Screens(Protocol):
    """What a source offers that has something open which a person can watch and stop."""

    def screens(self) -> Sequence[Screen]: ...

    async def screen_picture(self, screen: str) -> Picture | None:
        """What it shows; the last picture while it is busy, None where there is no such screen."""
        ...

    async def stop_screen(self, screen: str) -> bool:
        """Close it at once, whatever it does; whether it was there."""
        ...

    async def end_session(self, caller: str, session: str) -> None:
        """Close what is open for this session of this caller, which is over."""
        ...


class Announce(Protocol):
    """A source calls this when its tools changed while it was connected."""

    async def __call__(self, key: str, definitions: Sequence[Definition]) -> None: ...


class Memory(Protocol):
    """A few words a source wants to find again after a restart, such as the era its server speaks."""

    def get(self, key: str) -> str | None: ...
    def set(self, key: str, value: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How the supervisor should keep one source. `settings` decides on reload whether it is still the same.

    `known` are tools that need no connection to be known; `pinned` ones are remembered from the last run. `reads`
    are what it can be asked for beside its tools. `witness` is the source again where it knows what its calls act on,
    `screens` where people can watch it, `apart` where callers have accounts of their own there, `single` where one
    gateway runs it for all.
    """

    source: Source
    settings: object
    witness: Witness | None = None
    screens: Screens | None = None
    apart: KeepsApart | None = None
    single: RunsOnOne | None = None
    known: Sequence[Definition] | None = None
    reads: Sequence[Definition] = ()
    enabled: bool = True
    on_demand: bool = False
    counts_for_ready: bool = True
    ready_when_tried: bool = False
    prefix: bool = True
    hold_changes: bool = False
    pinned: bool = False
    description: str = ""
    needs_auth: str = ""


class Plans(Protocol):
    """Where a kind brings sources that come and go while the gateway runs, such as hosts that were paired.

    A reload leaves them alone: they are no part of the configuration.
    """

    async def add(self, *plans: Plan) -> None:
        """Keep these sources from now on, in place of those with their keys. Raises `ConfigError` where one does not
        fit; then none is kept."""
        ...

    async def remove(self, key: str) -> None:
        """Close a source that was added, and take its tools from the catalog."""
        ...


class Channel(Protocol):
    """Something that pushes approvals to a person and brings the answer back.

    `ask` and `show_end` raise a `GatewayError` where the message did not get through; they are tried again.
    """

    name: str

    async def ask(self, approval: Approval) -> str:
        """Show a question; returns what finds its message again."""
        ...

    async def show_end(self, approval: Approval, message: str) -> None:
        """Show on that message how the question ended."""
        ...

    async def run(self) -> None:
        """Bring answers back; returns only where there is nothing to wait for."""
        ...
