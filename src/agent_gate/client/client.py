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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from agent_gate.client.link import Link, Place, dial
from agent_gate.client.wire import Incoming, Reply, decode_incoming, kept_reply, reply_of, request_text
from agent_gate.errors import CallTimeout, GatewayError, InvalidArgs, RateLimited, Unreachable

log = logging.getLogger("agent_gate.client")
Told = Callable[[Mapping[str, Any]], None]
FIRST_DELAY = 0.25
LONGEST_DELAY = 30.0
MOST_ACKNOWLEDGED = 1000
PENDING = "get_pending_results"
IN_A_HEADER = re.compile(r"[\x20-\x7e\x80-\xff]+")


class Request:
    """One message that waits for its reply, kept as it was sent so that it can be sent again."""

    __slots__ = ("future", "ident", "is_call", "on_progress", "on_waiting", "resent", "text")

    def __init__(
        self, ident: int, text: bytes, *, is_call: bool, on_progress: Told | None, on_waiting: Told | None
    ) -> None:
        self.ident, self.text, self.is_call = ident, text, is_call
        self.on_progress, self.on_waiting = on_progress, on_waiting
        self.resent = False
        self.future: asyncio.Future[Reply | bytes] = asyncio.get_running_loop().create_future()

    def end(self, outcome: Reply | bytes | GatewayError) -> None:
        if self.future.done():
            return
        if isinstance(outcome, GatewayError):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


