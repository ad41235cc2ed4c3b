"""A host that can only dial out: it connects to its gateway, is paired there, and is called through the connection."""

import asyncio
import logging
import ssl
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from agent_gate.core.strict import MalformedJson, strict_json
from agent_gate.core.tasks import KeptTasks
from agent_gate.errors import GatewayError, InvalidArgs, PairingFailed
from agent_gate.hosts.component import PairedComponent
from agent_gate.hosts.server import HostServer
from agent_gate.net.http import Request, error_response
from agent_gate.peers.encoding import Malformed

log = logging.getLogger("agent_gate.hosts")
HOST = "/v1/host"
MOST_BYTES = 4 << 20
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
CHECK_SECONDS = 60.0
UNREACHABLE = (OSError, TimeoutError, InvalidHandshake, ConnectionClosed, EOFError)


class GatewayFrame(msgspec.Struct, forbid_unknown_fields=True):
    """One request of the gateway."""

    id: int
    method: str
    path: str
    body: Any = None


class DialledHost:
    """Keeps one connection to the gateway; when it is lost another one is made, a little later each time."""

    def __init__(self, server: HostServer) -> None:
        assert server.component is not None
        self._server, self._component = server, server.component
        self._calls = KeptTasks(log, "A call could not be answered")

    async def run(self) -> None:
        self._component.load()
        wait = FIRST_WAIT
        while True:
            try:
                await self._prepare(self._component)
                wait = FIRST_WAIT
                await self._serve()
            except PairingFailed as error:
                log.warning("A handshake failed: %s", error.message)
            except InvalidStatus as error:
                log.warning(
                    "The gateway does not want this host (HTTP %s). Is it paired?", error.response.status_code
                )
            except UNREACHABLE as error:
                first = wait == FIRST_WAIT
                log.log(
                    logging.WARNING if first else logging.INFO,
                    "The gateway does not take this host now; it is tried again: %s",
                    error,
                )
            await asyncio.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT)

    async def _prepare(self, component: PairedComponent) -> None:
        if component.belonging is None or component.renewal_due:
            await component.join_dialling()

    async def _serve(self) -> None:
        belonging = self._component.belonging
        assert belonging is not None
        socket = await self._component.dial(HOST, belonging.context(), MOST_BYTES)
        log.info("Connected to %s", belonging.membership.gateway_id)
        try:
            while not self._component.renewal_due:
                try:
                    async with asyncio.timeout(CHECK_SECONDS):
                        text = await socket.recv()
                except TimeoutError:
                    continue
                self._calls.start(self._answer(socket, text))
        finally:
            await socket.close()

    async def _answer(self, socket: ClientConnection, text: str | bytes) -> None:
        try:
            frame = msgspec.convert(strict_json(text), GatewayFrame)
        except (MalformedJson, msgspec.ValidationError):
            await socket.close(1008, "this is no request of the protocol")
            return
        body = b"" if frame.body is None else msgspec.json.encode(frame.body)
        try:
            response = await self._server.answer(
                Request(method=frame.method, target=frame.path.encode(), fields={}, body=body)
            )
        except GatewayError as error:
            response = error_response(error)
        except Malformed as error:
            response = error_response(InvalidArgs(f"This is no request of the protocol: {error}"))
        said = {"id": frame.id, "status": response.status, "body": msgspec.Raw(response.body or b"null")}
        try:
            await socket.send(msgspec.json.encode(said).decode())
        except (ConnectionClosed, ssl.SSLError):
            log.info("An answer came too late: the connection was lost")

    async def stop(self) -> None:
        await self._calls.cancel()
