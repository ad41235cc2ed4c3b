"""The surface of paired components: one table of a few paths, each behind the role, policy and lease of who asks."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol

import msgspec

from agent_gate.calls.events import Cursor, EventFeed, Happening, as_sse
from agent_gate.core.ports import Clock
from agent_gate.errors import Forbidden, GatewayError, InvalidArgs, RateLimited
from agent_gate.net.http import (
    HttpAnswer,
    Request,
    Response,
    StreamResponse,
    error_response,
    json_response,
    refusal,
)
from agent_gate.net.websocket import WebSocketHandler
from agent_gate.peers.authorization import CALLS, PUBLISH, SUBSCRIBE, PeerPolicy, Scope
from agent_gate.peers.dialing import PAIR
from agent_gate.peers.encoding import Malformed
from agent_gate.peers.envelope import EVENTS, PeerEvent, read_event
from agent_gate.peers.leases import USUAL_SECONDS, PeerLeases
from agent_gate.peers.records import Peer, Peers
from agent_gate.peers.toolwire import read_wire
from agent_gate.surfaces.peers.visitor import PairedVisitor, peer_of

log = logging.getLogger("agent_gate.peers")
LEASES, API, HOST = "/v1/leases", "/api/", "/v1/host"
PAIRINGS = "/v1/pairings"
EVENTS_A_MINUTE = 600
OperatorApi = Callable[[Request, str, str], Awaitable[HttpAnswer]]
AREAS = (
    ("/api/peers", "control.peers:"),
    ("/api/leases", "control.subscriptions:"),
    ("/api/events", "control.subscriptions:"),
    ("/api/approvals", "control.sessions:"),
    ("/api/calls", "control.sessions:"),
    ("/api/record", "control.sessions:"),
)
NOTHING_HERE = refusal(404, "INVALID_ARGS", "There is nothing here")


class Gatekeeper(Protocol):
    """The gateway among its peers, as far as this surface needs it."""

    peers: Peers

    @property
    def domain(self) -> str: ...
    def note_refused_pairing(self, person: str, path: str) -> None: ...
    def renewal(self, peer: Peer) -> WebSocketHandler: ...
    def expected(self) -> WebSocketHandler | None: ...
    def host(self, peer: Peer) -> WebSocketHandler | None: ...


class LeaseWish(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a component asks a lease for."""

    capabilities: list[str]
    tenant_id: str = ""
    agent_id: str = ""
    session_id: str = ""
    seconds: float = USUAL_SECONDS
    disconnect_bound: bool = False


