"""`Client`: calls tools over one connection that mends itself; a call survives reconnecting and the gateway's restart.

Every call carries an idempotency key, so sending it again after a lost connection cannot run it twice.
"""

import asyncio
import itertools
import logging
import os
import random
import re
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypedDict, Unpack

import msgspec

from agent_gate.client.awaited import TOO_LARGE, UNREADABLE, Awaited, Told
from agent_gate.client.link import GatewayPlace, Link, dial
from agent_gate.client.wire import (
    SESSION_OVER,
    Incoming,
    Reply,
    decode_incoming,
    kept_reply,
    readable_rows,
    readable_tools,
    reply_of,
    request_text,
)
from agent_gate.errors import (
    GatewayError,
    Internal,
    InvalidArgs,
    OutcomeUnknown,
    RateLimited,
    Unreachable,
)

log = logging.getLogger("agent_gate.client")
FIRST_DELAY = 0.25
LONGEST_DELAY = 30.0
MOST_ACKNOWLEDGED = 1000
PENDING = "get_pending_results"
WITHDRAWAL_SECONDS = 5.0
IN_A_HEADER = re.compile(r"[\x20-\x7e\x80-\xff]+")


class CallOptions(TypedDict, total=False):
    """`run_timeout` limits the tool's own run. `on_progress` hears the tool's progress, `on_waiting` that a person is
    asked."""

    run_timeout: float | None
    idempotency_key: str | None
    on_progress: Told | None
    on_waiting: Told | None


