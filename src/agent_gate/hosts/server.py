"""A host's listener: pairing at `/v1/pair`, and tools for the gateway that it is paired with, and for nobody else.

Before it is paired it shows a certificate of its own and serves nothing but pairing. From then on it shows the one it
was issued, and whoever comes must show one too; each request is checked again, whatever connection it comes on.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from ssl import SSLContext

from cryptography import x509

from agent_gate.core.ports import Clock, SystemClock
from agent_gate.errors import Forbidden, GatewayError, InvalidArgs, PairingFailed, PairingRequired
from agent_gate.hosts.execution import Execution
from agent_gate.hosts.kept import GivenResults, HostFolder, SeenInitiations
from agent_gate.hosts.tools import FunctionTool
from agent_gate.net.http import Request, Response, error_response, json_response, refusal
from agent_gate.net.limits import Limits
from agent_gate.net.mutual import KeyPair, mutual_server, own_server
from agent_gate.net.server import Server
from agent_gate.net.tls import fingerprint
from agent_gate.net.websocket import WebSocket, WebSocketHandler
from agent_gate.peers.authority import Leaf, component_uri
from agent_gate.peers.dialing import PAIR
from agent_gate.peers.encoding import Malformed
from agent_gate.peers.joining import Component, Joining, Membership
from agent_gate.peers.messages import MOST_BYTES
from agent_gate.peers.roles import GATEWAY
from agent_gate.peers.toolwire import CALL, CANCEL, TOOLS, VERSION, HostCancel, HostRequest, Offer, read_wire

log = logging.getLogger("agent_gate.hosts")
MOST_HANDSHAKES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSetup:
    """Who a host is, which gateway it believes, and where it keeps things. A local host needs none of it."""

    component_id: str
    folder: Path
    gateway_key: bytes
    pair_again: bool = False


@dataclass(eq=False)
class SocketLine(WebSocketHandler):
    """A WebSocket as the line of a handshake."""

    begin: Callable[["SocketLine"], None]
    certificate_fingerprint: str | None = None
    ws: WebSocket | None = None
    _heard: asyncio.Queue[str | bytes | None] = field(default_factory=lambda: asyncio.Queue(16))

    def opened(self, ws: WebSocket) -> None:
        self.ws = ws
        self.begin(self)

    def message(self, ws: WebSocket, data: str | bytes) -> None:
        if self._heard.full():
            ws.close(1008, "too many messages at once")
            return
        self._heard.put_nowait(data)

    def closed(self, _ws: WebSocket, _code: int, _reason: str) -> None:
        if not self._heard.full():
            self._heard.put_nowait(None)

    async def send(self, text: str) -> None:
        if self.ws is None or not self.ws.open:
            raise ConnectionResetError("the other side is gone")
        self.ws.send(text)

    async def receive(self) -> str | bytes:
        heard = await self._heard.get()
        if heard is None:
            raise EOFError("the other side is gone")
        return heard


class HostServer:
    """Serves the tools of one host, to its gateway over TLS or to this user over a Unix socket."""

    def __init__(
        self,
        service: str,
        tools: dict[str, FunctionTool],
        settings: HostSetup | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._settings, self._clock = settings, clock or SystemClock()
        self._tools = tools
        offered = sorted((tool.offered for tool in tools.values()), key=lambda tool: tool.name)
        self._offer = Offer(version=VERSION, service=service, tools=offered)
        self.folder = HostFolder(settings.folder) if settings else None
        self._seen = SeenInitiations(self.folder.path) if self.folder else None
        self.execution = Execution(tools, GivenResults(self.folder.path if self.folder else None))
        self.membership: Membership | None = None
        self._shown: KeyPair | None = None
        self._gateways: dict[bytes, float] = {}
        self._handshakes: set[asyncio.Task[None]] = set()
        self.server = Server(
            self.handle, upgrade=self._upgrade, limits=Limits(connections=512, message_bytes=MOST_BYTES)
        )

    async def start(self, host: str, port: int) -> None:
        """Listen for the gateway, paired or not."""
        assert self.folder is not None
        assert self._settings is not None
        if self._settings.pair_again:
            self.folder.forget()
        self.membership = self.folder.membership()
        self._shown = self._pair_of(self.membership)
        self.server.ssl, self.server.secure = self._context(), True
        await self.server.start(host, port)

    async def start_unix(self, path: Path) -> None:
        """Listen on a socket that only this user reaches; nobody has to pair there."""
        await self.server.start_unix(path)

    async def stop(self, seconds: float) -> None:
        """Answer what is at work for so long, then close."""
        await self.server.drain(seconds)
        for task in tuple(self._handshakes):
            task.cancel()
        await asyncio.gather(*self._handshakes, return_exceptions=True)
        self.execution.close()

    def _pair_of(self, membership: Membership | None) -> KeyPair:
        assert self.folder is not None
        if membership is None:
            return self.folder.own_certificate()
        return KeyPair(membership.certificate_pem, membership.key_pem)

    def _context(self) -> SSLContext:
        assert self._shown is not None
        if self.membership is None:
            return own_server(self._shown)
        return mutual_server(self._shown, self.membership.authority_pem)

    # -- tools

    async def handle(self, request: Request) -> Response:
        try:
            self._check_gateway(request)
            return await self._answer(request)
        except GatewayError as error:
            return error_response(error)
        except Malformed as error:
            return error_response(InvalidArgs(f"This is no request of the protocol: {error}"))

    async def _answer(self, request: Request) -> Response:
        asked = (request.method, request.path)
        if asked == ("GET", TOOLS):
            return json_response(200, self._offer)
        if asked == ("POST", CALL):
            return json_response(200, await self.execution.answer(read_wire(request.body, HostRequest)))
        if asked == ("POST", CANCEL):
            found = self.execution.cancel(read_wire(request.body, HostCancel).call_id)
            return json_response(200, {"version": VERSION, "cancelled": found})
        if request.path in (TOOLS, CALL, CANCEL):
            return refusal(405, "INVALID_ARGS", f"{request.method} is not offered here")
        return refusal(404, "INVALID_ARGS", "There is nothing here")

    def _check_gateway(self, request: Request) -> None:
        """Whether this request comes from the gateway, or on a local socket from this user."""
        if self.folder is None:
            if request.uid not in (0, os.geteuid()):
                raise Forbidden("Only this host's own user may use its socket")
        elif self.membership is None:
            raise PairingRequired("This host is not paired yet. Pair it: agent-gate pair tool URL NAME")
        elif not request.certificate:
            raise PairingRequired("This connection was made before the host was paired. Make another one")
        elif self._until(request.certificate) <= self._clock.now():
            raise Forbidden("Only the gateway that this host is paired with may ask here")

    def _until(self, certificate: bytes) -> float:
        """When a certificate ends that is the gateway's; 0 for any other. TLS has verified who issued it."""
        if certificate not in self._gateways:
            assert self.membership is not None
            leaf = Leaf(x509.load_der_x509_certificate(certificate))
            own = Leaf(x509.load_pem_x509_certificate(self.membership.certificate_pem.encode()))
            expected = component_uri(own.domain, GATEWAY, self.membership.gateway_id)
            self._gateways[certificate] = leaf.not_after if leaf.names() == [expected] else 0.0
        return self._gateways[certificate]

    # -- pairing

    def _upgrade(self, request: Request) -> WebSocketHandler | Response:
        if request.path != PAIR or self.folder is None:
            return refusal(404, "INVALID_ARGS", "There is nothing here")
        if request.header(b"origin") is not None:
            return refusal(403, "FORBIDDEN", "No page may pair a host")
        if len(self._handshakes) >= MOST_HANDSHAKES:
            return refusal(503, "RATE_LIMITED", "Too many handshakes are under way; try again in a minute")
        if self.membership is not None:
            try:
                self._check_gateway(request)
            except GatewayError as error:
                return error_response(error)
        return SocketLine(self._join)

    def _join(self, line: SocketLine) -> None:
        task = asyncio.get_running_loop().create_task(self._joined(line))
        self._handshakes.add(task)
        task.add_done_callback(self._handshakes.discard)

    async def _joined(self, line: SocketLine) -> None:
        settings, folder = self._settings, self.folder
        assert settings is not None
        assert folder is not None
        assert self._seen is not None
        assert self._shown is not None
        component = Component("tool_host", settings.component_id, folder.identity, settings.gateway_key)
        shown = fingerprint(self._shown.certificate)
        joining = Joining(line, component, shown, self._seen, self._clock, self._install)
        try:
            membership = await joining.run()
            log.info("Paired with %s", membership.gateway_id, extra={"certificate": membership.fingerprint})
        except PairingFailed as error:
            log.warning("A handshake failed: %s", error.message)
        finally:
            if line.ws is not None:
                line.ws.close()

    async def _install(self, membership: Membership) -> None:
        """From now on this certificate is shown, and the gateway must show its own; durable before it counts."""
        assert self.folder is not None
        self.folder.keep(membership)
        self.membership, self._shown = membership, self._pair_of(membership)
        self._gateways.clear()
        await self.server.show(self._context())
