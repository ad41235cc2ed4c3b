"""The deprecated HTTP+SSE transport of the first revision: one stream for everything the server says, POSTs for the rest."""

import math
import sys
from asyncio import Event as Signal
from asyncio import timeout
from time import monotonic
from urllib.parse import urljoin

from agent_gate.core.credentials import Header, Proof
from agent_gate.mcp.errors import INVALID_REQUEST, RpcError
from agent_gate.mcp.events import Event, read_events
from agent_gate.net.pool import BadReply, Lost, NotSent, Pool, StreamReply
from agent_gate.sources.access import Access
from agent_gate.sources.mcp.wire.frames import MAX_MESSAGE
from agent_gate.sources.mcp.wire.heads import ACCEPT
from agent_gate.sources.mcp.wire.http import SMALL_SECONDS
from agent_gate.sources.mcp.wire.mux import Mux
from agent_gate.sources.mcp.wire.problems import Broken, TurnedAway
from agent_gate.sources.mcp.wire.replies import EVENTS, MAX_ERROR, media_type, split_url


class SseLink(Mux):
    """One stream. Replies come on it, whatever request they answer, so it is a `Mux` like a child's output."""

    def __init__(self, pool: Pool, url: str, access: Access, caller: str = "") -> None:
        super().__init__(self.post)
        self.pool = pool
        self.target, self.path = split_url(url)
        self.access, self.caller = access, caller
        self.endpoint = b""
        self.ready = Signal()

    async def make_head(self) -> tuple[Header, ...]:
        """The headers of a request, with what proves it now."""
        return (*ACCEPT, *(await self.fetch_proof()).headers)

    async def fetch_proof(self) -> Proof:
        return self.access.at_hand(self.caller) or await self.access.fetch(self.caller)

    async def open_stream(self, proof: Proof, deadline: float) -> StreamReply:
        try:
            return await self.pool.stream(
                "GET",
                self.target,
                self.path,
                (*ACCEPT, *proof.headers),
                deadline=deadline,
                max_bytes=sys.maxsize,
                idempotent=True,
            )
        except (NotSent, Lost) as error:
            raise Broken(error.message, sent=False) from None

    async def start(self, deadline: float) -> None:
        """Open the stream and wait for the address that requests go to."""
        proof = await self.fetch_proof()
        reply = await self.open_stream(proof, deadline)
        if reply.status == 401:
            challenge = (reply.header(b"www-authenticate") or b"").decode("latin-1")
            await reply.aclose()
            fresh = await self.access.refused(self.caller, proof, challenge)
            if fresh is None:
                raise TurnedAway(401)
            reply = await self.open_stream(fresh, deadline)
        if reply.status != 200 or media_type(reply) != EVENTS:
            await reply.aclose()
            raise TurnedAway(reply.status)
        reply.deadline = math.inf
        self.tasks.start(self.hear(reply))
        try:
            async with timeout(deadline - monotonic()):
                await self.ready.wait()
        except BaseException:
            await self.close()
            raise
        if self.lost.done():
            raise Broken(self.lost.result(), sent=False)

    async def hear(self, reply: StreamReply) -> None:
        reason = "it ended its stream"
        try:
            async for event in read_events(reply, MAX_MESSAGE):
                self.take(event)
        except (Lost, BadReply, RpcError) as error:
            reason = error.message
        finally:
            await reply.aclose()
            self.fail(reason)
            self.ready.set()

    def take(self, event: Event) -> None:
        if event.kind == b"endpoint":
            self.endpoint = self.local_path(event.data)
            self.ready.set()
        elif event.kind == b"message" and event.data:
            self.feed(event.data)

    def local_path(self, data: bytes) -> bytes:
        """The path that requests go to; a server may not send them, with our credential, to another origin."""
        url = urljoin(self.target.origin + self.path.decode(), data.decode("ascii", errors="replace"))
        path = url.removeprefix(self.target.origin)
        if path == url or not path.startswith("/"):
            raise RpcError(INVALID_REQUEST, "it sends requests to another origin than its own")
        return path.encode()

    async def post(self, data: bytes) -> None:
        head = await self.make_head()
        try:
            reply = await self.pool.request(
                "POST",
                self.target,
                self.endpoint,
                head,
                data,
                deadline=monotonic() + SMALL_SECONDS,
                max_bytes=MAX_ERROR,
            )
        except NotSent as error:
            raise Broken(error.message, sent=False) from None
        except Lost as error:
            raise Broken(error.message, sent=True) from None
        if reply.status in (401, 403):
            raise TurnedAway(reply.status)
        if not 200 <= reply.status < 300:
            raise Broken(f"it answered with HTTP status {reply.status}", sent=reply.status >= 500)

    async def close(self) -> None:
        self.fail("it was closed")
        await self.stop()
