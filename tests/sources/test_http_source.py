"""HTTP services: looked after with the credential of their calls, and believed only what makes sense."""

import asyncio

import pytest
from tests.toolboxes import toolbox

from agent_gate.config.services.settings import AuthConfig, ErrorMapping, HealthCheckConfig, ServiceConfig
from agent_gate.net.exchange import WholeReply
from agent_gate.net.http import error_response
from agent_gate.net.pool import Pool
from agent_gate.observe.redact import Redactor
from agent_gate.sources.http import HttpSource
from agent_gate.sources.http.reply import failure

TOKEN = "key & more"
AUTHS = [
    AuthConfig(type="query", query_param="api_key", token=TOKEN),
    AuthConfig(type="header", header_name="X-Key", token=TOKEN),
]


@pytest.mark.parametrize("auth", AUTHS, ids=lambda auth: auth.type)
@pytest.mark.parametrize("path", ["/status", "/status?deep=1"])
async def test_a_health_check_carries_the_credential(auth, path):
    wanted = {
        "/status": b"GET /status?api_key=key%20%26%20more HTTP/1.1",
        "/status?deep=1": b"GET /status?deep=1&api_key=key%20%26%20more HTTP/1.1",
    }

    async def serve(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        known = wanted[path] in head if auth.type == "query" else b"x-key: key & more" in head
        writer.write(b"HTTP/1.1 %d x\r\ncontent-length: 0\r\n\r\n" % (200 if known else 401))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    health = HealthCheckConfig(path=path, configured=True)
    config = ServiceConfig(name="s", url=f"http://127.0.0.1:{port}", auth=auth, health=health)
    pool = Pool()
    try:
        assert await HttpSource(config, toolbox(pool)).check_health() is None
    finally:
        await pool.aclose()
        server.close()


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        (b"7", 7.0),
        (b"99999", 99_999.0),
        (b"9" * 400, 1.0),
        (b"Fri, 01 Jan 2027 00:00:00 GMT", 1.0),
        (b"-1", 1.0),
    ],
)
def test_a_service_that_asks_to_slow_down_is_believed_only_a_number_of_seconds(said, heard):
    reply = WholeReply(429, [(b"retry-after", said)], b"")
    own = ServiceConfig(name="s", errors=(ErrorMapping(status=429, message="too fast"),))
    for config, message in (ServiceConfig(name="s"), "s asks to slow down"), (own, "too fast"):
        error = failure(config, reply, Redactor(()))
        assert (error.message, error.retry_after) == (message, heard)
        assert error_response(error).status == 503


async def test_a_service_that_cannot_be_reached_is_shown_so_without_a_health_check_and_is_well_when_it_is_back():
    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 x\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    pool = Pool()
    source = HttpSource(ServiceConfig(name="s", url=f"http://127.0.0.1:{port}"), toolbox(pool))
    try:
        await source.check_health()
        assert source.unwell is None
        server.close()
        await server.wait_closed()
        problem = await source.check_health()
        assert problem == source.unwell
        assert problem.startswith("it cannot be reached: ")
        assert "Nothing was sent" not in problem
        server = await asyncio.start_server(serve, "127.0.0.1", port)
        await source.check_health()
        assert source.unwell is None
    finally:
        await pool.aclose()
        server.close()


@pytest.mark.parametrize(("auth", "well"), [(AuthConfig(), True), (AUTHS[1], False)], ids=["none", "some"])
async def test_only_a_service_that_has_a_credential_can_refuse_it(auth, well):
    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 401 x\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    pool = Pool()
    source = HttpSource(ServiceConfig(name="s", url=f"http://127.0.0.1:{port}", auth=auth), toolbox(pool))
    try:
        await source.check_health()
        assert (source.unwell is None) is well
    finally:
        await pool.aclose()
        server.close()
