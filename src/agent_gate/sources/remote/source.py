"""One tool host as a source: what it offers becomes tools, a call becomes one request, its answer a result."""

import asyncio
import logging
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Self

import msgspec
from msgspec import UNSET

from agent_gate.core.call import GIVEN_CONTEXT, Call, Caller, Result
from agent_gate.core.ids import fold_namespace
from agent_gate.core.ports import Job
from agent_gate.core.tasks import KeptTasks, ends_within
from agent_gate.core.tool import Definition, Tool
from agent_gate.core.traits import Traits
from agent_gate.errors import (
    CallTimeout,
    DependencyUnavailable,
    Forbidden,
    GatewayError,
    OutcomeUnknown,
    PairingFailed,
    PairingRequired,
    UpstreamError,
)
from agent_gate.mcp.names import LOG
from agent_gate.net.pool import Lost, NotSent, WholeReply
from agent_gate.observe.trace import trace_of
from agent_gate.peers.encoding import Malformed
from agent_gate.peers.toolwire import (
    CALL,
    CANCEL,
    LONGEST_LOG,
    MOST_LOGS,
    MOST_MILLISECONDS,
    TOOLS,
    VERSION,
    HostCancel,
    HostReply,
    HostRequest,
    Offer,
    OfferedTool,
    ToolCallContext,
    read_wire,
)
from agent_gate.sources.base import SourceBase
from agent_gate.sources.remote.errors import failure, refused
from agent_gate.sources.remote.ways import Way
from agent_gate.sources.toolbox import Toolbox

log = logging.getLogger("agent_gate.sources.remote")
LOOK_SECONDS = 30.0
LOOK_TIMEOUT = 10.0
CANCEL_TIMEOUT = 5.0
TRIES = 3
GRACE = 0.25
MOST_TOOLS = 1000
GIVEN_FIELDS = frozenset({"platform", "channel_id", "actor_id", "isolation_key"})
CHANGED = "The tool changed while this call was on its way, so nothing was sent. Call it again"


