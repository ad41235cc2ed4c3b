"""The gateway's line to a component that it pairs with: an outbound WebSocket, and what stands at its other end."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from agent_gate.errors import InvalidArgs, PairingFailed
from agent_gate.net.addresses import is_loopback
from agent_gate.net.tls.mutual import KeyPair, shown_certificate, unverified_client
from agent_gate.net.tls.trust import fingerprint_der
from agent_gate.peers.messages import MOST_BYTES

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

PAIR = "/v1/pair"
DIAL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a component takes part in pairing; its tools are at the same host and port."""

    url: str
    tools: str

    @classmethod
    def parse(cls, text: str) -> "Endpoint":
        """`wss://host:port[/path]`; `ws://` only to this machine, which is decided before any name is looked up."""
        try:
            parts = urlsplit(text)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise InvalidArgs("This is no URL. Write wss://HOST:PORT") from None
        if (
            parts.scheme not in ("ws", "wss")
            or not host
            or parts.query
            or parts.fragment
            or "@" in parts.netloc
        ):
            raise InvalidArgs(
                "A component is paired at wss://HOST:PORT[/PATH], without user, query or fragment"
            )
        if parts.scheme == "ws" and not is_loopback(host):
            raise InvalidArgs(f"{host} is another machine, so it is paired over wss://, never over ws://")
        if not (text.isascii() and text.isprintable()):
            raise InvalidArgs("A URL has printable ASCII only")
        authority = parts.netloc if port else f"{parts.netloc}:{443 if parts.scheme == 'wss' else 80}"
        path = parts.path if parts.path not in ("", "/") else PAIR
        return cls(f"{parts.scheme}://{authority}{path}", f"https://{authority}")

    @property
    def secure(self) -> bool:
        return self.url.startswith("wss:")


class DialledLine:
    """An open WebSocket as the line of a handshake."""

    def __init__(self, socket: "ClientConnection") -> None:
        self._socket = socket
        shown = shown_certificate(socket.transport)
        self.certificate_fingerprint = fingerprint_der(shown) if shown else None

    async def send(self, text: str) -> None:
        try:
            await self._socket.send(text)
        except ConnectionClosed as error:
            raise ConnectionResetError(str(error)) from None

    async def receive(self) -> str | bytes:
        try:
            return await self._socket.recv()
        except ConnectionClosed as error:
            raise EOFError(str(error)) from None


@asynccontextmanager
async def dial(endpoint: Endpoint, own: KeyPair) -> AsyncIterator[DialledLine]:
    """A line to the component. Its certificate is not verified here: it must be the one that the component signs."""
    from websockets.asyncio.client import connect  # and half of the standard library, for the few who pair

    try:
        socket = await connect(
            endpoint.url,
            ssl=unverified_client(own) if endpoint.secure else None,
            compression=None,
            max_size=MOST_BYTES,
            open_timeout=DIAL_SECONDS,
            close_timeout=1.0,
            proxy=None,
        )
    except InvalidStatus as error:
        said = f"it answered with HTTP status {error.response.status_code} instead of a WebSocket"
        raise unreachable(endpoint, said) from None
    except ssl.SSLError as error:
        raise unreachable(endpoint, f"no TLS 1.3 with it ({error.reason})") from None
    except (OSError, TimeoutError, InvalidHandshake, EOFError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise unreachable(endpoint, f"it cannot be reached ({why})") from None
    try:
        yield DialledLine(socket)
    finally:
        await socket.close()


def unreachable(endpoint: Endpoint, why: str) -> PairingFailed:
    return PairingFailed(
        f"Pairing failed in phase 1 of 7: {why}. Is a host running at {endpoint.url}? Nothing was paired",
        details={"phase": 1, "code": "UNREACHABLE"},
    )
