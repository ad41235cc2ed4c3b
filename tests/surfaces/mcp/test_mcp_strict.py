"""What is no message of the protocol, or cannot be answered as it asks to be, is refused with the reason."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.surfaces.mcp.mcp_client import META, client_of, encode
from tests.surfaces.mcp.mcp_small import ALLOW, Cupboard, small_gate
from tests.surfaces.mcp.test_mcp_stdio import lab, pipe_to

from agent_gate.core.call import Outcome, Result, State
from agent_gate.core.ports import Job
from agent_gate.surfaces.rest.encode import outcome_response

BROKEN = Result(b'["no result"]', "mcp", is_error=True)
NO_MESSAGES: list[Any] = [
    {"id": 1, "method": "ping"},
    {"jsonrpc": "1.0", "id": 1, "method": "ping"},
    {"jsonrpc": 2.0, "id": 1, "method": "ping"},
    {"jsonrpc": "2.0", "id": 1},
    {"jsonrpc": "2.0"},
    {"jsonrpc": "2.0", "result": {}},
    {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "x"}},
    {"jsonrpc": "2.0", "id": 1, "method": "ping", "result": {}},
]


@pytest.mark.parametrize("message", NO_MESSAGES, ids=encode)
async def test_what_is_no_message_is_an_invalid_request(tmp_path: Path, message: Any) -> None:
    async with small_gate(tmp_path, lab()) as gate, client_of(gate) as client:
        await client.initialize()
        reply = await client.send("POST", encode(message), client.session_headers())
        assert (reply.status, reply.error["code"]) == (400, -32600)
        alone = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "ping"}
        reply = await client.send("POST", encode(message), alone)
        assert (reply.status, reply.error["code"]) == (400, -32600)
        async with pipe_to(gate) as pipe:
            pipe.reader.feed_data(encode(message) + b"\n")
            assert (await pipe.next())["error"]["code"] == -32600


class Slow:
    """A tool that ends when the test lets it."""

    def __init__(self) -> None:
        self.began: asyncio.Queue[None] = asyncio.Queue()
        self.go = asyncio.Event()

    async def __call__(self, job: Job) -> Any:
        self.began.put_nowait(None)
        await self.go.wait()
        return job.arguments


async def test_an_id_that_is_in_flight_is_not_taken_twice_in_a_session(tmp_path: Path) -> None:
    slow = Slow()
    async with small_gate(tmp_path, lab(slow=slow)) as gate, client_of(gate) as client:
        await client.initialize()
        first = asyncio.create_task(client.ask("tools/call", number=7, name="lab__slow", arguments={}))
        await slow.began.get()
        again = await client.ask("tools/call", number=7, name="lab__slow", arguments={})
        assert (again.status, again.error["code"]) == (400, -32600)
        assert "still open" in again.error["message"]
        slow.go.set()
        assert "result" in (await first).json
        assert "result" in (await client.ask("tools/call", number=7, name="lab__slow")).json


async def test_a_client_whose_connection_broke_may_ask_again_under_the_same_id(tmp_path: Path) -> None:
    slow = Slow()
    async with small_gate(tmp_path, lab(slow=slow)) as gate, client_of(gate) as client:
        await client.initialize()
        first = asyncio.create_task(client.ask("tools/call", number=7, name="lab__slow", arguments={}))
        await slow.began.get()
        client.replies[-1].hang_up()
        first.cancel()
        slow.go.set()
        reply = await client.ask("tools/call", number=7, name="lab__slow", arguments={"n": 2})
        assert "result" in reply.json


async def test_an_id_that_is_in_flight_is_not_taken_twice_on_a_pipe(tmp_path: Path) -> None:
    slow = Slow()
    async with small_gate(tmp_path, lab(slow=slow)) as gate, pipe_to(gate) as pipe:
        pipe.send(id=7, method="tools/call", params={"name": "lab__slow", "_meta": META})
        await slow.began.get()
        again = await pipe.ask("tools/call", number=7, name="lab__slow", _meta=META)
        assert again["error"]["code"] == -32600
        slow.go.set()
        assert "result" in await pipe.next()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Accept": "text/html"}, 406),
        ({"Accept": "text/event-stream"}, 406),
        ({"Accept": "application/*, text/event-stream"}, 200),
        ({"Accept": "text/html, */*;q=0.1"}, 200),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/jsonp"}, 415),
        ({"Content-Type": "multipart/form-data; boundary=x"}, 415),
        ({"Content-Type": "Application/JSON; charset=utf-8"}, 200),
    ],
)
async def test_media_types_that_cannot_be_met_are_refused(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    async with small_gate(tmp_path, lab()) as gate, client_of(gate) as client:
        await client.initialize()
        message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        reply = await client.send("POST", encode(message), {**client.session_headers(), **headers})
        assert reply.status == status


async def test_a_stream_is_not_opened_for_a_client_that_takes_none(tmp_path: Path) -> None:
    async with small_gate(tmp_path, lab()) as gate, client_of(gate) as client:
        await client.initialize()
        headers = {**client.session_headers(), "Accept": "application/json"}
        assert (await client.send("GET", headers=headers)).status == 406


LONG = "x" * 5000
ECHOED: list[tuple[str, dict[str, Any]]] = [
    (LONG, {}),
    ("tools/call", {"name": LONG}),
    ("tools/call", {"name": 5, LONG: 1}),
    ("tools/call", {"name": "gate_result", "arguments": {"id": LONG}}),
    ("tools/list", {"cursor": LONG}),
    ("prompts/get", {"name": LONG}),
    ("resources/read", {"uri": LONG}),
    ("resources/subscribe", {"uri": LONG}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": LONG}}),
    ("completion/complete", {"ref": {"type": "ref/resource", "uri": LONG}}),
    ("logging/setLevel", {"level": LONG}),
    ("initialize", {"protocolVersion": [LONG]}),
]


@pytest.mark.parametrize(("method", "params"), ECHOED, ids=lambda value: str(value)[:40])
async def test_no_error_repeats_what_is_long(tmp_path: Path, method: str, params: dict[str, Any]) -> None:
    async with small_gate(tmp_path, lab(echo=None), rules=ALLOW) as gate, client_of(gate) as client:
        await client.initialize()
        assert len((await client.ask(method, **params)).body) < 1500
        version = {"MCP-Protocol-Version": LONG}
        assert len((await client.modern(method, headers=version, **params)).body) < 1500


async def test_a_caller_who_sees_no_tool_has_an_empty_list(tmp_path: Path) -> None:
    async with small_gate(tmp_path, Cupboard()) as gate, client_of(gate) as client:
        assert (await client.ask("tools/list")).result == {"tools": []}
        assert (await client.modern("tools/list")).result["tools"] == []


async def broken(job: Job) -> Result:
    del job
    return BROKEN


async def test_a_result_that_cannot_be_shown_is_answered_over_http_and_stdio(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        async with small_gate(tmp_path, lab(broken=broken)) as gate, client_of(gate) as client:
            shown = [
                (await client.call("lab__broken")).result,
                (await client.modern_call("lab__broken")).result,
            ]
            async with pipe_to(gate) as pipe:
                shown.append((await pipe.ask("tools/call", name="lab__broken"))["result"])
        for result in shown:
            assert result["isError"] is True
            assert result["_meta"]["agent-gate/error"]["code"] == "OUTCOME_UNKNOWN"
            assert "Traceback" not in str(result)
    assert [record.message.endswith("cannot be shown") for record in caplog.records] == [True] * 3


def test_a_result_that_cannot_be_shown_is_answered_over_rest(caplog: pytest.LogCaptureFixture) -> None:
    outcome = Outcome(call_id="c1", state=State.COMPLETED, result=Result(b'{"content": "x"}', "mcp"))
    response = outcome_response(outcome)
    assert (response.status, b"OUTCOME_UNKNOWN" in response.body) == (502, True)
    assert dict(response.headers)[b"agent-gate-call"] == b"c1"
    assert "The result of c1 cannot be shown" in caplog.text


async def test_a_fault_in_a_method_that_needs_no_source_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with small_gate(tmp_path, lab(echo=None)) as gate, client_of(gate) as client:
        monkeypatch.setattr(gate.surface.lists, "page", None)
        assert (await client.ask("tools/list")).error["code"] == -32603
        assert (await client.modern("tools/list")).error["code"] == -32603
