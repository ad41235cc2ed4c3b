"""Streamable HTTP, of the revisions with sessions (and a GET stream) and of those without (each POST for itself).

An answer is a JSON body or the last event of a stream. What comes before it on that stream belongs to the
same request, which is never sent twice for it.
"""

import asyncio
import logging
import math
import sys
from collections.abc import Awaitable, Coroutine, Mapping
from itertools import count
from time import monotonic
from typing import Any

from agent_gate.core.credentials import Proof
from agent_gate.core.tasks import KeptTasks
from agent_gate.core.tool import Json
from agent_gate.errors import DependencyUnavailable
from agent_gate.mcp import headers
from agent_gate.mcp.errors import RpcError, Unanswered
from agent_gate.mcp.events import EventParser, read_events
from agent_gate.mcp.messages import Message, notification, request
from agent_gate.mcp.names import CANCELLED, DISCOVER, INITIALIZE, INITIALIZED, LOG, PROGRESS
from agent_gate.mcp.revisions import Revision
from agent_gate.net.http import Header
from agent_gate.net.pool import (
    BadReply,
    Lost,
    NotSent,
    Pool,
    StreamReply,
    WholeReply,
)
from agent_gate.sources.access import Access
from agent_gate.sources.mcp.wire.frames import (
    MAX_MESSAGE,
    answer_in,
    messages_in,
    number_of,
    params_of,
    result_of,
    wants_reply,
)
from agent_gate.sources.mcp.wire.heads import SESSION, RequestHeads
from agent_gate.sources.mcp.wire.link import Notice, Renew, ignore, reply_to
from agent_gate.sources.mcp.wire.mux import FAULT, MAX_QUESTIONS, hashable
from agent_gate.sources.mcp.wire.order import Order, Talk
from agent_gate.sources.mcp.wire.problems import Broken, Moved, StaleSession
from agent_gate.sources.mcp.wire.replies import (
    EVENTS,
    MAX_ERROR,
    StreamPosition,
    drain,
    media_type,
    read_refusal,
    read_whole,
    split_url,
)

log = logging.getLogger("agent_gate.sources.mcp")

LAST_EVENT = headers.field(headers.LAST_EVENT)
SMALL_REPLY = 64 * 1024
SMALL_SECONDS = 10.0
LEAVE_SECONDS = 2.0
LONGEST_RETRY = 60.0
HELD_SECONDS = 20.0
MAX_RESUMES = 5
OPENING = (DISCOVER, INITIALIZE)
"""The requests with which a server is met: only these may be sent to where it redirects."""


def wants_sign_in(reply: WholeReply | StreamReply) -> bool:
    """Whether the server does not take the credential, or wants one that may do more."""
    if reply.status == 403:
        return b"insufficient_scope" in (reply.header(b"www-authenticate") or b"")
    return reply.status == 401


