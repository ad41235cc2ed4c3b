"""One WebSocket to a gateway: its certificate is checked before the token is sent."""

import asyncio
import logging
import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec
from websockets.client import ClientProtocol
from websockets.exceptions import InvalidStatus
from websockets.frames import BINARY, CONT, TEXT, CloseCode, Frame
from websockets.http11 import Response
from websockets.protocol import OPEN
from websockets.uri import WebSocketURI

from agent_gate.client.wire import WireError
from agent_gate.errors import ConfigError, GatewayError, RateLimited, Unauthorized, Unreachable
from agent_gate.net.tls.trust import client_context, is_pinned, plain_fingerprint

SECURE = {"ws": False, "http": False, "wss": True, "https": True}
LARGEST_MESSAGE = 128 * 1024 * 1024
PING_SECONDS = 20.0
GOODBYE_SECONDS = 1.0
START_ADVICE = "Is a gateway running there? `agent-gate serve` starts one and prints its address"
PLAIN_ADVICE = "A gateway with TLS is reached with wss:// or https://"
SECURE_ADVICE = "A gateway without TLS (--insecure, make run) is reached with ws:// or http://"
TRUST_ADVICE = "Trust its certificate with --ca FILE (AGENT_GATE_CA) or --fingerprint sha256:HEX"

quiet = logging.getLogger("agent_gate.client.frames")
quiet.setLevel(logging.WARNING)

HearBytes = Callable[[bytes], None]
HearLost = Callable[["Link", str], None]


@dataclass(frozen=True, slots=True)
class GatewayPlace:
    """Where the gateway is and why it is trusted."""

    host: str
    port: int
    secure: bool
    path: str = "/"
    ca: Path | None = None
    fingerprint: str | None = None

    @classmethod
    def parse(cls, url: str, ca: Path | None = None, fingerprint: str | None = None) -> "GatewayPlace":
        try:
            parts = urlsplit(url)
            secure = SECURE[parts.scheme]
            host, port = parts.hostname, parts.port or (443 if secure else 80)
        except (ValueError, KeyError):
            host = None  # a bracket that is not closed, a port that is no number, another scheme
        if not host or parts.username or not (url.isascii() and url.isprintable()):
            raise ConfigError("The gateway's URL must be ws(s)://host[:port], without user and password")
        if fingerprint is not None:
            plain_fingerprint(fingerprint)
        return cls(host, port, secure, parts.path or "/", ca, fingerprint)

    def uri(self) -> WebSocketURI:
        return WebSocketURI(self.secure, self.host, self.port, self.path, "")

    @property
    def shown(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'wss' if self.secure else 'ws'}://{host}:{self.port}{self.path}"