class Client:
    """An agent's connection to the gateway.

        async with Client("wss://gateway:8443", token) as gate:
            state = await gate.call("ha_get_state", {"entity_id": "sensor.temp"})

    What is left out comes from AGENT_GATE_URL, AGENT_TOKEN, AGENT_GATE_CA, AGENT_GATE_FINGERPRINT and
    AGENT_GATE_SESSION. The first connect is never retried; a connection that is lost later is, unless
    `reconnect` is false. Whatever is asked of it ends `patience` seconds after the connect began, if that is given.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        session: str | None = None,
        ca: str | Path | None = None,
        fingerprint: str | None = None,
        reconnect: bool = True,
        connect_timeout: float = 10.0,
        patience: float | None = None,
    ) -> None:
        env = os.environ
        url, token = url or env.get("AGENT_GATE_URL"), token or env.get("AGENT_TOKEN")
        if not url:
            raise Unreachable("no gateway is named\nSay where it is with --url or AGENT_GATE_URL")
        token = (token or "").strip()  # read from a file it often has a line break at its end
        if not token:
            raise Unreachable("there is no agent token\nGive it with --token or AGENT_TOKEN")
        ca = ca or env.get("AGENT_GATE_CA") or None
        fingerprint = fingerprint or env.get("AGENT_GATE_FINGERPRINT") or None
        self._place = GatewayPlace.parse(url, Path(ca) if ca else None, fingerprint)
        named = session or env.get("AGENT_GATE_SESSION")
        self.session = named or f"py-{uuid.uuid4().hex}"
        self._goodbye = "" if named else SESSION_OVER
        if not IN_A_HEADER.fullmatch(token):
            raise Unreachable("the agent token has a character that no token has, such as a line break")
        if not IN_A_HEADER.fullmatch(self.session):
            raise InvalidArgs("The session's name has a character that it cannot have; use plain letters")
        self._headers = {"Authorization": f"Bearer {token}", "Agent-Session": self.session}
        self._reconnect, self._connect_timeout = reconnect, connect_timeout
        self._patience, self._deadline = patience, None if patience is None else 0.0
        self._delay = FIRST_DELAY
        # A session can outlive this client, and what it left is found by these ids: no other client starts here.
        self._ids = itertools.count(random.getrandbits(48))
        self._open: dict[int, Awaited] = {}
        self._link: Link | None = None
        self._mending: asyncio.Task[None] | None = None
        self._received: list[str] = []
        self._refused: GatewayError | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        if self._patience is not None:
            self._deadline = asyncio.get_running_loop().time() + self._patience
        self._link = await self._dial()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection. Calls that still wait go on at the gateway, which keeps their results."""
        self._closed = True
        self._flush_received()
        if self._mending is not None:
            self._mending.cancel()
            await asyncio.gather(self._mending, return_exceptions=True)
        if self._link is not None:
            await self._link.close(self._goodbye)
        self._fail_all(Unreachable("the client was closed"))

    # What an agent does

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        **options: Unpack[CallOptions],
    ) -> Any:
        """Call a tool and return its data, however long a person takes to answer (or `timeout` seconds).

        Raises the error of `agent_gate.errors` that the call ended in.
        """
        reply = await self.request(tool, arguments, timeout=timeout, **options)
        self._took(reply.call_id)
        return reply.data

    async def request(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        **options: Unpack[CallOptions],
    ) -> Reply:
        """As `call`, but the result stays kept at the gateway until `acknowledge([reply.call_id])`."""
        heard = options.get("on_progress") is not None or options.get("on_waiting") is not None
        request = self.start(tool, arguments, receipt=heard, **options)
        try:
            return await self.reply(request, timeout)
        finally:
            self.forget(request)

    def start(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        run_timeout: float | None = None,
        idempotency_key: str | None = None,
        on_progress: Told | None = None,
        on_waiting: Told | None = None,
        receipt: bool = True,
    ) -> Awaited:
        """Send a call and wait for nothing; `reply`, `withdraw` and `forget` take what it returns.

        With a `receipt` the gateway says that it has the call, and when a person is asked.
        """
        params: dict[str, Any] = {
            "tool": tool,
            "args": dict(arguments or {}),
            "idempotency_key": idempotency_key or uuid.uuid4().hex,
        }
        if run_timeout is not None:
            params["timeout"] = run_timeout
        if receipt:
            params["progress"] = True
        ident = next(self._ids)
        text = request_text(ident, "tool_request", params)
        request = Awaited(ident, text, is_call=True, on_progress=on_progress, on_waiting=on_waiting)
        self._begin(request)
        return request

    async def reply(self, request: Awaited, timeout: float | None = None) -> Reply:
        """The reply to a call that was started, which may be waited for more than once."""
        reply = await self._end(request, timeout)
        assert isinstance(reply, Reply)
        return reply

    async def withdraw(self, request: Awaited, timeout: float = WITHDRAWAL_SECONDS) -> bool:
        """Take back a call of this connection that was started; whether the gateway did."""
        target = request.call_id or request.ident
        return bool(await self._request_member("cancel", {"id": target}, "cancelled", bool, timeout))

    def forget(self, request: Awaited) -> None:
        """Nobody waits here for this call any more; the gateway keeps its result."""
        self._open.pop(request.ident, None)

    async def tools(
        self, names: Sequence[str] | None = None, *, timeout: float | None = None
    ) -> list[dict[str, Any]]:
        """The tools this agent may call, or those of them that are named."""
        params = {} if names is None else {"tools": list(names)}
        return readable_tools(await self._request_member("list_tools", params, "tools", list, timeout))

    async def pending(self, *, timeout: float | None = None) -> list[dict[str, Any]]:
        """Results that were kept for this agent and not acknowledged yet."""
        return readable_rows(await self._request_member(PENDING, {}, "results", list, timeout))

    async def acknowledge(self, call_ids: Sequence[str], *, timeout: float | None = None) -> int:
        """Tell the gateway that these results arrived; how many of them it had kept."""
        params = {"request_ids": list(call_ids)}
        return int(await self._request_member("ack_results", params, "acknowledged", int, timeout))

    async def cancel(self, call_id: str) -> bool:
        """Take back a call that waits, or ask one that runs to stop."""
        return bool(await self._request_member("cancel", {"id": call_id}, "cancelled", bool, None))

    async def ask(self, method: str, params: Mapping[str, Any], *, timeout: float | None = None) -> Any:
        """Any other method of the gateway; its result as it is."""
        ident = next(self._ids)
        request = Awaited(ident, request_text(ident, method, params), is_call=False)
        self._begin(request)
        try:
            result = await self._end(request, timeout)
        finally:
            self.forget(request)
        assert isinstance(result, bytes)
        return msgspec.json.decode(result)

    async def _request_member(
        self, method: str, params: Mapping[str, Any], name: str, kind: type, timeout: float | None
    ) -> Any:
        """The one member of a result that is wanted; a result without it is a fault of the gateway."""
        result = await self.ask(method, params, timeout=timeout)
        found = result.get(name) if isinstance(result, dict) else None
        if not isinstance(found, kind):
            raise Internal(f"The gateway {UNREADABLE}", details={"local": True})
        return found

    # Requests and replies

    def _begin(self, request: Awaited) -> None:
        if self._refused is not None:
            raise self._refused
        if self._closed or (self._link is None and self._mending is None):
            raise Unreachable("the client is not connected")
        self._open[request.ident] = request
        self._send(request)

    async def _end(self, request: Awaited, timeout: float | None) -> Reply | bytes:
        left = self._left(timeout)
        try:
            async with asyncio.timeout(left):
                return await asyncio.shield(request.future)
        except TimeoutError:
            told = timeout if timeout is not None and timeout == left else self._patience
            raise request.unanswered(told or 0.0) from None

    def _left(self, timeout: float | None) -> float | None:
        """The seconds that this may take; nothing outlasts the client's own patience."""
        if self._deadline is None:
            return timeout
        left = max(0.0, self._deadline - asyncio.get_running_loop().time())
        return left if timeout is None else min(timeout, left)

    def _send(self, request: Awaited) -> None:
        if self._link is not None and not request.future.done():
            request.sent |= self._link.send(request.text)

    def _heard(self, data: bytes) -> None:
        try:
            message = decode_incoming(data)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            self._give_up()
            return
        if message.method:
            self._told(message)
            return
        request = self._open.get(message.id) if isinstance(message.id, int) else None
        if request is not None:
            self._answered(request, message)

    def _told(self, message: Incoming) -> None:
        ident = message.params.get("id")
        request = self._open.get(ident) if isinstance(ident, int) else None
        if request is None:
            return
        request.told(message)
        if message.method == "accepted":
            return
        told = request.on_progress if message.method == "progress" else request.on_waiting
        if told is None:
            return
        try:
            told(message.params)
        except Exception:  # the boundary of foreign code: it must not cost the connection
            log.exception("A callback failed on a message about a call")

    def _give_up(self) -> None:
        """What sends anything but JSON is no gateway: there is no sense in going on."""
        self._refused = Unreachable("this is no gateway: it sent something that is not JSON-RPC")
        for request in list(self._open.values()):
            request.end(request.garbled() if request.is_call and request.sent else self._refused)
        if self._link is not None and self._link.transport is not None:
            self._link.transport.abort()

    def _answered(self, request: Awaited, message: Incoming) -> None:
        self._delay = FIRST_DELAY
        if message.error is None:
            result = bytes(message.result)
            try:
                request.end(reply_of(result) if request.is_call else result or b"null")
            except (msgspec.DecodeError, RecursionError):
                request.end(request.garbled())
            return
        error = message.error.error()
        if self._reconnect and (error.details or {}).get("stopping") is True:
            return  # nothing was called; it is sent again when this connection has ended, which is soon
        if request.resent and isinstance(error, RateLimited):
            asyncio.get_running_loop().call_later(error.retry_after or 1.0, self._send, request)
            return
        self._took(str((message.error.data or {}).get("request_id", "")))
        request.end(error)

    def _took(self, call_id: str) -> None:
        """Acknowledge soon, many at a time."""
        if not call_id:
            return
        if not self._received:
            asyncio.get_running_loop().call_soon(self._flush_received)
        self._received.append(call_id)

    def _flush_received(self) -> None:
        """What cannot be told now is told after the next connect."""
        while self._received and self._link is not None:
            first = self._received[:MOST_ACKNOWLEDGED]
            if not self._link.send(request_text(None, "ack_results", {"request_ids": first})):
                return
            del self._received[:MOST_ACKNOWLEDGED]

    def _fail_all(self, error: GatewayError) -> None:
        for request in list(self._open.values()):
            request.end(error)

    # Mending the connection

    async def _dial(self) -> Link:
        seconds = self._left(self._connect_timeout)
        assert seconds is not None
        return await dial(self._place, self._headers, self._heard, self._lost, round(seconds, 3))

    def _lost(self, link: Link, why: str) -> None:
        if link is not self._link:
            return
        self._link = None
        if self._closed or self._refused is not None:
            return
        if link.refused_size or link.exceeded:
            self._end_oversized(link)
        if self._reconnect:
            self._mending = asyncio.get_running_loop().create_task(self._mend())
        else:
            self._fail_all(Unreachable(why))

    def _end_oversized(self, link: Link) -> None:
        """A message was refused for its size; sent again it would be again. Ours is the largest that was open."""
        sent = [request for request in self._open.values() if request.sent and not request.future.done()]
        if link.exceeded:
            for request in sent:
                request.end(OutcomeUnknown(f"The gateway's reply {TOO_LARGE}; the call may have run"))
        elif sent:
            largest = max(sent, key=lambda request: len(request.text))
            said = f"The request is of {len(largest.text):,} bytes, which {TOO_LARGE}. Nothing was called"
            largest.end(InvalidArgs(said, details={"local": True}))

    async def _mend(self) -> None:
        """Dial until the gateway is back, waiting longer each time and never in step with other agents.

        The wait grows until something was answered: a gateway that takes a connection and drops it is not back.
        """
        while self._link is None:
            await asyncio.sleep(random.uniform(0, self._delay))
            self._delay = min(self._delay * 2, LONGEST_DELAY)
            try:
                self._link = await self._dial()
            except (Unreachable, RateLimited):
                continue
            except GatewayError as error:
                self._refused = error
                self._fail_all(error)
                return
        self._mending = None
        self._flush_received()
        await self._resume(list(self._open.values()))

    async def _resume(self, waiting: Sequence[Awaited]) -> None:
        """Take what was kept meanwhile; send the rest again under its key."""
        calls = {request.ident: request for request in waiting if request.is_call and request.sent}
        if calls:
            for row in await self._fetch_kept():
                ident = row.get("client_id") if row.get("session") == self.session else None
                request = calls.get(ident) if isinstance(ident, int) else None
                if request is not None and (kept := kept_reply(row)) is not None:
                    request.end(kept)
                    self._took(row["request_id"])
        for request in waiting:
            request.resent = True
            self._send(request)

    async def _fetch_kept(self) -> list[dict[str, Any]]:
        try:
            return await self.pending()
        except GatewayError:
            return []

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open" if self._link else "reconnecting"
        return f"<Client {self._place.shown} {state}>"
