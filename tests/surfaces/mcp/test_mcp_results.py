"""What a call's outcome looks like to an MCP client, and what a client sees while a person decides."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.surfaces.mcp.mcp_client import client_of, encode, text_of
from tests.surfaces.mcp.mcp_small import ALLOW, ASK, BERT, Cupboard, caller, small_gate

from agent_gate.core.call import Outcome, Result, State
from agent_gate.core.ports import Job
from agent_gate.errors import GatewayError, leaves
from agent_gate.mcp.errors import RpcError
from agent_gate.mcp.messages import decode
from agent_gate.mcp.revisions import UNSAID
from agent_gate.policy.rule import make_rule
from agent_gate.surfaces.mcp.tools import render

PROTOCOL_ERRORS = {"TOOL_NOT_FOUND": -32602, "INTERNAL": -32603}


@pytest.mark.parametrize("kind", leaves(), ids=lambda kind: kind.__name__)
def test_every_error_has_its_form(kind: type[GatewayError]) -> None:
    outcome = Outcome(call_id="c", state=State.FAILED, error=kind("What to do next"))
    code = PROTOCOL_ERRORS.get(kind.code)
    if kind.__name__ in ("GatewayError",):
        return
    if code is not None:
        with pytest.raises(RpcError) as raised:
            render.outcome_result(outcome, "lab", UNSAID)
        assert (raised.value.code, raised.value.message) == (code, "What to do next")
        return
    result = decode(render.outcome_result(outcome, "lab", UNSAID))
    assert result["isError"] is True
    assert text_of(result) == "What to do next"
    assert result["_meta"]["agent-gate/error"]["code"] == kind.code
    assert result["_meta"]["agent-gate/error"]["retryable"] is kind.retryable
    assert "structuredContent" not in result


def one(name: str, result: Any, **more: Any) -> Cupboard:
    async def work(job: Job) -> Any:
        return result

    source = Cupboard()
    source.tool(name, work, **more)
    return source


@pytest.mark.parametrize(
    ("value", "text", "structured"),
    [
        ("plain words", "plain words", None),
        ({"a": [1, 2]}, '{"a":[1,2]}', {"a": [1, 2]}),
        ([1, "x"], '[1,"x"]', None),
        (None, "null", None),
        (3.5, "3.5", None),
        ("line\nbreak and ünï", "line\nbreak and ünï", None),
    ],
)
async def test_a_json_value_is_shown_as_text_and_an_object_as_itself_too(
    tmp_path: Path, value: Any, text: str, structured: Any
) -> None:
    async with small_gate(tmp_path, one("get", value)) as gate, client_of(gate) as client:
        result = (await client.call("lab__get")).result
        assert text_of(result) == text
        assert result.get("structuredContent") == structured
        assert (await client.modern_call("lab__get")).result["content"] == result["content"]


async def test_an_upstreams_own_error_passes_untouched_with_its_server_named(tmp_path: Path) -> None:
    body = {"content": [{"type": "text", "text": "no such file"}], "isError": True, "_meta": {"x": 1}}

    source = one("get", Result(encode(body), "mcp", is_error=True))
    async with small_gate(tmp_path, source) as gate, client_of(gate) as client:
        for result in (
            (await client.call("lab__get")).result,
            (await client.modern_call("lab__get")).result,
        ):
            assert result["content"] == body["content"]
            assert result["isError"] is True
            assert result["_meta"]["agent-gate/source"] == "lab"
            assert result["_meta"]["x"] == 1


async def test_an_upstreams_result_passes_byte_for_byte(tmp_path: Path) -> None:
    body = b'{"structuredContent":{"b":1.0,"a":[ ]},"content":[],"new member":{"z":null}}'

    async with (
        small_gate(tmp_path, one("get", Result(body, "mcp"))) as gate,
        client_of(gate) as client,
    ):
        reply = await client.call("lab__get")
        assert reply.body == b'{"jsonrpc":"2.0","id":1,"result":' + body + b"}"


async def test_unknown_out_of_sight_and_denied_tools(tmp_path: Path) -> None:
    lab, attic = one("get", 1), Cupboard("attic")
    attic.tool("get")
    lab.tool("denied")
    rules = (*ALLOW, make_rule(pattern="lab__denied*", action="deny"))
    callers = (caller("anna", namespaces=frozenset({"lab"})), caller("bert"))
    async with (
        small_gate(tmp_path, lab, attic, rules=rules, callers=callers) as gate,
        client_of(gate) as client,
    ):
        unknown = await client.ask("tools/call", number=1, name="attic__gets", arguments={})
        unseen = await client.ask("tools/call", number=1, name="attic__get", arguments={})
        assert unseen.error["code"] == -32602
        assert unseen.body == unknown.body.replace(b"attic__gets", b"attic__get")
        denied = (await client.call("lab__denied")).result
        assert denied["_meta"]["agent-gate/error"]["code"] == "FORBIDDEN"
        names = [tool["name"] for tool in (await client.ask("tools/list")).result["tools"]]
        assert names == ["lab__get", "gate_result"]


async def test_arguments_that_do_not_fit_are_an_error_the_agent_can_read(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    async with (
        small_gate(tmp_path, one("get", 1, input_schema=schema)) as gate,
        client_of(gate) as client,
    ):
        result = (await client.call("lab__get")).result
        assert result["isError"] is True
        assert "Missing required argument: n" in text_of(result)
        assert (await client.ask("tools/call", name="lab__get", arguments=[1])).error["code"] == -32602
        assert (await client.ask("tools/call", arguments={})).error["code"] == -32602
        null = (await client.ask("tools/call", name="lab__get", arguments=None)).result
        assert "Missing required argument: n" in text_of(null)


async def test_one_idempotency_key_runs_once(tmp_path: Path) -> None:
    source = one("get", "ran")
    async with small_gate(tmp_path, source) as gate, client_of(gate) as client:
        key = {"agent-gate/idempotency-key": "k1"}
        for _ in range(2):
            assert text_of((await client.call("lab__get", _meta=key)).result) == "ran"
        assert len(source.jobs) == 1
        assert "agent-gate/idempotency-key" not in source.jobs[0].case.call.meta


async def test_a_call_is_of_the_trace_and_the_session_that_its_client_names(tmp_path: Path) -> None:
    first, second = (f"00-{digit * 32}-{digit * 16}-01" for digit in "ab")

    source = one("get", 1)
    async with small_gate(tmp_path, source) as gate, client_of(gate) as client:
        named = {"traceparent": first, "Agent-Session": "run-1"}
        await client.modern_call("lab__get", headers=named)
        await client.modern_call("lab__get", headers=named, _meta={"traceparent": second})
        made = [job.case.call for job in source.jobs]
        assert [(call.trace, call.session) for call in made] == [(first, "run-1"), (second, "run-1")]
        recorded = await gate.store.read("SELECT body FROM record ORDER BY seq")
        traces = [decode(row[0]).get("trace") for row in recorded]
        assert [trace for trace in traces if trace] == [first, second]


async def test_a_waiting_call_tells_a_handshake_client_where_to_find_its_result(tmp_path: Path) -> None:
    source = one("get", {"found": 1})
    async with (
        small_gate(tmp_path, source, rules=ASK, hold=0.05) as gate,
        client_of(gate) as anna,
        client_of(gate, token=BERT) as bert,
    ):
        waiting = (await anna.call("lab__get")).result
        ident = waiting["_meta"]["agent-gate/pending"]["call"]
        assert waiting["isError"] is False
        assert ident in text_of(waiting)
        still = (await anna.call("gate_result", id=ident)).result
        assert still["_meta"]["agent-gate/pending"]["call"] == ident
        await gate.approve_and_wait()
        for _ in range(2):
            done = (await anna.call("gate_result", id=ident)).result
            assert done["structuredContent"] == {"found": 1}
        assert len(source.jobs) == 1
        stolen = (await bert.call("gate_result", id=ident)).result
        invented = (await bert.call("gate_result", id="0" * 32)).result
        assert stolen == invented
        assert stolen["isError"] is True
        assert (await anna.call("gate_result", ident=ident)).result["isError"] is True


async def test_a_waiting_call_of_a_tool_with_an_output_schema_is_marked_so_that_clients_do_not_check_it(
    tmp_path: Path,
) -> None:
    source = one("get", {"found": 1}, output_schema={"type": "object"})
    async with (
        small_gate(tmp_path, source, rules=ASK, hold=0.02) as gate,
        client_of(gate) as client,
    ):
        assert (await client.call("lab__get")).result["isError"] is True


async def test_an_answer_within_the_hold_is_the_result_itself_with_signs_of_life_before_it(
    tmp_path: Path,
) -> None:
    async with (
        small_gate(tmp_path, one("get", 1), rules=ASK, hold=20.0, beat=0.02) as gate,
        client_of(gate) as client,
    ):
        asking = asyncio.create_task(client.call("lab__get", _meta={"progressToken": "t"}))
        await gate.approval()
        reply = await asking
        assert reply.streams
        beats = [await reply.event() for _ in range(2)]
        assert [beat["method"] for beat in beats] == ["notifications/progress"] * 2
        assert beats[0]["params"]["progress"] < beats[1]["params"]["progress"]
        await gate.approve()
        events = await reply.events()
        assert text_of(events[-1]["result"]) == "1"


async def test_an_explicit_cancel_withdraws_a_call_that_waits(tmp_path: Path) -> None:
    async with (
        small_gate(tmp_path, one("get", 1), rules=ASK, hold=20.0) as gate,
        client_of(gate) as client,
    ):
        await client.initialize()
        asking = asyncio.create_task(client.ask("tools/call", number=9, name="lab__get", arguments={}))
        await gate.approval()
        await client.tell({"method": "notifications/cancelled", "params": {"requestId": 9}})
        reply = await asking
        assert (reply.status, reply.headers["content-length"]) == (200, "0")
        assert gate.inbox.open() == []


async def test_a_request_without_a_valid_token_is_told_where_to_read_about_it(tmp_path: Path) -> None:
    async with small_gate(tmp_path, one("get", 1)) as gate, client_of(gate, token="wrong") as client:
        refused = await client.ask("tools/list")
        assert refused.status == 401
        challenge = refused.headers["www-authenticate"]
        assert challenge.startswith("Bearer ")
        known = challenge.partition('resource_metadata="')[2].rstrip('"')
        assert known == f"{gate.url.replace(f':{gate.server.port}', '')}".replace(
            "/mcp", "/.well-known/oauth-protected-resource/mcp"
        )
        for path in "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp":
            client.path = path
            document = (await client.send("GET")).json
            assert document["resource"] == "http://127.0.0.1/mcp"