class RemoteSource(SourceBase):
    """Answers calls through one host. `trusted`: the operator believes what the host says of its tools; `turns`: how
    many hosts are dialled at a time."""

    kind = "remote"

    def __init__(
        self,
        name: str,
        way: Way,
        toolbox: Toolbox,
        *,
        tenant: str,
        trusted: bool = False,
        turns: asyncio.Semaphore | None = None,
    ) -> None:
        self.key, self.namespace, self.title = name, fold_namespace(name), name
        self._way, self._toolbox, self._clock = way, toolbox, toolbox.clock
        self._tenant, self._trusted = tenant, trusted
        self._turns, self._has_turn = turns or asyncio.Semaphore(), False
        self._offered: dict[str, OfferedTool] = {}
        self._pins: dict[str, str] = {}
        self._cancelling = KeptTasks(log, "A call could not be cancelled")

    async def __aenter__(self) -> Self:
        # Here and not in `connect`, whose time is short: whoever waits for its turn has not been tried yet.
        await self._take_turn()
        return self

    async def _take_turn(self) -> None:
        if not self._has_turn:
            await self._turns.acquire()
            self._has_turn = True

    def _end_turn(self) -> None:
        if self._has_turn:
            self._has_turn = False
            self._turns.release()

    async def __aexit__(self, *_: object) -> None:
        self._end_turn()
        await self._cancelling.cancel()
        await self._way.aclose()

    async def connect(self) -> Sequence[Definition]:
        return self._learn(await self._look_in_turn())

    async def _look_in_turn(self) -> Offer:
        await self._take_turn()
        try:
            return await self._look()
        finally:
            self._end_turn()

    async def watch(self) -> None:
        """Look again and again: a host that is gone is told by raising, one that changed by its new tools."""
        while True:
            if await self.wait_until_gone():
                raise DependencyUnavailable(f"{self.key} has hung up")
            try:
                changed = await self.look_again()
            except PairingRequired as error:
                # It stays listed: whoever calls is told that it has to be paired.
                self.unwell = error.message
                continue
            self.unwell = None
            if changed is not None:
                await self._toolbox.announce(self.key, changed)

    async def wait_until_gone(self) -> bool:
        """Whether the host is known to be gone before it is looked at again."""
        return await ends_within(LOOK_SECONDS, self._way.wait_until_lost())

    async def look_again(self) -> list[Definition] | None:
        """What the host offers now, where that is not what it offered before."""
        offer = await self._look_in_turn()
        if {tool.name: tool for tool in offer.tools} == self._offered:
            return None
        return self._learn(offer)

    def serves(self, tool: Tool) -> bool:
        """Whether this is what the host offers under that name."""
        return self._pins.get(tool.upstream) == tool.pin

    async def _look(self) -> Offer:
        deadline = self._clock.monotonic() + LOOK_TIMEOUT
        reply = await self._send("GET", TOOLS, None, deadline, safe=True)
        if reply.status != 200:
            raise refused(self.key, reply)
        try:
            offer = read_wire(reply.body, Offer)
        except Malformed as error:
            raise UpstreamError(f"{self.key} does not describe its tools as it should: {error}") from None
        if len({tool.name for tool in offer.tools}) != len(offer.tools) or len(offer.tools) > MOST_TOOLS:
            raise UpstreamError(f"{self.key} names a tool twice, or more than {MOST_TOOLS} tools")
        self._way.seen()
        return offer

    def _learn(self, offer: Offer) -> list[Definition]:
        definitions = [self._definition(tool) for tool in offer.tools]
        self.about = offer.service[:200]
        self._offered = {tool.name: tool for tool in offer.tools}
        self._pins = {definition.name: definition.pin() for definition in definitions}
        return definitions

    def _definition(self, tool: OfferedTool) -> Definition:
        traits = Traits(read_only=not tool.side_effects, idempotent=tool.idempotent, trusted=self._trusted)
        return Definition(
            name=tool.name,
            description=tool.description,
            input_schema=tool.input_schema or {"type": "object"},
            output_schema=tool.output_schema or None,
            traits=traits,
            annotations={"readOnlyHint": not tool.side_effects, "idempotentHint": tool.idempotent},
            timeout=tool.timeout_ms_max / 1000,
        )

    # -- calls

    async def answer(self, job: Job) -> Result:
        """Ask the host once; again only where that cannot do the thing twice."""
        case = job.case
        # What was decided on must not become another call, should the host have changed meanwhile.
        if not self.serves(case.tool):
            raise Forbidden(CHANGED)
        traits = case.tool.traits
        safe = traits.trusted and (traits.idempotent or traits.read_only)
        try:
            reply = await self._ask(job, safe=safe)
        except asyncio.CancelledError:
            self._cancel(case.call.id)
            raise
        if reply.logs:
            await self._pass_on(reply.logs, case.call)
        if reply.status != "ok":
            raise failure(self.key, reply)
        return Result(msgspec.json.encode(reply.result if reply.result is not UNSET else {}))

    async def _ask(self, job: Job, *, safe: bool) -> HostReply:
        call = job.case.call
        for left in range(TRIES if safe else 1, 0, -1):
            body = msgspec.json.encode(self._request(job))
            try:
                reply = await self._send("POST", CALL, body, job.deadline, safe=safe)
            except Lost as error:
                if error.timed_out:
                    self._cancel(call.id)
                    raise CallTimeout(f"{self.key} did not answer in time. It may have run") from None
                if left == 1:
                    raise
                continue
            read = self._read(reply, call, job.case.tool.upstream)
            if read.status != "retryable_error" or left == 1:
                break
            await asyncio.sleep(min(0.2, max(0.0, job.deadline - self._clock.monotonic() - GRACE)))
        self._way.seen()
        return read

    def _request(self, job: Job) -> HostRequest:
        call, name = job.case.call, job.case.tool.upstream
        offered = self._offered[name]
        left = max(1, int((job.deadline - self._clock.monotonic() - GRACE) * 1000))
        wanted = int(call.timeout * 1000) if call.timeout else offered.timeout_ms_default
        return HostRequest(
            version=VERSION,
            call_id=call.id,
            idempotency_key=call.idempotency_key or call.id,
            tool_name=name,
            tenant_id=self._tenant,
            args=dict(job.arguments),
            timeout_ms=max(1, min(wanted, offered.timeout_ms_max, left, MOST_MILLISECONDS)),
            context=context_of(call),
        )

    def _read(self, reply: WholeReply, call: Call, tool: str) -> HostReply:
        if reply.status != 200:
            raise refused(self.key, reply)
        try:
            read = read_wire(reply.body, HostReply)
        except Malformed as error:
            raise self._unreadable(str(error)) from None
        if (read.call_id, read.tool_name) != (call.id, tool):
            raise self._unreadable("it answers another call")
        return read

    def _unreadable(self, why: str) -> OutcomeUnknown:
        return OutcomeUnknown(f"{self.key} answered what is no answer ({why}). It may have run")

    async def _pass_on(self, lines: Sequence[str], call: Call) -> None:
        """What the tool logged: into the debug log, and to a caller that hears such things; never into the result."""
        for line in lines[:MOST_LOGS]:
            text = line[:LONGEST_LOG]
            log.debug("%s", text, extra={"source": self.key, "call": call.id})
            if call.conversation is not None:
                await call.conversation.notify(LOG, {"level": "info", "logger": self.key, "data": text})

    def _cancel(self, call_id: str) -> None:
        """Tell the host that nobody waits any more; whether it hears is not waited for."""
        self._cancelling.start(
            self._send_cancel(msgspec.json.encode(HostCancel(version=VERSION, call_id=call_id)))
        )

    async def _send_cancel(self, body: bytes) -> None:
        try:
            deadline = self._clock.monotonic() + CANCEL_TIMEOUT
            await self._send("POST", CANCEL, body, deadline, safe=True)
        except GatewayError as error:
            log.info("A call could not be cancelled", extra={"source": self.key, "why": error.message})

    async def _send(
        self, method: str, path: str, body: bytes | None, deadline: float, *, safe: bool
    ) -> WholeReply:
        try:
            return await self._way.request(
                method, path, body, deadline=deadline, most=self._toolbox.max_bytes, safe=safe
            )
        except NotSent as error:
            if isinstance(error.__cause__, ssl.SSLError):
                raise PairingFailed(
                    f"What answers for {self.key} is not the host that was paired ({error.message}). Nothing was sent"
                ) from None
            raise NotSent(
                f"{self.key} cannot be reached: {error.message}. Nothing was sent", timed_out=error.timed_out
            ) from None


def context_of(call: Call) -> ToolCallContext:
    """For whom a call runs, as its host is told it."""
    return ToolCallContext(
        agent_id=call.caller.name,
        session_id=call.session or call.id,
        trace_id=trace_of(call.id, call.trace).trace_id,
        request_origin="operator" if call.caller.kind == "operator" else "agent_turn",
        **given_context(call.meta.get(GIVEN_CONTEXT), call.caller),
    )


def given_context(given: Any, caller: Caller) -> Mapping[str, Any]:
    """What the caller says of its own conversation: only the fields that its settings let it say."""
    if not isinstance(given, Mapping):
        return {}
    return {
        name: value
        for name, value in given.items()
        if name in GIVEN_FIELDS and name in caller.context and isinstance(value, str)
    }