class Client:
    """An agent's connection to the gateway.

        async with Client("wss://gateway:8443", token) as gate:
            state = await gate.call("ha_get_state", {"entity_id": "sensor.temp"})

    What is left out comes from AGENT_GATE_URL, AGENT_TOKEN, AGENT_GATE_CA, AGENT_GATE_FINGERPRINT and
    AGENT_GATE_SESSION. The first connect is never retried; a connection that is lost later is, unless
    `reconnect` is false.
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
        self._place = Place.parse(url, Path(ca) if ca else None, fingerprint)
        self.session = session or env.get("AGENT_GATE_SESSION") or f"py-{uuid.uuid4().hex}"
        if not IN_A_HEADER.fullmatch(token):
            raise Unreachable("the agent token has a character that no token has, such as a line break")
        if not IN_A_HEADER.fullmatch(self.session):
            raise InvalidArgs("The session's name has a character that it cannot have; use plain letters")
        self._headers = {"Authorization": f"Bearer {token}", "Agent-Session": self.session}
        self._reconnect, self._connect_timeout = reconnect, connect_timeout
        # A session can outlive this client, and what it left is found by these ids: no other client starts here.
        self._ids = itertools.count(random.getrandbits(48))
        self._open: dict[int, Request] = {}
        self._link: Link | None = None
        self._mending: asyncio.Task[None] | None = None
        self._received: list[str] = []
        self._refused: GatewayError | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        self._link = await self._dial()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection. Calls that still wait go on at the gateway, which keeps their results."""
        self._closed = True
        self._flush_received()
        if self._mending is not None:
            self._mending.cancel()
            await asyncio.gather(self._mending, return_exceptions=True)
        if self._link is not None:
            await self._link.close()
        self._fail_all(Unreachable("the client was closed"))

    # What an agent does

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        run_timeout: float | None = None,
        idempotency_key: str | None = None,
        on_progress: Told | None = None,
        on_waiting: Told | None = None,
    ) -> Any:
        """Call a tool and return its data, however long a person takes to answer (or `timeout` seconds).

        `run_timeout` limits the tool's own run. `on_progress` hears the tool's progress, `on_waiting` that a
        person is asked. Raises the error of `agent_gate.errors` that the call ended in.
        """
        reply = await self.request(
            tool,
            arguments,
            timeout=timeout,
            run_timeout=run_timeout,
            idempotency_key=idempotency_key,
            on_progress=on_progress,
            on_waiting=on_waiting,
        )
        self._took(reply.call_id)
        return reply.data

    async def request(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        run_timeout: float | None = None,
        idempotency_key: str | None = None,
        on_progress: Told | None = None,
        on_waiting: Told | None = None,
    ) -> Reply:
        """As `call`, but the result stays kept at the gateway until `acknowledge([reply.call_id])`."""
        params: dict[str, Any] = {
            "tool": tool,
            "args": dict(arguments or {}),
            "idempotency_key": idempotency_key or uuid.uuid4().hex,
        }
        if run_timeout is not None:
            params["timeout"] = run_timeout
        if on_progress is not None or on_waiting is not None:
            params["progress"] = True
        ident = next(self._ids)
        text = request_text(ident, "tool_request", params)
        request = Request(ident, text, is_call=True, on_progress=on_progress, on_waiting=on_waiting)
        reply = await self._finish(request, timeout)
        assert isinstance(reply, Reply)
        return reply

    async def tools(
        self, names: Sequence[str] | None = None, *, timeout: float | None = None
    ) -> list[dict[str, Any]]:
        """The tools this agent may call, or those of them that are named."""
        params = {} if names is None else {"tools": list(names)}
        found: list[dict[str, Any]] = (await self.ask("list_tools", params, timeout=timeout))["tools"]
        return found

    async def pending(self, *, timeout: float | None = None) -> list[dict[str, Any]]:
        """Results that were kept for this agent and not acknowledged yet."""
        found: list[dict[str, Any]] = (await self.ask(PENDING, {}, timeout=timeout))["results"]
        return found

    async def acknowledge(self, call_ids: Sequence[str]) -> int:
        """Tell the gateway that these results arrived; how many of them it had kept."""
        return int((await self.ask("ack_results", {"request_ids": list(call_ids)}))["acknowledged"])

    async def cancel(self, call_id: str) -> bool:
        """Take back a call that waits, or ask one that runs to stop."""
        return bool((await self.ask("cancel", {"id": call_id}))["cancelled"])

    async def ask(self, method: str, params: Mapping[str, Any], *, timeout: float | None = None) -> Any:
        """Any other method of the gateway; its result as it is."""
        ident = next(self._ids)
        text = request_text(ident, method, params)
        request = Request(ident, text, is_call=False, on_progress=None, on_waiting=None)
        result = await self._finish(request, timeout)
        assert isinstance(result, bytes)
        return msgspec.json.decode(result)

    # Requests and replies

    async def _finish(self, request: Request, timeout: float | None) -> Reply | bytes:
        if self._refused is not None:
            raise self._refused
        if self._closed or (self._link is None and self._mending is None):
            raise Unreachable("the client is not connected")
        self._open[request.ident] = request
        self._send(request)
        try:
            async with asyncio.timeout(timeout):
                return await request.future
        except TimeoutError:
            message = (
                f"No answer within {timeout:g} s\nThe call goes on; its result is kept: agent-gate pending"
            )
            raise CallTimeout(message, details={"local": True}) from None
        finally:
            self._open.pop(request.ident, None)

    def _send(self, request: Request) -> None:
        if self._link is not None and not request.future.done():
            self._link.send(request.text)

    def _heard(self, data: bytes) -> None:
        try:
            message = decode_incoming(data)
        except msgspec.DecodeError:
            return
        if message.method:
            self._told(message)
            return
        request = self._open.get(message.id) if isinstance(message.id, int) else None
        if request is not None:
            self._answered(request, message)

    def _told(self, message: Incoming) -> None:
        request = self._open.get(message.params.get("id", 0))
        if request is None:
            return
        told = request.on_progress if message.method == "progress" else request.on_waiting
        if told is None:
            return
        try:
            told(message.params)
        except Exception:  # the boundary of foreign code: it must not cost the connection
            log.exception("A callback failed on a message about a call")

    def _answered(self, request: Request, message: Incoming) -> None:
        if message.error is None:
            result = bytes(message.result)
            request.end(reply_of(result) if request.is_call else result)
            return
        error = message.error.error()
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
        return await dial(self._place, self._headers, self._heard, self._lost, self._connect_timeout)

    def _lost(self, link: Link, why: str) -> None:
        if link is not self._link:
            return
        self._link = None
        if self._closed:
            return
        if self._reconnect:
            self._mending = asyncio.get_running_loop().create_task(self._mend())
        else:
            self._fail_all(Unreachable(why))

    async def _mend(self) -> None:
        """Dial until the gateway is back, waiting longer each time and never in step with other agents."""
        longest = FIRST_DELAY
        while self._link is None:
            await asyncio.sleep(random.uniform(0, longest))
            longest = min(longest * 2, LONGEST_DELAY)
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

    async def _resume(self, waiting: Sequence[Request]) -> None:
        """Take what was kept meanwhile; send the rest again under its key."""
        calls = {request.ident: request for request in waiting if request.is_call}
        if calls:
            for row in await self._kept():
                request = calls.get(row["client_id"]) if row.get("session") == self.session else None
                if request is not None:
                    request.end(kept_reply(row))
                    self._took(row["request_id"])
        for request in waiting:
            request.resent = True
            self._send(request)

    async def _kept(self) -> list[dict[str, Any]]:
        try:
            return await self.pending()
        except GatewayError:
            return []

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open" if self._link else "reconnecting"
        return f"<Client {self._place.shown} {state}>"
