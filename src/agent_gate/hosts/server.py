"""A host's listener: pairing at `/v1/pair`, and tools for the gateway that it is paired with, and for nobody else.

Before it is paired it shows a certificate of its own and serves nothing but pairing. From then on it shows the one it
was issued, and whoever comes must show one too; each request is checked again, whatever connection it comes on.
"""

import asyncio
import logging
import os
from pathlib import Path
from ssl import SSLContext
from typing import Any

from cryptography import x509

from agent_gate.core.ports import SystemClock
from agent_gate.core.tasks import KeptTasks
from agent_gate.errors import Forbidden, GatewayError, InvalidArgs, PairingFailed, PairingRequired
from agent_gate.hosts.component import HostSetup, PairedComponent
from agent_gate.hosts.execution import Execution
from agent_gate.hosts.kept import GivenResults
from agent_gate.hosts.publishing import EventOutbox, offer_events
from agent_gate.hosts.tools import FunctionTool
from agent_gate.net.http import Request, Response, error_response, json_response, refusal
from agent_gate.net.limits import Limits
from agent_gate.net.server import Server
from agent_gate.net.tls.mutual import mutual_server, own_server
from agent_gate.net.websocket import WebSocketHandler
from agent_gate.peers.authority import Leaf
from agent_gate.peers.dialing import PAIR
from agent_gate.peers.encoding import Malformed
from agent_gate.peers.envelope import EVENTS
from agent_gate.peers.joining import Membership
from agent_gate.peers.lines import SocketLine
from agent_gate.peers.messages import MOST_BYTES
from agent_gate.peers.toolwire import CALL, CANCEL, TOOLS, VERSION, HostCancel, HostRequest, Offer, read_wire

log = logging.getLogger("agent_gate.hosts")
MOST_HANDSHAKES = 16
MOST_WAIT = 30


class HostServer:
    """Serves the tools of one host, to its gateway over TLS or to this user over a Unix socket."""

    def __init__(
        self, service: str, tools: dict[str, FunctionTool], settings: HostSetup | None = None
    ) -> None:
        self._clock = SystemClock()
        offered = sorted((tool.offered for tool in tools.values()), key=lambda tool: tool.name)
        self._offer = Offer(version=VERSION, service=service, tools=offered)
        self.component = PairedComponent(settings, self._clock, self._installed) if settings else None
        self.folder = self.component.folder if self.component else None
        self.outbox = EventOutbox(self.folder.path if self.folder else None)
        self.execution = Execution(tools, GivenResults(self.folder.path if self.folder else None))
        self._gateways: dict[bytes, float] = {}
        self._paired = asyncio.Event()
        self._handshakes = KeptTasks(log, "A handshake failed")
        self.server = Server(
            self.handle, upgrade=self._upgrade, limits=Limits(connections=512, message_bytes=MOST_BYTES)
        )

    @property
    def membership(self) -> Membership | None:
        belonging = self.component.belonging if self.component else None
        return belonging.membership if belonging else None

    async def start(self, host: str, port: int) -> None:
        """Listen for the gateway, paired or not."""
        assert self.component is not None
        self.component.load()
        await self.server.start(host, port, ssl=self._context())

    async def wait_until_paired(self) -> None:
        """Wait until a handshake has ended well, and its last words are out."""
        await self._paired.wait()
        await self._handshakes.wait(10)

    async def start_unix(self, path: Path) -> None:
        """Listen on a socket that only this user reaches; nobody has to pair there."""
        await self.server.start_unix(path)

    async def stop(self, seconds: float) -> None:
        """Answer what is at work for so long, then close."""
        if self.server.address:
            await self.server.drain(seconds)
        await self._handshakes.cancel()
        self.execution.close()
        self.outbox.close()

    def _context(self) -> SSLContext:
        assert self.component is not None
        shown, membership = self.component.shown(), self.membership
        return own_server(shown) if membership is None else mutual_server(shown, membership.authority_pem)

    # -- tools

    async def handle(self, request: Request) -> Response:
        try:
            self._check_gateway(request)
            return await self.answer(request)
        except GatewayError as error:
            return error_response(error)
        except Malformed as error:
            return error_response(InvalidArgs(f"This is no request of the protocol: {error}"))

    async def answer(self, request: Request) -> Response:
        """What the gateway asks for, once it is known to be the gateway."""
        asked = (request.method, request.path)
        if asked == ("GET", TOOLS):
            return json_response(200, self._offer)
        if asked == ("POST", CALL):
            return json_response(200, await self.execution.answer(read_wire(request.body, HostRequest)))
        if asked == ("POST", CANCEL):
            found = self.execution.cancel(read_wire(request.body, HostCancel).call_id)
            return json_response(200, {"version": VERSION, "cancelled": found})
        if asked == ("GET", EVENTS) and self.folder is None:
            return json_response(200, await self._offer_events(request))
        if request.path in (TOOLS, CALL, CANCEL):
            return refusal(405, "INVALID_ARGS", f"{request.method} is not offered here")
        return refusal(404, "INVALID_ARGS", "There is nothing here")

    async def _offer_events(self, request: Request) -> dict[str, Any]:
        """What a local host has to tell, for the gateway that asks again and again."""
        given = request.params()
        after, wait = given.get("after", "0"), given.get("wait", "0")
        if not (after.isascii() and after.isdigit() and wait.isascii() and wait.isdigit()):
            raise InvalidArgs("after and wait are numbers")
        return await offer_events(self.outbox, int(after[:18]), min(int(wait[:4]), MOST_WAIT))

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
            assert self.component is not None
            assert self.component.belonging is not None
            leaf = Leaf(x509.load_der_x509_certificate(certificate))
            expected = self.component.belonging.gateway_uri
            self._gateways[certificate] = leaf.not_after if leaf.names() == [expected] else 0.0
        return self._gateways[certificate]

    # -- pairing

    def _upgrade(self, request: Request) -> WebSocketHandler | Response:
        if request.path != PAIR or self.folder is None:
            return refusal(404, "INVALID_ARGS", "There is nothing here")
        if request.header(b"origin") is not None:
            return refusal(403, "FORBIDDEN", "No page may pair a host")
        if len(self._handshakes.running) >= MOST_HANDSHAKES:
            return refusal(503, "RATE_LIMITED", "Too many handshakes are under way; try again in a minute")
        if self.membership is not None:
            try:
                self._check_gateway(request)
            except GatewayError as error:
                return error_response(error)
        return SocketLine(self._join)

    def _join(self, line: SocketLine) -> None:
        self._handshakes.start(self._shake_hands(line))

    async def _shake_hands(self, line: SocketLine) -> None:
        assert self.component is not None
        try:
            await self.component.join_listening(line)
        except PairingFailed as error:
            log.warning("A handshake failed: %s", error.message)
        finally:
            line.close()

    async def _installed(self, _membership: Membership) -> None:
        """From now on this certificate is shown, and the gateway must show its own."""
        self._gateways.clear()
        self._paired.set()
        if self.server.address:
            await self.server.show(self._context())
