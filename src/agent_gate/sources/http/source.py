"""The generic HTTP source: one service, its tools, its health, at most one request per approved call."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from agent_gate.config.services.definition import to_definition
from agent_gate.config.services.section import SERVICES
from agent_gate.config.services.settings import ServiceConfig, ToolDefinition
from agent_gate.config.settings import Settings
from agent_gate.core.call import Result
from agent_gate.core.credentials import CallerSignInNeeded, Proof, SignInNeeded, account_holder
from agent_gate.core.ids import fold_namespace
from agent_gate.core.ports import Job, Plan
from agent_gate.core.tool import Definition
from agent_gate.errors import CallTimeout, Forbidden, GatewayError
from agent_gate.net.pool import Lost, NotSent, Pool, Target, WholeReply
from agent_gate.net.tls.trust import client_context
from agent_gate.observe import failpoint
from agent_gate.observe.trace import outgoing
from agent_gate.sources.base import SourceBase
from agent_gate.sources.http.reply import MAY_RETRY, UNAUTHENTICATED, failure, result
from agent_gate.sources.http.request import HttpCall, build, joined, query_of
from agent_gate.sources.toolbox import Toolbox

log = logging.getLogger("agent_gate.sources.http")
HEALTH_SECONDS = 30.0
HEALTH_TIMEOUT = 5.0
REST_SECONDS = 60.0
TRIES = 3
CHANGED = "The tool changed while this call was on its way, so nothing was sent. Call it again"


class HttpSource(SourceBase):
    """Answers calls by HTTP requests over the shared pool."""

    kind = "http"

    def __init__(self, config: ServiceConfig, toolbox: Toolbox) -> None:
        self.config, self._pool, self._clock = config, toolbox.pool, toolbox.clock
        self._max_bytes = toolbox.max_bytes
        self.key, self.namespace, self.title = config.name, fold_namespace(config.name), config.name
        self._target = Target.parse(config.url)
        who = config.auth.identity(config.name, config.url, config.credentials)
        self._per_caller = who.per_caller
        self._access = toolbox.access(who, masks=config.mask_results)
        self._tools: dict[str, ToolDefinition] = {tool.name: tool for tool in config.tools}
        self._pins = {definition.name: definition.pin() for definition in self.definitions()}

    async def connect(self) -> Sequence[Definition]:
        """The tools are known from the file; a service that is not well is only warned about, one that nobody signed
        in to waits for that, unless each caller signs in for itself."""
        if not self._per_caller and self._access.at_hand("") is None:
            await self._access.fetch("")
        return self.definitions()

    def definitions(self) -> list[Definition]:
        return [to_definition(self.config, tool) for tool in self.config.tools]

    async def watch(self) -> None:
        """Look after the service's health for ever. Without a check of its own it is well if it can be reached;
        it is then looked at once, and again while it is known to fail."""
        configured = self.config.health.configured
        while True:
            problem = await self.check_health()
            if configured:
                self.unwell = problem
            if self.unwell is not None:
                log.warning(
                    "Health check failed", extra={"source": self.key, "reason": problem or self.unwell}
                )
            await asyncio.sleep(HEALTH_SECONDS if configured or self.unwell else REST_SECONDS)

    async def check_health(self) -> str | None:
        """What is wrong with the service, or None."""
        check = self.config.health
        try:
            proof = self._access.at_hand("") or await self._access.fetch("")
            call = HttpCall(check.method, joined(check.path, query_of(proof.query)), proof.headers, None)
            reply = await self._send(call, self._clock.monotonic() + HEALTH_TIMEOUT, safe=True)
        except NotSent:
            return self.unwell  # said by who could not send
        except GatewayError as error:
            return None if self._per_caller and isinstance(error, SignInNeeded) else error.message
        if reply.status != check.expect_status:
            return f"{check.method} {check.path} answered {reply.status}, expected {check.expect_status}"
        return None

    async def answer(self, job: Job) -> Result:
        """Send the request once; again only where that cannot do the thing twice."""
        case = job.case
        # A reload swaps the source before the catalog: what was decided must not become another request.
        if self._pins.get(case.tool.upstream) != case.tool.pin:
            raise Forbidden(CHANGED)
        tool, who = self._tools[case.tool.upstream], case.call.caller
        caller = account_holder(who.name, who.person) if self._per_caller else who.name
        proof = self._access.at_hand(caller) or await self._access.fetch(caller)
        reply = await self._ask(tool, job, proof)
        if reply.status == UNAUTHENTICATED and wants_nonce(proof, reply):
            reply = await self._ask(tool, job, proof)
        if reply.status == UNAUTHENTICATED:
            challenge = (reply.header(b"www-authenticate") or b"").decode("latin-1")
            if (fresh := await self._access.refused(caller, proof, challenge)) is not None:
                reply = await self._ask(tool, job, fresh)
        if not 200 <= reply.status < 300:
            raise self._failure(reply)
        return result(tool, reply, self._access.masked)

    def _failure(self, reply: WholeReply) -> Exception:
        """What a call is told; a credential of one caller's own that is refused is nobody else's matter."""
        told = failure(self.config, reply, self._access.redactor)
        if self._per_caller and isinstance(told, SignInNeeded):
            return CallerSignInNeeded(told.message)
        return told

    async def _ask(self, tool: ToolDefinition, job: Job, proof: Proof) -> WholeReply:
        """The service's reply to the request with this proof."""
        call = job.case.call
        request = build(tool, job.arguments, proof, call.idempotency_key)
        if proof.signs is not None:
            path = (self._target.base + request.target).decode("ascii")
            signed = proof.signs.header(request.method, f"{self._target.origin}{path}")
            request = replace(request, headers=(*request.headers, signed))
        trace = outgoing(call)
        if trace is not None:
            request = replace(request, headers=(*request.headers, (b"traceparent", trace.encode())))
        # Not for the caller's key: a service that does not know the header would do the thing again.
        traits = job.case.tool.traits
        safe = traits.idempotent or traits.read_only
        for left in range(TRIES if safe else 1, 0, -1):
            try:
                reply = await self._send(request, job.deadline, safe=safe)
            except Lost as error:
                if error.timed_out or left == 1:
                    raise self._lost(error, safe) from None
                continue
            if reply.status not in MAY_RETRY or left == 1:
                break
            await asyncio.sleep(min(0.2, max(0.0, job.deadline - self._clock.monotonic() - 0.1)))
        return reply

    def _lost(self, error: Lost, safe: bool) -> GatewayError:
        if error.timed_out:
            return CallTimeout(
                f"{self.key} did not answer in time"
                + ("" if safe else ". It may have run: check before you try again")
            )
        return error

    async def _send(self, request: HttpCall, deadline: float, *, safe: bool) -> WholeReply:
        if failpoint.chosen("mid_upstream_write"):
            asyncio.get_running_loop().call_later(0.02, failpoint.reach, "mid_upstream_write")
        try:
            reply = await self._pool.request(
                request.method,
                self._target,
                request.target,
                request.headers,
                request.body,
                deadline=deadline,
                max_bytes=self._max_bytes,
                idempotent=safe,
            )
        except NotSent as error:
            self.unwell = f"it cannot be reached: {error.message}"
            raise NotSent(
                f"{self.key} cannot be reached: {error.message}. Nothing was sent", timed_out=error.timed_out
            ) from None
        if reply.status == UNAUTHENTICATED and self.config.auth.type != "none":
            self.unwell = "it does not take the credential (HTTP status 401)"
        elif self.unwell is not None and not self.config.health.configured:
            self.unwell = None
        return reply


def wants_nonce(proof: Proof, reply: WholeReply) -> bool:
    """Whether the service wants a value of its own in the signature of a request, and had not said which before."""
    nonce = (reply.header(b"dpop-nonce") or b"").decode("latin-1")
    if proof.signs is None or not nonce or nonce == proof.signs.nonce:
        return False
    proof.signs.nonce = nonce
    return True


class HttpKind:
    """Registers the services that the generic handler answers for."""

    name = "http"
    section = SERVICES

    def make(self, settings: Settings, toolbox: Toolbox) -> list[Plan]:
        return [
            self._plan(config, toolbox)
            for config in SERVICES.of(settings).values()
            if config.handler == "http"
        ]

    def _plan(self, config: ServiceConfig, toolbox: Toolbox) -> Plan:
        if config.ca:
            toolbox = replace(toolbox, pool=Pool(client_context(config.ca)))
        source = HttpSource(config, toolbox)
        return Plan(
            source=source,
            settings=config,
            known=source.definitions(),
            counts_for_ready=config.health.configured,
        )


SOURCE = HttpKind()
