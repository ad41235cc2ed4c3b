"""One client over pipes: the same answers as over HTTP, one message a line."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.surfaces.mcp.mcp_client import META, decode, encode, text_of
from tests.surfaces.mcp.mcp_small import ANNA, ASK, Cupboard, SmallGate, caller, small_gate
from tests.waiting import PATIENCE, until

from agent_gate.access.tokens import Credential, digest
from agent_gate.core.ports import Job
from agent_gate.errors import DependencyUnavailable
from agent_gate.surfaces.mcp import Lines, StdioServer
from agent_gate.surfaces.mcp.lines import LONGEST_LINE


class Pipe:
    """Both ends of a client's pipes, held by the test."""

    def __init__(self) -> None:
        self.reader = asyncio.StreamReader(limit=LONGEST_LINE)
        self.lines: asyncio.Queue[Any] = asyncio.Queue()

    def write(self, data: bytes) -> None:
        assert data.endswith(b"\n")
        assert data.count(b"\n") == 1
        self.lines.put_nowait(decode(data))

    async def drain(self) -> None:
        return None

    def is_closing(self) -> bool:
        return False

    def send(self, **message: Any) -> None:
        self.reader.feed_data(encode({"jsonrpc": "2.0", **message}) + b"\n")

    async def ask(self, method: str, number: Any = 1, **params: Any) -> Any:
        self.send(id=number, method=method, params=params)
        return await self.next()

    async def next(self) -> Any:
        async with asyncio.timeout(PATIENCE):
            return await self.lines.get()


@contextlib.asynccontextmanager
async def pipe_to(gate: SmallGate) -> AsyncIterator[Pipe]:
    pipe = Pipe()
    serving = asyncio.create_task(StdioServer(gate.surface, caller("anna")).run(Lines(pipe.reader, pipe)))
    try:
        yield pipe
    finally:
        pipe.reader.feed_eof()
        await serving


def lab(**works: Any) -> Cupboard:
    source = Cupboard()
    for name, work in works.items():
        source.tool(name, work)
    return source


async def test_both_eras_are_served_on_one_pipe(tmp_path: Path) -> None:
    async with small_gate(tmp_path, lab(echo=None)) as gate, pipe_to(gate) as pipe:
        asked = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t"}}
        assert (await pipe.ask("initialize", **asked))["result"]["protocolVersion"] == "2025-06-18"
        pipe.send(method="notifications/initialized")
        assert (await pipe.ask("ping", number="p"))["result"] == {}
        called = await pipe.ask("tools/call", number=2, name="lab__echo", arguments={"a": 1})
        assert called["result"]["structuredContent"] == {"a": 1}
        modern = await pipe.ask("tools/call", number=3, name="lab__echo", arguments={}, _meta=META)
        assert modern["result"]["resultType"] == "complete"
        unknown = {**META, "io.modelcontextprotocol/protocolVersion": "2027-01-01"}
        assert (await pipe.ask("tools/list", _meta=unknown))["error"]["code"] == -32022
        assert (await pipe.ask("initialize", number=4, **asked))["error"]["code"] == -32600


