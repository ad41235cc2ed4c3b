"""`agent-gate bridge`: MCP over stdin and stdout, forwarded to a gateway over HTTP and back, message by message.

Messages pass as the bytes they came in. What the bridge adds is what a pipe does not have and HTTP needs: headers, the
session of the handshake revisions, and a second try after the gateway was gone, with a key by which it runs once.
"""

import asyncio
import json
import random
import sys
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from agent_gate.client.exchange import Distrusted, Http, HttpReply, NotReached, ReplyBroken
from agent_gate.client.messages import (
    HostMessage,
    ToolMirrors,
    error,
    mirrors_of,
    read,
    repeated,
    routing,
    with_key,
)
from agent_gate.client.pipes import Output, lines
from agent_gate.client.replies import answers, looks_like_rpc, reason, refused, result_in
from agent_gate.mcp.errors import METHOD_NOT_FOUND, PARSE_ERROR
from agent_gate.mcp.events import EventParser
from agent_gate.mcp.headers import ACCEPT, ANNOTATION, EVENT_STREAM, JSON, LAST_EVENT, SESSION, VERSION
from agent_gate.mcp.names import CALL_TOOL, CANCELLED, INITIALIZE, INITIALIZED, LIST_TOOLS
from agent_gate.mcp.revisions import BY_NAME, NEWEST

UNREACHABLE = -32000
UNKNOWN_METHOD = str(METHOD_NOT_FOUND).encode()
GREETED = json.dumps({"jsonrpc": "2.0", "method": INITIALIZED}).encode()
LARGEST_EVENT = 512 * 1024 * 1024
LISTS = ("tools", "prompts", "resources")
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
LINGER_SECONDS = 1.5
READY_SECONDS = 15.0


class Gone(Exception):
    """The gateway has forgotten our session."""


class Unwelcome(Exception):
    """The gateway refuses to open a session again; trying the same once more does not help."""


class Running(NamedTuple):
    """A request of the host's that has no answer yet; `closes` says that closing its connection cancels it."""

    task: "asyncio.Task[None]"
    closes: bool


def closes(message: HostMessage) -> bool:
    """Whether a request is cancelled by closing its connection."""
    return message.revision is not None and BY_NAME.get(message.revision, NEWEST).cancels_by_closing


class Heard:
    """The messages out of a stream's pieces; `last` is the id to go on from."""

    def __init__(self) -> None:
        self.last = ""
        self._parser = EventParser(LARGEST_EVENT)

    def feed(self, piece: bytes) -> list[bytes]:
        """The message of every event that `piece` completes."""
        found = []
        for event in self._parser.feed(piece):
            if event.id is not None:
                self.last = event.id.decode("latin-1")
            if event.data:
                found.append(event.data)
        return found


