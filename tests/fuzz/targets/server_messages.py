"""Bytes from a server to the request that waits for it: answered once and by its own response, whatever else comes."""

import asyncio
import json
import time
from contextlib import suppress

from tests.fuzz.fuzzing import Target
from tests.waiting import PATIENCE

from agent_gate.mcp.errors import RpcError
from agent_gate.mcp.events import EventParser
from agent_gate.mcp.results import NoResult, read_tool_result
from agent_gate.sources.mcp.wire.mux import Mux
from agent_gate.sources.mcp.wire.order import SILENT, Order

LIMIT = 1 << 20
FRAMES, SHORT = 8, 257
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{"done":true}}'
LOOP = asyncio.new_event_loop()


def run(data: bytes) -> None:
    size = 1 if len(data) < SHORT else SHORT
    assert events_of([data]) == events_of([data[at : at + size] for at in range(0, len(data), size)])
    LOOP.run_until_complete(story(data.split(b"\n")[:FRAMES]))


def events_of(chunks: list[bytes]) -> list[bytes]:
    parser = EventParser(LIMIT)
    return [event.data for chunk in chunks for event in parser.feed(chunk)]


async def story(frames: list[bytes]) -> None:
    sent: list[bytes] = []
    mux = Mux(sent.append)
    order = Order(
        method="tools/call", params={"name": "a"}, deadline=time.monotonic() + 60, talk=SILENT, caller="anna"
    )
    request = asyncio.ensure_future(mux.request(order))
    await asyncio.sleep(0)
    for frame in frames:
        mux.feed(frame)
        await asyncio.sleep(0)
    mux.feed(ANSWER)
    with suppress(RpcError):
        async with asyncio.timeout(PATIENCE):
            with suppress(NoResult):
                read_tool_result(await request)
    assert not mux.pending
    await mux.stop()
    for message in sent:
        assert json.loads(message)["jsonrpc"] == "2.0"


TARGET = Target(
    "server_messages",
    run,
    words=(
        ANSWER, b'{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}', b'"jsonrpc":"2.0"', b'"id":1', b'"id":"1"', b'"id":null',
        b'"result":{}', b'"error":{}', b'"method":"ping"', b'"method":"sampling/createMessage"', b'"method":"notifications/progress"',
        b'"method":"notifications/message"', b'"method":"notifications/cancelled"', b'"progressToken":1', b'"requestId":', b'"params":', b"data: ",
        b"event: ", b"id: ", b"retry: ", b"\r\n", b"\r", b"\n\n", b"[", b"]", b"{", b"}", b",", b":", b'"', b"\\ud800", b"\xff", b"1e999", b"null",
    ),
)  # fmt: skip
