"""The outbound pool: bytes as given, reuse, bounds, and the truth about what was delivered."""

import asyncio
import gc
import math
import socket
import time
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.net.rawhttp import Script, Upstream, serving
from tests.waiting import PATIENCE, until

from agent_gate.errors import ConfigError
from agent_gate.net.exchange import Wire
from agent_gate.net.http import Request, Response
from agent_gate.net.limits import Limits
from agent_gate.net.pool import (
    BadReply,
    Lost,
    NotSent,
    Pool,
    Sending,
    StreamReply,
    Target,
    TooLarge,
    WholeReply,
    check_headers,
    encode_request,
)

LARGE = 4 << 20
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@asynccontextmanager
async def pooled(**options: Any) -> AsyncIterator[Pool]:
    pool = Pool(**options)
    try:
        yield pool
    finally:
        await pool.aclose()


@asynccontextmanager
async def scripted(
    script: Script | None = None, **options: Any
) -> AsyncIterator[tuple[Upstream, Pool, Target]]:
    """An upstream that follows `script`, or answers every request with OK."""

    async def polite(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await upstream.read_request(reader)
            writer.write(OK)

    upstream = Upstream(script or polite)
    async with upstream.listening() as port, pooled(**options) as pool:
        yield upstream, pool, Target.parse(f"http://127.0.0.1:{port}")


def replying(data: bytes, *, close: bool = False) -> Script:
    """A script that answers every request with these bytes."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(data)
            await writer.drain()
            if close:
                return

    return script


async def call(
    pool: Pool, target: Target, method: str = "GET", path: bytes = b"/", **options: Any
) -> WholeReply:
    options = {"deadline": time.monotonic() + 5, "max_bytes": 1_000_000, **options}
    return await pool.request(method, target, path, **options)


async def test_the_path_headers_and_body_are_sent_byte_for_byte() -> None:
    async with scripted() as (upstream, pool, target):
        target = Target.parse(f"{target.origin}/base/")
        path = b"/a/../b/%2e%2e/%41//c;d?x=%20&y=[]"
        await call(pool, target, "POST", path, headers=[(b"X-Api-Key", b"k \xc3\xa9")], body=b"{}")
        sent = upstream.requests[0]
    assert sent.startswith(b"POST /base/a/../b/%2e%2e/%41//c;d?x=%20&y=[] HTTP/1.1\r\nhost: 127.0.0.1:")
    assert b"\r\nX-Api-Key: k \xc3\xa9\r\n" in sent
    assert b"\r\naccept-encoding: identity\r\n" in sent
    assert sent.endswith(b"content-length: 2\r\n\r\n{}")


@pytest.mark.parametrize(
    "path", [b"/a b", b"/a\r\nX: 1", b"/a\n", b"/\xff", b"/a#b", b"/\x00", b"a", b"?x", b"/\x7f"]
)
def test_a_path_that_could_be_read_as_more_is_refused(path: bytes) -> None:
    with pytest.raises(ValueError, match="printable"):
        encode_request("GET", Target.parse("http://a"), path, (), None)


@given(name=st.binary(max_size=20), value=st.binary(max_size=40))
def test_no_header_can_add_a_line(name: bytes, value: bytes) -> None:
    try:
        data = encode_request("GET", Target.parse("http://a"), b"/", [(name, value)], None)
    except ValueError:
        return
    assert data.count(b"\n") == data.count(b"\r") == 5


@pytest.mark.parametrize(
    "header", [(b"a b", b""), (b"Host", b"x"), (b"x", b"a\nb"), (b"", b""), (b"x:", b"1")]
)
def test_headers_from_a_file_are_checked_when_read(header: tuple[bytes, bytes]) -> None:
    check_headers([(b"X-Key", b"value \xc3\xa9")])
    with pytest.raises(ConfigError):
        check_headers([header])


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a", "//a", "http://", "http://a b", "http://u:p@a", "http://a/?q", "http://a/#f", "http://a:x",
        "http://a/ä", "http://a\\b", "http://[zz]", "http://①.com", "a",
    ],
)  # fmt: skip
def test_a_target_that_is_not_plain_is_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        Target.parse(url)


def test_a_target_knows_its_default_port_and_its_brackets() -> None:
    assert Target.parse("https://Example.com").origin == "https://example.com"
    six = Target.parse("http://[::1]:8080/x/")
    assert (six.host, six.port, six.base, six.origin) == ("::1", 8080, b"/x", "http://[::1]:8080")


async def test_connections_are_reused_and_closed_when_idle() -> None:
    async with scripted(idle_seconds=0.1) as (upstream, pool, target):
        for _ in range(5):
            assert (await call(pool, target)).body == b"ok"
        await asyncio.gather(*(call(pool, target) for _ in range(3)))
        assert upstream.connections == 3
        await until(lambda: not pool._wires)
        assert (await call(pool, target)).body == b"ok"
        assert upstream.connections == 4


async def test_an_idle_connection_is_not_trusted_with_a_request_that_must_not_repeat() -> None:
    async with scripted(trust_seconds=-1) as (upstream, pool, target):
        await call(pool, target)
        await call(pool, target, "POST", body=b"{}")
        assert upstream.connections == 2
        await call(pool, target, idempotent=True)
        assert upstream.connections == 2


async def test_connections_that_are_not_trusted_any_more_make_room_for_fresh_ones() -> None:
    async with scripted(max_idle=3) as (upstream, pool, target):
        await asyncio.gather(*(call(pool, target) for _ in range(3)))
        [idle] = pool._idle.values()
        for wire in idle:
            wire.idle_since -= pool.trust_seconds + 1
        for _ in range(4):
            await call(pool, target, "POST", body=b"{}")
        assert upstream.connections == 4


@pytest.mark.parametrize("idempotent", [True, False])
async def test_a_reused_connection_closed_before_the_reply_is_retried_only_if_that_is_safe(
    idempotent: bool,
) -> None:
    upstream: Upstream

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await upstream.read_request(reader)
        writer.write(OK)
        if upstream.connections == 1:
            await upstream.read_request(reader)

    async with scripted(script) as (upstream, pool, target):
        await call(pool, target)
        if idempotent:
            assert (await call(pool, target, idempotent=True)).body == b"ok"
            assert upstream.connections == 2
        else:
            with pytest.raises(Lost):
                await call(pool, target)
            assert upstream.connections == 1


async def test_a_fresh_connection_is_never_retried() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")

    async with scripted(script) as (upstream, pool, target):
        with pytest.raises(Lost):
            await call(pool, target, idempotent=True)
        assert upstream.connections == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhalf",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    ],
)
async def test_a_reply_that_breaks_off_or_makes_no_sense_is_lost(data: bytes) -> None:
    async with scripted(replying(data, close=True)) as (_, pool, target):
        with pytest.raises(Lost) as caught:
            await call(pool, target, "POST", body=b"{}")
        assert not caught.value.timed_out


async def test_a_refused_connection_or_unknown_name_was_not_sent() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with pooled() as pool:
        with pytest.raises(NotSent, match=f"127.0.0.1:{port}"):
            await call(pool, Target.parse(f"http://127.0.0.1:{port}"))
        with pytest.raises(NotSent):
            await call(pool, Target.parse("http://nowhere.invalid"))
        with pytest.raises(NotSent, match="no TLS"):
            async with serving() as server:
                await call(pool, Target.parse(f"https://127.0.0.1:{server.port}"))


async def test_a_connection_that_does_not_come_about_in_time_was_not_sent() -> None:
    async def stuck(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    async with pooled(resolve=stuck, connect_timeout=0.05) as pool:
        with pytest.raises(NotSent) as caught:
            await call(pool, Target.parse("http://slow.example"))
        assert caught.value.timed_out


async def test_no_time_left_is_not_sent_even_with_a_connection_at_hand() -> None:
    async with scripted() as (upstream, pool, target):
        await call(pool, target)
        for _ in range(2):
            with pytest.raises(NotSent):
                await call(pool, target, deadline=time.monotonic() - 1)
        await call(pool, target)
        assert (upstream.connections, len(upstream.requests)) == (1, 2)


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"])
async def test_a_deadline_after_sending_is_lost_and_closes_the_connection(data: bytes) -> None:
    async with scripted(replying(data)) as (_, pool, target):
        began = time.monotonic()
        with pytest.raises(Lost) as caught:
            await call(pool, target, deadline=began + 0.1, idempotent=True)
        assert caught.value.timed_out
        assert time.monotonic() - began > 0.08
        await until(lambda: not pool._wires)


async def test_each_request_has_its_own_deadline() -> None:
    async with scripted(replying(b"")) as (_, pool, target):
        now = time.monotonic()
        order: list[float] = []

        async def one(seconds: float) -> None:
            with pytest.raises(Lost):
                await call(pool, target, deadline=now + seconds)
            order.append(seconds)

        await asyncio.gather(*(one(seconds) for seconds in (0.3, 0.1, 0.2)))
        assert order == [0.1, 0.2, 0.3]


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n" + b"x" * 101 + b"\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 101,
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000,
    ],
)
async def test_a_reply_over_the_limit_is_cut_off(data: bytes) -> None:
    async with scripted(replying(data)) as (_, pool, target):
        with pytest.raises(TooLarge):
            await call(pool, target, max_bytes=100)
        await until(lambda: not pool._wires)


async def test_a_redirect_is_a_reply_like_any_other() -> None:
    data = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://evil.example/\r\nContent-Length: 0\r\n\r\n"
    async with scripted(replying(data)) as (upstream, pool, target):
        reply = await call(pool, target)
        assert (reply.status, reply.header(b"location")) == (307, b"http://evil.example/")
        assert upstream.connections == 1


@pytest.mark.parametrize(
    ("data", "body"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold", b"old"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nX: 1\r\n\r\n" + OK, b"ok"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\nX-T: 1\r\n\r\n",
            b"abc",
        ),
    ],
)
async def test_every_way_to_end_a_body_is_understood(data: bytes, body: bytes) -> None:
    async with scripted(replying(data, close=True)) as (_, pool, target):
        reply = await call(pool, target)
        assert (reply.body, reply.header(b"x-t")) == (body, None)


async def test_a_head_request_does_not_wait_for_a_body() -> None:
    async with scripted(replying(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")) as (_, pool, target):
        assert (await call(pool, target, "HEAD", max_bytes=10)).body == b""


async def test_an_encoded_body_is_refused() -> None:
    data = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok"
    async with scripted(replying(data)) as (_, pool, target):
        with pytest.raises(BadReply, match="encoded"):
            await call(pool, target)


async def test_more_bytes_than_were_asked_for_never_reach_the_next_request() -> None:
    smuggled = OK + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
    async with scripted(replying(smuggled)) as (upstream, pool, target):
        for n in range(3):
            assert (await call(pool, target)).body == b"ok"
            await until(lambda: not pool._wires)
            assert upstream.connections == n + 1


async def test_bytes_nobody_asked_for_end_an_idle_connection() -> None:
    answered = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await upstream.read_request(reader)
        writer.write(OK)
        await answered.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        await reader.read()

    async with scripted(script) as (upstream, pool, target):
        assert (await call(pool, target)).body == b"ok"
        answered.set()
        await until(lambda: not pool._wires)
        assert (await call(pool, target)).body == b"ok"
        assert upstream.connections == 2


async def test_cancelling_the_caller_closes_the_connection() -> None:
    left = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await upstream.read_request(reader)
        await reader.read()
        left.set()

    async with scripted(script) as (upstream, pool, target):
        task = asyncio.create_task(call(pool, target, deadline=time.monotonic() + 60))
        await until(lambda: len(upstream.requests) == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await left.wait()
        assert not pool._wires


async def test_a_late_cancel_does_not_end_the_exchange_that_uses_the_connection_next() -> None:
    async with scripted() as (upstream, pool, target):
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        answered.set_result(await call(pool, target))
        (wire,) = pool._wires
        following = asyncio.create_task(call(pool, target))
        await asyncio.sleep(0)
        assert wire.busy
        wire.give_up(answered)
        assert (await asyncio.wait_for(following, PATIENCE)).body == b"ok"
        assert upstream.connections == 1


async def test_a_stream_gives_chunks_as_they_come_and_its_connection_back() -> None:
    step = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await upstream.read_request(reader)
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
            await step.wait()
            writer.write(b"3\r\ntwo\r\n0\r\n\r\n")

    async with scripted(script) as (upstream, pool, target):
        for _ in range(2):
            step.clear()
            reply = await pool.stream("GET", target, b"/", deadline=time.monotonic() + 5, max_bytes=100)
            assert (reply.status, await anext(reply)) == (200, b"one")
            step.set()
            assert await reply.read(10) == b"two"
        assert upstream.connections == 1


async def test_a_stream_that_is_closed_early_closes_its_connection() -> None:
    data = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n"
    async with scripted(replying(data)) as (_, pool, target):
        reply = await pool.stream("GET", target, b"/", deadline=time.monotonic() + 5, max_bytes=100)
        assert await anext(reply) == b"one"
        await reply.aclose()
        assert [chunk async for chunk in reply] == []
        await until(lambda: not pool._wires)


async def test_a_stream_keeps_its_deadline_until_it_is_moved() -> None:
    data = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n"
    async with scripted(replying(data)) as (_, pool, target):
        short = await pool.stream("GET", target, b"/", deadline=time.monotonic() + 0.1, max_bytes=100)
        moved = await pool.stream("GET", target, b"/", deadline=time.monotonic() + 0.1, max_bytes=100)
        moved.deadline = math.inf
        with pytest.raises(Lost) as caught:
            await short.read(100)
        assert caught.value.timed_out
        assert await anext(moved) == b"one"
        moved.deadline = time.monotonic() + 0.05
        with pytest.raises(Lost):
            await anext(moved)


async def test_a_stream_that_breaks_off_says_so_after_what_came() -> None:
    data = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"
    async with scripted(replying(data, close=True)) as (_, pool, target):
        reply = await pool.stream("GET", target, b"/", deadline=time.monotonic() + 5, max_bytes=100)
        assert await anext(reply) == b"half"
        with pytest.raises(Lost):
            await anext(reply)


async def test_a_stream_that_nobody_reads_does_not_fill_the_memory() -> None:
    body = b"x" * 30_000_000

    async def handler(request: Request) -> Response:
        return Response(200, body)

    async with serving(handler) as server, pooled() as pool:
        target = Target.parse(f"http://127.0.0.1:{server.port}")
        reply = await pool.stream("GET", target, b"/", deadline=time.monotonic() + 10, max_bytes=len(body))
        await until(lambda: reply._wire is not None and reply._wire.paused)
        assert reply._buffered < 2_000_000
        assert len(await reply.read(len(body))) == len(body)


async def test_the_resolve_hook_decides_where_to_connect() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        assert host == "service.example"
        return ["127.0.0.9", "127.0.0.1"]

    async with scripted() as (upstream, _, target), pooled(resolve=resolve) as pool:
        named = Target.parse(f"http://service.example:{target.port}")
        assert (await call(pool, named)).body == b"ok"
        assert b"host: service.example:" in upstream.requests[0]


class Quiet:
    """A transport that writes nowhere and remembers what it was given."""

    def __init__(self) -> None:
        self.written = b""
        self.closing = False

    def write(self, data: bytes) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.closing

    def abort(self) -> None:
        self.closing = True


@pytest.mark.parametrize("what", ["closed", "spoken"])
async def test_a_connection_that_ends_in_the_turn_of_its_request_never_carried_it(what: str) -> None:
    pool, transport = Pool(), Quiet()
    wire = Wire(pool, Target.parse("http://127.0.0.1:1"))
    wire.connection_made(cast(Any, transport))
    waiter = wire.send(Sending(b"GET / HTTP/1.1\r\n\r\n", wire.target, time.monotonic() + 5, 100, False, 100))
    if what == "closed":
        wire.connection_lost(None)
    else:
        wire.data_received(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
    with pytest.raises(NotSent):
        await waiter
    await asyncio.sleep(0)
    assert transport.written == b""
    await pool.aclose()


async def test_requests_of_one_turn_are_written_together_at_its_end() -> None:
    pool, order = Pool(), []
    transports = [Quiet() for _ in range(3)]
    for transport in transports:
        wire = Wire(pool, Target.parse("http://127.0.0.1:1"))
        wire.connection_made(cast(Any, transport))
        wire.send(Sending(b"x", wire.target, time.monotonic() + 5, 100, False, 100))
        order.append(transport.written)
    await asyncio.sleep(0)
    assert order == [b"", b"", b""]
    assert [transport.written for transport in transports] == [b"x", b"x", b"x"]
    await pool.aclose()


async def test_a_stream_is_never_taken_for_a_reply_that_came_before_on_its_connection() -> None:
    events = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    accepted = b"HTTP/1.1 202 Accepted\r\ncontent-type: application/json\r\ncontent-length: 0\r\n\r\n"
    pool = Pool()
    wire = Wire(pool, Target.parse("http://127.0.0.1:1"))
    wire.connection_made(cast(Any, Quiet()))

    async def exchange(*pieces: bytes) -> WholeReply | StreamReply:
        late = time.monotonic() + 5
        waiter = wire.send(Sending(b"x", wire.target, late, 10_000, False, streaming=True, whole=100))
        await asyncio.sleep(0)
        for piece in pieces:
            wire.data_received(piece)
        return await waiter

    for _ in range(3):
        assert isinstance(await exchange(accepted), WholeReply)
        stream = await exchange(events, b"5\r\nhello\r\n", b"0\r\n\r\n")
        assert isinstance(stream, StreamReply)
        assert await stream.read(100) == b"hello"
    await pool.aclose()


async def test_a_connection_that_cannot_be_written_to_holds_back_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(Quiet):
        def write(self, data: bytes) -> None:
            raise RuntimeError("the handler is closed")

    pool, transports = Pool(), [Broken(), Quiet()]
    for transport in transports:
        wire = Wire(pool, Target.parse("http://127.0.0.1:1"))
        wire.connection_made(cast(Any, transport))
        wire.send(Sending(b"x", wire.target, time.monotonic() + 5, 100, False, 100))
    await asyncio.sleep(0)
    assert transports[1].written == b"x"
    await pool.aclose()
    assert "a write failed" in caplog.text


@pytest.mark.parametrize("before", [b"HTTP/1.1 100 Continue\r\n\r\n", b"\r\n\r\n"])
async def test_what_comes_before_a_reply_is_never_taken_for_one(before: bytes) -> None:
    empty, full = (
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nmine",
    )
    pool = Pool()
    wire = Wire(pool, Target.parse("http://127.0.0.1:1"))
    wire.connection_made(cast(Any, Quiet()))
    for reply, body in ((empty, b""), (full, b"mine"), (empty, b"")):
        waiter = wire.send(Sending(b"x", wire.target, time.monotonic() + 5, 10_000, False, 10_000))
        await asyncio.sleep(0)
        wire.data_received(before)
        assert not waiter.done()
        wire.data_received(reply)
        assert cast(WholeReply, await waiter).body == body
    await pool.aclose()


async def test_a_connection_that_waits_for_its_next_request_holds_nothing_of_the_last() -> None:
    async with serving(limits=Limits(body_bytes=4 * LARGE)) as server, pooled() as pool:
        target = Target.parse(f"http://127.0.0.1:{server.port}")
        await call(pool, target, "POST", body=b"first")
        tracemalloc.start()
        try:
            reply = await call(pool, target, "POST", body=bytes(LARGE), max_bytes=8 * LARGE)
            assert reply.status == 200
            del reply
            await until(lambda: tracemalloc.get_traced_memory()[0] < LARGE / 2)
        finally:
            tracemalloc.stop()


async def test_a_connection_that_ended_leaves_nothing_to_the_collector() -> None:
    async with scripted(replying(OK, close=True)) as (_, pool, target):
        gc.collect()
        gc.disable()
        try:
            assert (await call(pool, target)).body == b"ok"
            await until(lambda: not any(isinstance(one, Wire) for one in gc.get_objects()))
        finally:
            gc.enable()