class HttpLink:
    """Requests to one URL over the shared pool. A session is a header value, not a connection.

    `begun` is the session that the last `initialize` began; it is used once `revision` says that the handshake is done.
    `proof` is what the last request proved itself with, for `caller`.
    """

    def __init__(
        self, pool: Pool, url: str, access: Access, limit: int = MAX_MESSAGE, caller: str = ""
    ) -> None:
        self.pool = pool
        self.access, self.caller, self.proof = access, caller, Proof()
        self.limit = limit
        self.target, path = split_url(url)
        self.heads = RequestHeads(self.target, path)
        self.notice: Notice = ignore
        self.renew: Renew | None = None
        self.loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[str] = self.loop.create_future()
        self.begun = b""
        self.redirected = False
        self.running: dict[object, Order] = {}
        self.numbers = count(1)
        self.tasks = KeptTasks(log, FAULT)
        self.hearing: asyncio.Task[None] | None = None

    @property
    def in_flight(self) -> int:
        return len(self.running)

    @property
    def revision(self) -> Revision | None:
        return self.heads.revision

    @revision.setter
    def revision(self, revision: Revision | None) -> None:
        self.heads.speak(revision, self.begun if revision is not None and revision.has_sessions else b"")

    def present(self, proof: Proof) -> None:
        """Prove every request with this, until there is another."""
        self.proof = proof
        self.heads.present(proof)

    async def prove(self) -> None:
        proof = self.access.at_hand(self.caller) or await self.access.fetch(self.caller)
        if proof is not self.proof:
            self.present(proof)

    @property
    def parks(self) -> bool:
        return self.hearing is None or self.hearing.done()

    async def request(self, order: Order) -> bytes:
        number, used = next(self.numbers), self.heads.session_id
        body = request(number, order.method, order.numbered(number))
        self.running[number] = order
        reply: WholeReply | StreamReply | None = None
        following: Coroutine[Any, Any, bytes] | None = None
        try:
            reply = await self.post(body, order)
            if type(reply) is WholeReply and reply.status == 200 and order.method != INITIALIZE:
                return result_of(answer_in(reply.body, number))
            reply = await self.receive(reply, used, body, order)
            if not isinstance(reply, StreamReply) or media_type(reply) != EVENTS:
                return result_of(answer_in(await read_whole(reply, self.limit), number, reply.status))
            following = self.follow_to_end(reply, order, number)
        except (NotSent, Lost, BadReply) as error:
            raise self.judge_failure(error, order, number) from None
        except asyncio.CancelledError:
            self.give_up(order, number)
            if isinstance(reply, StreamReply):
                await reply.aclose()
            raise
        finally:
            if following is None:
                del self.running[number]
                if order.questions:
                    order.end()
        return await (following if order.park is None else order.park(order, following))

    async def follow_to_end(self, reply: StreamReply, order: Order, number: int) -> bytes:
        """The result at the end of a request's own stream."""
        reply.deadline = order.until
        try:
            return result_of(await self.read_stream(reply, order, number))
        except (NotSent, Lost, BadReply) as error:
            raise self.judge_failure(error, order, number) from None
        except asyncio.CancelledError:
            self.give_up(order, number)
            await reply.aclose()
            raise
        finally:
            del self.running[number]
            if order.questions:
                order.end()

    def judge_failure(self, error: NotSent | Lost | BadReply, order: Order, number: int) -> Exception:
        """What a failed exchange says of the request; the server is told where nobody waits any more."""
        if isinstance(error, NotSent):
            return Broken(error.message, sent=False)
        if isinstance(error, BadReply):
            return Unanswered(error.message)
        if error.timed_out:
            self.give_up(order, number)
            return TimeoutError()
        return Broken(error.message, sent=True)

    def give_up(self, order: Order, number: int) -> None:
        """Tell the server that nobody waits any more."""
        by_closing = self.revision is not None and self.revision.cancels_by_closing
        if not by_closing and order.method != INITIALIZE:
            gone = {"requestId": number, "reason": "not awaited"}
            self.tasks.start(self.notify(CANCELLED, gone))

    async def receive(
        self, reply: WholeReply | StreamReply, used: bytes, body: bytes, order: Order
    ) -> WholeReply | StreamReply:
        """The reply that carries the answer, where the first is not simply a short body with status 200."""
        if reply.status != 200:
            reply = await self.accept(reply, used, body, order)
        if order.method == INITIALIZE:
            self.begun = reply.header(SESSION) or b""
        return reply

    def post(self, body: bytes, order: Order) -> Awaitable[WholeReply | StreamReply]:
        proof = self.access.at_hand(self.caller)
        if proof is None:
            return self.post_later(body, order)
        if proof is not self.proof:
            self.present(proof)
        return self.send(body, order)

    async def post_later(self, body: bytes, order: Order) -> WholeReply | StreamReply:
        self.present(await self.access.fetch(self.caller))
        return await self.send(body, order)

    def send(self, body: bytes, order: Order) -> Awaitable[WholeReply | StreamReply]:
        idempotent = order.idempotent or order.talk is None
        head = self.heads.of(order)
        if self.proof.signs is not None:
            head += b"%b: %b\r\n" % self.signed("POST")
        until = order.deadline + order.patience
        return self.pool.send(self.target, head, body, until, SMALL_REPLY, idempotent=idempotent)

    def signed(self, method: str) -> Header:
        """The header that proves that this request comes from the token's owner."""
        assert self.proof.signs is not None
        path = (self.target.base + self.heads.path).decode("ascii")
        return self.proof.signs.header(method, f"{self.target.origin}{path}")

    def signed_head(self, method: str) -> tuple[Header, ...]:
        return self.heads.head if self.proof.signs is None else (*self.heads.head, self.signed(method))

    async def post_again(
        self, reply: WholeReply | StreamReply, body: bytes, order: Order
    ) -> WholeReply | StreamReply | None:
        """The reply to the same request with another proof, once, where there is one after a refusal."""
        signs, nonce = self.proof.signs, (reply.header(b"dpop-nonce") or b"").decode("latin-1")
        if signs is not None and nonce and nonce != signs.nonce:
            signs.nonce = nonce
            if isinstance(reply, StreamReply):
                await reply.aclose()
            return await self.accept_renewed(await self.send(body, order))
        challenge = (reply.header(b"www-authenticate") or b"").decode("latin-1")
        fresh = await self.access.refused(self.caller, self.proof, challenge)
        if fresh is None:
            return None
        if isinstance(reply, StreamReply):
            await reply.aclose()
        self.present(fresh)
        return await self.accept_renewed(await self.send(body, order))

    @property
    def resumes(self) -> bool:
        return self.revision is None or self.revision.resumes_streams

    async def accept(
        self, reply: WholeReply | StreamReply, used: bytes, body: bytes, order: Order
    ) -> WholeReply | StreamReply:
        """A reply that was not a plain 200: another success, a slash that was missing, or the error it means."""
        if 200 < reply.status < 300:
            return reply
        if reply.status in (307, 308) and order.method in OPENING and (path := self.slashed(reply)):
            if isinstance(reply, StreamReply):
                await reply.aclose()
            self.redirected = True
            self.heads.move(path)
            return await self.accept_renewed(await self.post(body, order))
        if wants_sign_in(reply) and (again := await self.post_again(reply, body, order)) is not None:
            return again
        refusal = await self.read_refusal(reply, b"" if order.method == INITIALIZE else used)
        if isinstance(refusal, Moved) and order.method not in OPENING:
            self.fail(refusal.message)
        if not isinstance(refusal, StaleSession) or self.renew is None:
            raise refusal
        await self.renew(refusal, order.until)
        return await self.accept_renewed(await self.post(body, order))

    async def accept_renewed(self, reply: WholeReply | StreamReply) -> WholeReply | StreamReply:
        """A reply in a session that was just renewed."""
        if 200 <= reply.status < 300:
            return reply
        refusal = await self.read_refusal(reply, self.heads.session_id)
        if isinstance(refusal, StaleSession):
            raise Broken("it forgets its sessions at once", sent=False)
        raise refusal

    def slashed(self, reply: WholeReply | StreamReply) -> bytes | None:
        """Our own path with a slash more or less at its end, where the server sends us there for the first time."""
        path, mark, query = self.heads.path.partition(b"?")
        other = path.removesuffix(b"/") if path.endswith(b"/") else path + b"/"
        wanted = other + mark + query
        here = self.target.origin.encode()
        location = reply.header(b"location")
        return wanted if not self.redirected and location in (wanted, here + wanted) else None

    async def read_refusal(self, reply: WholeReply | StreamReply, used: bytes) -> Exception:
        return await read_refusal(reply, used, lambda: self.heads.session_id == used)

    async def read_stream(self, reply: StreamReply, order: Order, number: int) -> Message:
        """Follow one request's stream to its answer, over reconnections where the server offers them."""
        place = StreamPosition()
        while place.quiet < MAX_RESUMES:
            place.quiet += 1
            try:
                answer = await self.follow(reply, order, number, place)
            except Lost as error:
                if error.timed_out or not place.last or not self.resumes:
                    raise
                answer = None
            if answer is not None:
                return answer
            if not place.last or not self.resumes:
                break
            await asyncio.sleep(min(place.delay, max(order.until - monotonic(), 0)))
            reply = await self.resume(place.last, order.until)
        raise Broken("its stream ended before the answer", sent=True)

    async def follow(
        self, reply: StreamReply, order: Order, number: int, place: "StreamPosition"
    ) -> Message | None:
        """Read one stream until the answer; None where it ends before."""
        parser = EventParser(self.limit)
        try:
            async for chunk in reply:
                for event in parser.feed(chunk):
                    place.note(event)
                    for message in messages_in(event.data):
                        if not message.method and number_of(message) == number:
                            self.let_end(reply)
                            return message
                        await self.hear_during(message, order)
        except BaseException:
            await reply.aclose()
            raise
        return None

    def let_end(self, reply: StreamReply) -> None:
        """Have the rest of an answered stream read, unless it is over, when it has no deadline any more."""
        if reply.deadline != math.inf:
            self.tasks.start(drain(reply))

    async def resume(self, last: bytes, deadline: float) -> StreamReply:
        try:
            reply = await self.get(last, deadline)
        except NotSent as error:
            raise Broken(error.message, sent=True) from None
        if reply.status != 200:
            await reply.aclose()
            raise Broken(f"its stream could not be resumed (HTTP status {reply.status})", sent=True)
        return reply

    async def get(self, last: bytes, deadline: float) -> StreamReply:
        await self.prove()
        resumed = ((LAST_EVENT, last),) if last else ()
        return await self.pool.stream(
            "GET",
            self.target,
            self.heads.path,
            (*self.signed_head("GET"), *resumed),
            deadline=deadline,
            max_bytes=sys.maxsize,
            idempotent=True,
        )

    async def hear_during(self, message: Message, order: Order) -> None:
        """Something that came on a request's own stream, before its answer.

        Of questions that come faster than they are answered, the surplus is refused before more is read.
        """
        if wants_reply(message) and len(order.questions) < MAX_QUESTIONS:
            order.keep_question(self.tasks.start(self.respond(message, order.talk)))
        elif wants_reply(message):
            await self.respond(message, None)
        elif message.method == PROGRESS and order.talk is not None:
            if order.progress is not None:
                await order.talk.notify(message.method, order.told(params_of(message)))
        elif message.method and order.talk is not None:
            await order.talk.notify(message.method, params_of(message))
        elif message.method:
            self.notice(message.method, params_of(message))

    async def respond(self, message: Message, talk: Talk | None) -> None:
        await self.tell(await reply_to(message, talk))

    async def notify(self, method: str, params: Mapping[str, Json] | None = None) -> None:
        await self.tell(notification(method, params))
        if method == INITIALIZED:
            if self.hearing is not None:
                self.hearing.cancel()
            self.hearing = self.tasks.start(self.hear())

    async def tell(self, body: bytes) -> None:
        """Send something that has no answer."""
        try:
            await self.prove()
            await self.pool.request(
                "POST",
                self.target,
                self.heads.path,
                self.signed_head("POST"),
                body,
                deadline=monotonic() + SMALL_SECONDS,
                max_bytes=MAX_ERROR,
            )
        except (NotSent, Lost, BadReply, DependencyUnavailable) as error:
            log.debug("a message was not delivered: %s", error)

    async def hear(self) -> None:
        """Hold the stream on which a handshake server speaks outside of requests; many have none.

        Proxies end streams on which nothing is said for a while, so it is opened again; more and more seldom where
        it ends at once.
        """
        place = StreamPosition()
        while True:
            began = monotonic()
            try:
                reply = await self.get(place.last, math.inf)
                if reply.status != 200 or media_type(reply) != EVENTS:
                    await reply.aclose()
                    return
                await self.hear_one(reply, place)
            except (Lost, BadReply, RpcError) as error:
                log.debug("the stream of notices ended: %s", error)
            except NotSent as error:
                self.fail(error.message)
                return
            place.quiet = 0 if monotonic() - began > HELD_SECONDS else place.quiet
            await asyncio.sleep(min(place.delay * 2 ** min(place.quiet, 16), LONGEST_RETRY))
            place.quiet += 1

    async def hear_one(self, reply: StreamReply, place: StreamPosition) -> None:
        """Read one such stream to its end."""
        try:
            async for event in read_events(reply, MAX_MESSAGE):
                place.note(event)
                for message in messages_in(event.data):
                    await self.hear_beside(message)
        finally:
            await reply.aclose()

    async def hear_beside(self, message: Message) -> None:
        """Something that came outside of any request's stream; it may still be about one."""
        if not message.method:
            return
        params = params_of(message)
        order = self.running.get(hashable(params.get("progressToken"))) or self.only_order()
        asked = wants_reply(message)
        if asked and order is not None:
            await self.hear_during(message, order)
        elif asked:
            await self.respond(message, None)
        elif message.method in (PROGRESS, LOG):
            if order is not None:
                await self.hear_during(message, order)
        else:
            self.notice(message.method, params)

    def only_order(self) -> Order | None:
        found = [order for order in self.running.values() if order.talk is not None]
        return found[0] if len(found) == 1 else None

    def fail(self, reason: str) -> None:
        if not self.lost.done():
            self.lost.set_result(reason)

    async def close(self) -> None:
        self.fail("it was closed")
        await self.tasks.cancel()
        if self.heads.session_id:
            await self.leave()

    async def leave(self) -> None:
        """End the session on the server's side; many do not offer that."""
        deadline = monotonic() + LEAVE_SECONDS
        try:
            await self.pool.request(
                "DELETE",
                self.target,
                self.heads.path,
                self.signed_head("DELETE"),
                deadline=deadline,
                max_bytes=MAX_ERROR,
            )
        except (NotSent, Lost, BadReply) as error:
            log.debug("the session was not ended: %s", error)