async def test_questions_notices_and_listening_use_the_same_pipe(tmp_path: Path) -> None:
    async def asks(job: Job) -> Any:
        conversation = job.case.call.conversation
        assert conversation is not None
        return await conversation.request("roots/list", {})

    source = lab(asks=asks)
    async with small_gate(tmp_path, source) as gate, pipe_to(gate) as pipe:
        await pipe.ask("initialize", protocolVersion="2025-11-25", capabilities={"roots": {}})
        question = await pipe.ask("tools/call", number=2, name="lab__asks", arguments={})
        assert question["method"] == "roots/list"
        pipe.send(id=question["id"], result={"roots": []})
        assert text_of((await pipe.next())["result"]) == '{"roots":[]}'
        ack = await pipe.ask(
            "subscriptions/listen", number="s", notifications={"toolsListChanged": True}, _meta=META
        )
        assert ack["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "s"}
        source.tool("more")
        gate.publish()
        heard = [await pipe.next(), await pipe.next()]
        assert {event["method"] for event in heard} == {"notifications/tools/list_changed"}
        pipe.send(method="notifications/cancelled", params={"requestId": "s"})
        assert (await pipe.ask("ping", number=9))["id"] == 9
        source.tool("still more")
        gate.publish()
        assert "params" not in await pipe.next()
        assert pipe.lines.empty()


async def test_a_listener_on_a_pipe_hears_of_its_resources_until_it_leaves(tmp_path: Path) -> None:
    source = lab()
    source.context["resources"] = [{"uri": "lab://a", "name": "a"}]
    wanted = {"resourceSubscriptions": ["lab://a"]}
    async with small_gate(tmp_path, source) as gate:
        async with pipe_to(gate) as pipe, asyncio.timeout(PATIENCE):
            await pipe.ask("subscriptions/listen", number="s", notifications=wanted, _meta=META)
            await until(lambda: source.forwarded)
            source.announce("notifications/resources/updated", uri="lab://a")
            assert (await pipe.next())["params"]["uri"] == "lab://a"
            again = await pipe.ask("subscriptions/listen", number="s", notifications=wanted, _meta=META)
            assert again["error"]["code"] == -32600
            pipe.send(method="notifications/cancelled", params={"requestId": "s"})
            await until(lambda: len(source.forwarded) >= 2)
        methods = [method for method, _ in source.forwarded]
        assert methods == ["resources/subscribe", "resources/unsubscribe"]
        assert len(gate.surface.notices) == 0


async def test_a_cancel_notice_ends_a_running_call_and_the_end_of_input_too(tmp_path: Path) -> None:
    began: asyncio.Queue[None] = asyncio.Queue()

    async def hangs(job: Job) -> Any:
        began.put_nowait(None)
        await asyncio.Event().wait()

    async with small_gate(tmp_path, lab(hangs=hangs)) as gate:
        async with pipe_to(gate) as pipe:
            pipe.send(id=1, method="tools/call", params={"name": "lab__hangs"})
            await began.get()
            pipe.send(method="notifications/cancelled", params={"requestId": 1})
            await until(lambda: not gate.calls.running())
            assert (await pipe.ask("ping", number=3))["id"] == 3
            pipe.send(id=2, method="tools/call", params={"name": "lab__hangs"})
            await began.get()
        await until(lambda: not gate.calls.running())


async def test_a_question_to_a_person_outlives_the_pipe(tmp_path: Path) -> None:
    async with small_gate(tmp_path, lab(echo=None), rules=ASK) as gate:
        async with pipe_to(gate) as pipe:
            pipe.send(id=1, method="tools/call", params={"name": "lab__echo"})
            await gate.approval()
        assert len(gate.inbox.open()) == 1


async def test_a_line_that_is_too_long_or_broken_is_refused_and_the_next_one_read(tmp_path: Path) -> None:
    async with small_gate(tmp_path, lab(echo=None)) as gate, pipe_to(gate) as pipe:
        pipe.reader.feed_data(b"{" * (LONGEST_LINE + 10) + b"\n")
        assert (await pipe.next())["error"]["code"] == -32700
        pipe.reader.feed_data(b"not json\n\n")
        assert (await pipe.next())["error"]["code"] == -32700
        assert (await pipe.ask("ping", number=5))["id"] == 5


async def test_no_message_ends_the_pipe_for_the_others(tmp_path: Path) -> None:
    deep, deeper = (b"[" * depth + b"]" * depth for depth in (400, 5_000))

    async with small_gate(tmp_path, lab()) as gate, pipe_to(gate) as pipe, asyncio.timeout(PATIENCE):
        await pipe.ask("initialize", protocolVersion="2025-11-25", capabilities={})
        for more in b"1e999", deeper:
            pipe.reader.feed_data(b'{"jsonrpc":"2.0","id":1,"method":"ping","more":%b}\n' % more)
            assert (await pipe.next())["error"]["code"] == -32700
        for result in b"1e999", deep:
            pipe.reader.feed_data(b'{"jsonrpc":"2.0","id":1,"result":%b}\n' % result)
        assert (await pipe.ask("tools/list", cursor="9" * 5_000))["error"]["code"] == -32602
        assert (await pipe.ask("ping", number=7))["id"] == 7


async def test_a_cancel_that_cannot_be_recorded_does_not_end_the_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: Any) -> bool:
        raise DependencyUnavailable("The record cannot be written")

    async with small_gate(tmp_path, lab(echo=None), rules=ASK) as gate, pipe_to(gate) as pipe:
        pipe.send(id=1, method="tools/call", params={"name": "lab__echo"})
        await gate.approval()
        monkeypatch.setattr(gate.calls, "cancel", fails)
        pipe.send(method="notifications/cancelled", params={"requestId": 1})
        async with asyncio.timeout(PATIENCE):
            assert (await pipe.ask("ping", number=2))["id"] == 2


async def test_what_a_reload_takes_from_the_agent_is_taken_from_its_pipe(tmp_path: Path) -> None:
    async with small_gate(tmp_path, lab(echo=None)) as gate, pipe_to(gate) as pipe:
        assert "result" in await pipe.ask("tools/call", name="lab__echo", arguments={})
        elsewhere = caller("anna", namespaces=frozenset({"elsewhere"}))
        gate.surface.door.tokens.replace([Credential(digest(ANNA), elsewhere)])
        assert "error" in await pipe.ask("tools/call", name="lab__echo", arguments={})
        gate.surface.door.tokens.replace([])
        assert "anna" in (await pipe.ask("tools/list"))["error"]["message"]