class StdioBridge:
    """One host on one side, one gateway on the other. `patience` is how long a lost gateway is waited for."""

    def __init__(
        self, http: Http, token: str | None, write: Callable[[bytes], None], patience: float = 300.0
    ) -> None:
        self._http = http
        self._write = write
        self._patience = patience
        self._common = {"Authorization": f"Bearer {token}"} if token else {}
        self._session: str | None = None
        self._revision: str | None = None
        self._initialize: HostMessage | None = None
        self._capabilities: Mapping[str, Any] = {}
        self._renewing = asyncio.Lock()
        self._mirrors: ToolMirrors = {}
        self._running: dict[str, Running] = {}
        self._cancelled: set[str] = set()
        self._others: asyncio.Queue[HostMessage] = asyncio.Queue()
        self._forwarding: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None

    async def run(self, source: "asyncio.Queue[bytes | None]") -> None:
        """Forward until the host closes its end."""
        self._forwarding = asyncio.create_task(self._forward_others())
        while (line := await source.get()) is not None:
            if line.strip():
                await self._take(line)
        await self._leave()

    async def _take(self, line: bytes) -> None:
        try:
            message = read(line)
        except (ValueError, RecursionError):
            self._write(error(None, PARSE_ERROR, "The bridge was given a line that is no JSON-RPC message"))
            return
        if message.is_request:
            key = json.dumps(message.id)
            task = asyncio.create_task(self._answer(message))
            self._running[key] = Running(task, closes(message))
            task.add_done_callback(lambda _: self._running.pop(key, None))
        elif message.method == INITIALIZED:
            await self._pass_on(message)
            if self._listening is not None:
                # A second greeting: two listeners would take the stream from each other.
                self._listening.cancel()
            self._listening = asyncio.create_task(self._listen())
        elif message.method != CANCELLED or self._cancel(message):
            self._others.put_nowait(message)

    def _cancel(self, message: HostMessage) -> bool:
        """Note a cancellation; True where the gateway must be told by a message."""
        key = json.dumps(message.params.get("requestId"))
        running = self._running.get(key)
        if running is None:
            return False
        self._cancelled.add(key)
        if running.closes:
            running.task.cancel()
        return not running.closes

    async def _forward_others(self) -> None:
        """Notifications and answers of the host, in their order."""
        while True:
            await self._pass_on(await self._others.get())

    async def _pass_on(self, message: HostMessage) -> None:
        with suppress(NotReached, ReplyBroken, Distrusted, Unwelcome):
            answer = await self._deliver(message, message.raw)
            await self._finish(answer)

    async def _finish(self, answer: HttpReply) -> bytes:
        try:
            return await answer.read()
        finally:
            answer.close()

    async def _answer(self, message: HostMessage) -> None:
        """Forward a request until its answer has gone to the host, whatever happens to the gateway meanwhile."""
        raw = with_key(message, uuid.uuid4().hex) if message.method == CALL_TOOL else message.raw
        if message.method == INITIALIZE:
            self._initialize, self._session, self._revision = message, None, None
        try:
            await self._send_until_answered(message, raw)
        except (NotReached, ReplyBroken, Distrusted, Unwelcome) as failure:
            self._write(error(message.id, UNREACHABLE, f"The gateway did not answer: {failure}"))
        finally:
            self._cancelled.discard(json.dumps(message.id))

    async def _send_until_answered(self, message: HostMessage, raw: bytes) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        give_up, pause = began + self._patience, FIRST_PAUSE
        while not await self._attempt(message, raw):
            if json.dumps(message.id) in self._cancelled:
                return
            if loop.time() - began > LONGEST_PAUSE:
                give_up, pause = loop.time() + self._patience, FIRST_PAUSE
            elif loop.time() > give_up:
                raise ReplyBroken("its reply broke off again and again")
            pause = await self._rest(pause)
            began = loop.time()

    async def _attempt(self, message: HostMessage, raw: bytes) -> bool:
        """Send it once; False where the reply broke off and the request has to be sent again."""
        answer = await self._deliver(message, raw)
        try:
            if answer.kind == EVENT_STREAM:
                return await self._relay(answer, message)
            body = await answer.read()
        except ReplyBroken:
            return False
        finally:
            answer.close()
        if answer.status in (502, 503, 504):
            return False
        self._learn(message, answer, body)
        if json.dumps(message.id) not in self._cancelled:
            self._write(body if looks_like_rpc(body) else refused(message, answer.status, body))
        return True

    async def _deliver(self, message: HostMessage, raw: bytes) -> HttpReply:
        """POST it, waiting for a gateway that is away and renewing a session that it has forgotten."""
        loop = asyncio.get_running_loop()
        give_up, pause = loop.time() + self._patience, FIRST_PAUSE
        renewed = False
        while True:
            session = self._session
            try:
                answer = await self._http.send("POST", self._headers(message), raw)
                if not await self._is_forgotten(answer, message):
                    return answer
                if renewed:
                    raise ReplyBroken("it forgets every session at once")
                await self._renew(session)
                renewed = True
            except (NotReached, ReplyBroken):
                renewed = False
                if loop.time() > give_up or json.dumps(message.id) in self._cancelled:
                    raise
                pause = await self._rest(pause)

    async def _is_forgotten(self, answer: HttpReply, message: HostMessage) -> bool:
        """Whether the gateway does not know the session; a method that it does not know is also a 404."""
        if answer.status != 404 or self._session is None or message.revision is not None:
            return False
        if UNKNOWN_METHOD in await answer.read():
            return False
        answer.close()
        return True

    async def _rest(self, pause: float) -> float:
        """Wait a little longer than last time, then for a gateway that is up but not ready yet."""
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))
        with suppress(NotReached, ReplyBroken, TimeoutError):
            async with asyncio.timeout(READY_SECONDS):
                await self._wait_until_ready()
        return min(pause * 2, LONGEST_PAUSE)

    async def _wait_until_ready(self) -> None:
        """Return once its sources are connected: until then a tool may seem unknown."""
        while True:
            answer = await self._http.send("GET", self._common, path=self._http.address.ready)
            await self._finish(answer)
            if answer.status != 503:
                return
            await asyncio.sleep(FIRST_PAUSE)

    async def _relay(self, answer: HttpReply, message: HostMessage) -> bool:
        """Pass a stream's messages on; True once the request's own answer was among them."""
        events, found = Heard(), False
        wanted = json.dumps(message.id)
        with suppress(ReplyBroken):
            async for piece in answer.read_pieces():
                for data in events.feed(piece):
                    answered = answers(data, wanted)
                    found = found or answered
                    self._learn(message, answer, data)
                    if not (answered and wanted in self._cancelled):
                        self._write(data)
        if not found and events.last and self._session is not None:
            found = await self._resume(message, events)
        return found

    async def _resume(self, message: HostMessage, events: Heard) -> bool:
        """Go on where a stream of the handshake revisions broke off."""
        headers = {**self._headers(message), LAST_EVENT: events.last}
        try:
            answer = await self._http.send("GET", headers)
            try:
                if answer.status != 200:
                    return False
                return await self._relay(answer, message)
            finally:
                answer.close()
        except (NotReached, ReplyBroken):
            return False

    def _base(self, session: str | None = None, revision: str | None = None) -> dict[str, str]:
        headers = {**self._common, "Accept": ACCEPT, "Content-Type": JSON}
        if session is not None:
            headers[SESSION] = session
        if revision is not None:
            headers[VERSION] = revision
        return headers

    def _headers(self, message: HostMessage | None) -> dict[str, str]:
        if message is not None and message.revision is not None:
            return {**self._base(), **routing(message), **repeated(message, self._mirrors)}
        return self._base(self._session, self._revision)

    def _learn(self, message: HostMessage, answer: HttpReply, body: bytes) -> None:
        """Keep what later requests need: the session, and which arguments are repeated in headers."""
        if message.method == INITIALIZE and b'"result"' in body:
            result = result_in(body)
            self._session = answer.headers.get(SESSION.lower())
            self._revision = result.get("protocolVersion")
            self._capabilities = result.get("capabilities", {})
        elif message.method == LIST_TOOLS and ANNOTATION.encode() in body:
            self._mirrors |= mirrors_of(result_in(body).get("tools"))

    async def _renew(self, old: str | None) -> None:
        """Open a session again with the host's own greeting, once for everyone who finds the old one gone."""
        async with self._renewing:
            if self._session != old or self._initialize is None:
                return
            answer = await self._http.send("POST", self._base(), self._initialize.raw)
            greeting = await self._read_greeting(answer)
            session, revision = answer.headers.get(SESSION.lower()), greeting.get("protocolVersion")
            await self._finish(await self._http.send("POST", self._base(session, revision), GREETED))
            self._session, self._revision = session, revision
        self._announce_lists()

    async def _read_greeting(self, answer: HttpReply) -> Mapping[str, Any]:
        """What the gateway says to our own greeting; something before it may answer in its place."""
        body = await self._read_result(answer)
        if 400 <= answer.status < 500 and answer.status != 429:
            raise Unwelcome(f"it did not open the session again: {reason(answer.status, body)}")
        try:
            greeting = json.loads(body)["result"]
        except (ValueError, KeyError, TypeError):
            greeting = None
        if not isinstance(greeting, dict):
            raise ReplyBroken(f"it did not open the session again: {reason(answer.status, body)}")
        return greeting

    async def _read_result(self, answer: HttpReply) -> bytes:
        """The answer to our own greeting, wherever it stands."""
        try:
            if answer.kind != EVENT_STREAM:
                return await answer.read()
            events = Heard()
            async for piece in answer.read_pieces():
                for data in events.feed(piece):
                    if b'"result"' in data:
                        return data
            raise ReplyBroken("the session could not be opened again")
        finally:
            answer.close()

    def _announce_lists(self) -> None:
        """The catalog may have changed while the gateway was away: let the host list it again."""
        for name in LISTS:
            offered = self._capabilities.get(name)
            if isinstance(offered, dict) and offered.get("listChanged"):
                method = f"notifications/{name}/list_changed"
                self._write(json.dumps({"jsonrpc": "2.0", "method": method}).encode())

    async def _listen(self) -> None:
        """The stream on which the gateway speaks by itself, opened again whenever it ends."""
        with suppress(Distrusted):  # the host hears of it with its next request
            await self._keep_listening()

    async def _keep_listening(self) -> None:
        events, pause = Heard(), FIRST_PAUSE
        while self._session is not None:
            session = self._session
            try:
                listening = await self._hear(events)
                if not listening:
                    return
                pause = FIRST_PAUSE
            except Gone:
                with suppress(NotReached, ReplyBroken, Unwelcome):
                    await self._renew(session)
                    continue
            except (NotReached, ReplyBroken):
                pass
            pause = await self._rest(pause)

    async def _hear(self, events: Heard) -> bool:
        """Read that stream to its end; False where the gateway offers none."""
        headers = {**self._headers(None), "Accept": EVENT_STREAM}
        if events.last:
            headers[LAST_EVENT] = events.last
        answer = await self._http.send("GET", headers)
        try:
            if answer.status == 404:
                events.last = ""
                raise Gone
            if answer.status != 200:
                return answer.status >= 500
            async for piece in answer.read_pieces():
                for data in events.feed(piece):
                    self._write(data)
        finally:
            answer.close()
        return True

    async def _leave(self) -> None:
        """The host is gone: let what runs end shortly, then say goodbye."""
        running = [one.task for one in self._running.values()]
        if running:
            await asyncio.wait(running, timeout=LINGER_SECONDS)
        for task in [*running, self._forwarding, self._listening]:
            if task is not None:
                task.cancel()
        if self._session is not None:
            with suppress(NotReached, ReplyBroken, Distrusted, TimeoutError):
                async with asyncio.timeout(0.5):
                    await self._finish(await self._http.send("DELETE", self._headers(None)))
        self._http.close()


async def bridge(http: Http, token: str | None, patience: float) -> None:
    """Forward between this process's stdin and stdout and the gateway until stdin ends."""
    output = Output(sys.stdout.buffer)
    try:
        await StdioBridge(http, token, output.write, patience).run(
            lines(sys.stdin.buffer, asyncio.get_running_loop())
        )
    finally:
        output.close()