class Link(asyncio.Protocol):
    """Text in, text out. `heard` gets every message, `lost` is called once when the connection ends."""

    def __init__(self, place: GatewayPlace, heard: HearBytes, lost: HearLost) -> None:
        self._frames = ClientProtocol(place.uri(), max_size=LARGEST_MESSAGE, logger=quiet)
        self._heard, self._lost, self._secure = heard, lost, place.secure
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes] = []
        self._silent = 0
        self._timer: asyncio.TimerHandle | None = None
        self.opened: asyncio.Future[None] = self._loop.create_future()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def begin(self, headers: Mapping[str, str]) -> None:
        request = self._frames.connect()
        for name, value in headers.items():
            request.headers[name] = value
        self._frames.send_request(request)
        self._flush()
        self._timer = self._loop.call_later(PING_SECONDS, self._keep_alive)

    def send(self, text: bytes) -> bool:
        """Send one message; False where the connection is closing or gone."""
        if self._frames.state is not OPEN or self.transport is None:
            return False
        self._frames.send_text(text)
        self._flush()
        return True

    @property
    def is_open(self) -> bool:
        opened = self.opened
        return opened.done() and not opened.cancelled() and opened.exception() is None

    @property
    def refused_size(self) -> bool:
        """Whether the gateway ended the connection because a message of ours was too large."""
        close = self._frames.close_rcvd
        told = close is not None and close.code == CloseCode.MESSAGE_TOO_BIG
        return told and self._frames.close_rcvd_then_sent is not False

    @property
    def exceeded(self) -> bool:
        """Whether we ended it because the gateway's was."""
        close = self._frames.close_sent
        return close is not None and close.code == CloseCode.MESSAGE_TOO_BIG and not self.refused_size

    async def drop(self) -> None:
        """Give up before the handshake was through; nobody is told."""
        self.opened.cancel()
        await self.close()

    async def close(self, reason: str = "") -> None:
        """Say goodbye and wait a moment until it is sent."""
        if self._frames.state is OPEN:
            self._frames.send_close(1000, reason)
            self._flush()
        if self.transport is not None:
            self.transport.close()
            await asyncio.wait([self.ended], timeout=GOODBYE_SECONDS)
        if self.transport is not None:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        self._silent = 0
        self._frames.receive_data(data)
        for event in self._frames.events_received():
            if isinstance(event, Response):
                self._answered(event)
            else:
                self._take_frame(cast(Frame, event))
        self._flush()

    def eof_received(self) -> None:
        self._frames.receive_eof()

    def connection_lost(self, error: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.transport = None
        if not self.ended.done():
            self.ended.set_result(None)
        close = self._frames.close_rcvd
        why = (close.reason if close is not None else "") or str(error or "") or "the connection was closed"
        if not self.opened.done():
            self.opened.set_exception(Unreachable(why if self._secure else f"{why}\n{PLAIN_ADVICE}"))
        self._lost(self, why)

    def _answered(self, response: Response) -> None:
        refused = self._frames.handshake_exc
        if self.opened.done():
            return
        if refused is None:
            self.opened.set_result(None)
        else:
            self.opened.set_exception(refusal(response, refused))

    def _take_frame(self, frame: Frame) -> None:
        if frame.opcode in (TEXT, BINARY, CONT):
            self._parts.append(bytes(frame.data))
            if frame.fin:
                message, self._parts = b"".join(self._parts), []
                self._heard(message)

    def _flush(self) -> None:
        for data in self._frames.data_to_send():
            if self.transport is not None and data:
                self.transport.write(data)
            elif self.transport is not None:
                self.transport.close()

    def _keep_alive(self) -> None:
        """Notice a gateway that vanished without a word: two pings without any answer."""
        self._silent += 1
        if self._silent > 2 and self.transport is not None:
            self.transport.abort()
            return
        if self._frames.state is OPEN:
            self._frames.send_ping(b"")
            self._flush()
        self._timer = self._loop.call_later(PING_SECONDS, self._keep_alive)


def refusal(response: Response, refused: Exception) -> GatewayError:
    """What a gateway meant that did not open the WebSocket."""
    if not isinstance(refused, InvalidStatus):
        return Unreachable(f"this is no gateway: {refused}")
    try:
        body: Any = msgspec.json.decode(bytes(response.body or b"{}"))["error"]
        error = WireError(message=str(body["message"]), data=body).error()
    except (msgspec.DecodeError, KeyError, TypeError):
        return Unreachable(f"it answered HTTP {response.status_code}")
    if isinstance(error, Unauthorized | RateLimited):
        return error
    return Unreachable(f"it answered HTTP {response.status_code}: {error.message}")


def check_pin(transport: asyncio.Transport | None, fingerprint: str) -> None:
    tls = transport.get_extra_info("ssl_object") if transport is not None else None
    der = tls.getpeercert(binary_form=True) if tls is not None else b""
    if not is_pinned(der, fingerprint):
        raise Unreachable("the gateway's certificate is not the one with this fingerprint")


def reason(error: OSError) -> str:
    """The system's words for it, without a number."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)


async def dial(
    place: GatewayPlace, headers: Mapping[str, str], heard: HearBytes, lost: HearLost, seconds: float
) -> Link:
    """An open link, or `Unreachable`, `Unauthorized` or `RateLimited`."""
    context = client_context(place.ca, place.fingerprint) if place.secure else None
    loop = asyncio.get_running_loop()
    link: Link | None = None
    try:
        async with asyncio.timeout(seconds):
            _, link = await loop.create_connection(
                lambda: Link(place, heard, lost), place.host, place.port, ssl=context
            )
            if place.secure and place.fingerprint is not None:
                check_pin(link.transport, place.fingerprint)
            link.begin(headers)
            await link.opened
    except TimeoutError:
        raise Unreachable(f"{place.shown} did not answer within {seconds:g} s") from None
    except ssl.SSLCertVerificationError as error:
        raise Unreachable(f"{error.verify_message or error}\n{TRUST_ADVICE}") from None
    except ssl.SSLError as error:
        why = (error.reason or str(error)).lower().replace("_", " ")
        raise Unreachable(f"{place.shown}: TLS failed ({why})\n{SECURE_ADVICE}") from None
    except ConnectionRefusedError as error:
        raise Unreachable(f"{place.shown}: {reason(error)}\n{START_ADVICE}") from None
    except OSError as error:
        raise Unreachable(f"{place.shown}: {reason(error)}") from None
    except UnicodeError:  # a label of the name is empty or too long
        raise Unreachable(f"{place.shown}: this is no host's name") from None
    finally:
        if link is not None and not link.is_open:
            await link.drop()
    return link