class PeersSurface:
    """Serves whoever shows a certificate of a peer on record."""

    def __init__(
        self,
        gatekeeper: Gatekeeper,
        feed: EventFeed,
        leases: PeerLeases,
        clock: Clock,
        *,
        tenant: str,
        policy: Callable[[str], PeerPolicy],
        operator_api: OperatorApi,
    ) -> None:
        self._gatekeeper, self._feed, self._clock = gatekeeper, feed, clock
        self._tenant, self._policy, self._operator_api = tenant, policy, operator_api
        self._leases = leases
        self._published: dict[str, tuple[float, int]] = {}

    # -- who comes

    def peer(self, request: Request) -> Peer:
        return peer_of(self._gatekeeper.peers, request.certificate, self._gatekeeper.domain)

    async def visitor(self, request: Request) -> PairedVisitor:
        peer = self.peer(request)
        policy = self._policy(peer.name).plus(f"{PUBLISH}{kind}" for kind in peer.notes.publishes)
        named = request.params().get("lease") or (request.header(b"agent-gate-lease") or b"").decode(
            "latin-1"
        )
        return PairedVisitor(peer, policy, await self._leases.use(peer.name, named) if named else None)

    async def handle(self, request: Request) -> HttpAnswer:
        try:
            visitor = await self.visitor(request)
            self._gatekeeper.peers.note_seen_lately(visitor.peer.name)
            return await self._answer(request, visitor)
        except GatewayError as error:
            log.info("A peer was refused", extra={"why": error.message, "path": request.path[:200]})
            return error_response(error)
        except Malformed as error:
            return error_response(InvalidArgs(f"This is nothing of the protocol: {error}"))

    async def _answer(self, request: Request, visitor: PairedVisitor) -> HttpAnswer:
        asked = (request.method, request.path)
        if asked == ("GET", EVENTS):
            return await self._tell_events(request, visitor)
        if asked == ("POST", EVENTS):
            return await self._publish(request, visitor)
        if asked == ("POST", LEASES):
            return await self._give_lease(request, visitor)
        if request.path.startswith(f"{LEASES}/"):
            return await self._end_lease(request, visitor)
        if request.path.startswith(API) or request.path == "/openapi.json":
            return await self._serve_control(request, visitor)
        if request.path.startswith(PAIRINGS):
            self._gatekeeper.note_refused_pairing(visitor.peer.name, request.path)
        return NOTHING_HERE

    # -- events

    async def _tell_events(self, request: Request, visitor: PairedVisitor) -> StreamResponse:
        resumed = (request.header(b"last-event-id") or b"").decode("latin-1")
        given = request.params().get("after") or resumed
        after = Cursor.read(given) if given else self._feed.here()
        if visitor.lease is not None:
            await self._leases.bind(visitor.lease)
        return StreamResponse(200, self._stream(request, visitor, after))

    async def _stream(self, request: Request, visitor: PairedVisitor, after: Cursor) -> AsyncIterator[bytes]:
        """What this component may hear. Whoever may hear nothing more is left with the connection's end."""
        try:
            yield f"id: {after}\n: connected\n\n".encode()
            once = bool(request.params().get("once"))
            hears = lambda one: self._may_hear(visitor, one)  # noqa: E731
            async for told in self._feed.follow(after, hears, once=once):
                if not self._still(request, visitor):
                    return
                yield as_sse(told)
        finally:
            if visitor.lease is not None:
                self._leases.disconnected(visitor.lease)

    def _still(self, request: Request, visitor: PairedVisitor) -> bool:
        try:
            self.peer(request)
        except GatewayError:
            return False
        return visitor.lease is None or self._leases.holds(visitor.lease)

    def _may_hear(self, visitor: PairedVisitor, told: Happening) -> bool:
        event = told.event
        about = Scope(event.tenant_id, event.routing.agent_id, event.routing.session_id)
        policy = self._policy(visitor.peer.name)
        now = PairedVisitor(visitor.peer, policy, visitor.lease)
        if not now.may(f"{SUBSCRIBE}{event.event_type}", about):
            return False
        own_only = visitor.peer.component_type == "tool_host" and event.event_type.startswith(CALLS)
        return not own_only or told.source in (visitor.peer.name, visitor.peer.namespace)

    async def _publish(self, request: Request, visitor: PairedVisitor) -> Response:
        event, peer = read_event(request.body), visitor.peer
        about = Scope(event.tenant_id, event.routing.agent_id, event.routing.session_id)
        visitor.check(f"{PUBLISH}{event.event_type}", about)
        if event.tenant_id != self._tenant:
            raise Forbidden("This event is of another tenant than this gateway")
        if (event.source.component_type, event.source.component_id) != (peer.component_type, peer.name):
            raise Forbidden("A component publishes as itself; source names another one")
        await self._check_own_call(event, peer)
        self._count(peer.name)
        source = msgspec.structs.replace(
            event.source, peer_id=peer.name, mtls_cert_fingerprint=peer.fingerprint, transport="mtls_http"
        )
        fresh = await self._feed.publish(msgspec.structs.replace(event, source=source), peer.name)
        return json_response(202, {"accepted": True, "event_id": event.event_id, "duplicate": not fresh})

    async def _check_own_call(self, event: PeerEvent, peer: Peer) -> None:
        """A tool host speaks of calls that it was sent, and of no others."""
        if peer.component_type != "tool_host" or not event.event_type.startswith(CALLS):
            return
        call = event.payload.get("call_id")
        if not isinstance(call, str) or not await self._feed.is_of(call, (peer.name, peer.namespace)):
            raise Forbidden("A tool host may publish what became of its own calls only")

    def _count(self, name: str) -> None:
        minute, count = self._published.get(name, (0.0, 0))
        now = self._clock.monotonic() // 60
        count = count + 1 if minute == now else 1
        if count > EVENTS_A_MINUTE:
            raise RateLimited(f"{EVENTS_A_MINUTE} events a minute are enough", retry_after=60)
        self._published[name] = (now, count)

    # -- leases

    async def _give_lease(self, request: Request, visitor: PairedVisitor) -> Response:
        wish = read_wire(request.body, LeaseWish)
        lease = await self._leases.issue(
            visitor.peer.name,
            visitor.peer.component_type,
            tuple(wish.capabilities),
            policy=visitor.policy,
            scope=Scope(wish.tenant_id, wish.agent_id, wish.session_id),
            seconds=wish.seconds,
            disconnect_bound=wish.disconnect_bound,
        )
        return json_response(201, shown_lease(lease))

    async def _end_lease(self, request: Request, visitor: PairedVisitor) -> Response:
        if request.method != "DELETE":
            return refusal(405, "INVALID_ARGS", f"{request.method} is not offered here")
        await self._leases.revoke(visitor.peer.name, request.path.removeprefix(f"{LEASES}/"))
        return Response(204)

    # -- the operator's API

    async def _serve_control(self, request: Request, visitor: PairedVisitor) -> HttpAnswer:
        """What the page and the terminal work with, for a paired CLI. Pairing is no part of it."""
        area = next((area for start, area in AREAS if request.path.startswith(start)), "control.config:")
        visitor.check(f"{area}{'read' if request.method in ('GET', 'HEAD') else 'write'}")
        return await self._operator_api(request, visitor.peer.name, "mtls")

    # -- WebSockets

    def upgrade(self, request: Request) -> WebSocketHandler | Response:
        if request.header(b"origin") is not None:
            return refusal(403, "FORBIDDEN", "No page may come in here")
        try:
            if request.path == PAIR and not request.certificate:
                return self._gatekeeper.expected() or NOTHING_HERE
            peer = self.peer(request)
            if request.path == PAIR:
                return self._gatekeeper.renewal(peer)
            if request.path == HOST:
                return self._gatekeeper.host(peer) or NOTHING_HERE
        except GatewayError as error:
            return error_response(error)
        return NOTHING_HERE


def shown_lease(lease: Any) -> dict[str, Any]:
    return {
        "lease_id": lease.lease_id,
        "capabilities": list(lease.capabilities),
        "expires_at": lease.expires_at,
        "disconnect_bound": lease.disconnect_bound,
        "scope": {
            "tenant_id": lease.scope.tenant,
            "agent_id": lease.scope.agent,
            "session_id": lease.scope.session,
        },
    }
