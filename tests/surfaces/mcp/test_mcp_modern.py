"""Clients of 2026-07-28: every request stands for itself, and its headers say what its body says."""

import asyncio
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from tests.surfaces.mcp.mcp_client import META, MODERN, client_of, encode, text_of
from tests.surfaces.mcp.mcp_small import ALLOW, ASK, BERT, Cupboard, small_gate

from agent_gate.core.call import Result
from agent_gate.core.ports import Job
from agent_gate.errors import UpstreamError
from agent_gate.policy.rule import make_rule

REGION = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
    },
}


def lab(**works: Any) -> Cupboard:
    source = Cupboard()
    for name, work in works.items():
        source.tool(name, work)
    return source


def wrapped(text: str) -> str:
    return f"=?base64?{b64encode(text.encode()).decode()}?="


async def test_discovery_names_the_server_and_what_it_offers(tmp_path: Path) -> None:
    async with small_gate(tmp_path, lab(echo=None)) as gate, client_of(gate) as client:
        found = (await client.modern("server/discover")).result
        assert found["supportedVersions"] == [MODERN]
        assert found["resultType"] == "complete"
        assert found["cacheScope"] == "private"
        assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "agent-gate"


async def test_a_call_is_answered_as_complete_with_the_servers_name(tmp_path: Path) -> None:
    async with small_gate(tmp_path, lab(echo=None)) as gate, client_of(gate) as client:
        result = (await client.modern_call("lab__echo", {"a": 1})).result
        assert result["resultType"] == "complete"
        assert result["structuredContent"] == {"a": 1}
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "agent-gate"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Mcp-Method": None}, -32020),
        ({"Mcp-Method": "tools/list"}, -32020),
        ({"Mcp-Method": "TOOLS/CALL"}, -32020),
        ({"Mcp-Name": None}, -32020),
        ({"Mcp-Name": "lab__other"}, -32020),
        ({"Mcp-Name": "=?base64?bGFi?="}, -32020),
        ({"Mcp-Name": "=?base64?!!?="}, -32020),
        ({"MCP-Protocol-Version": None}, -32020),
        ({"MCP-Protocol-Version": "2025-11-25"}, 0),
        ({"MCP-Protocol-Version": "2027-01-01"}, -32020),
    ],
)
async def test_a_header_that_does_not_repeat_the_body_is_refused_before_anything_runs(
    tmp_path: Path, headers: Any, code: int
) -> None:
    async with small_gate(tmp_path, lab(echo=None)) as gate, client_of(gate) as client:
        reply = await client.modern_call("lab__echo", headers=headers)
        if code:
            assert (reply.status, reply.error["code"]) == (400, code)
            assert gate.sources["lab"].jobs == []
        else:
            assert reply.status == 200, "an older revision in the header makes it a request of that revision"


async def test_a_name_wrapped_in_base64_is_the_name(tmp_path: Path) -> None:
    async with small_gate(tmp_path, lab(echo=None)) as gate, client_of(gate) as client:
        reply = await client.modern_call("lab__echo", headers={"Mcp-Name": wrapped("lab__echo")})
        assert reply.status == 200


@pytest.mark.parametrize(
    ("arguments", "headers", "status"),
    [
        ({"region": "north"}, {"Mcp-Param-Region": "north"}, 200),
        ({"region": "nörd"}, {"Mcp-Param-Region": wrapped("nörd")}, 200),
        ({"region": "north"}, {}, 400),
        ({"region": "north"}, {"Mcp-Param-Region": "south"}, 400),
        ({}, {"Mcp-Param-Region": "south"}, 400),
        ({"count": 42}, {"Mcp-Param-Count": "42.0"}, 200),
        ({"count": 42}, {"Mcp-Param-Count": "43"}, 400),
        ({}, {}, 200),
    ],
)
async def test_mirrored_arguments_agree_with_their_headers(
    tmp_path: Path, arguments: Any, headers: Any, status: int
) -> None:
    source = Cupboard()
    source.tool("there", input_schema=REGION)
    async with small_gate(tmp_path, source) as gate, client_of(gate) as client:
        reply = await client.modern_call("lab__there", arguments, headers=headers)
        assert reply.status == status
        if status == 400:
            assert reply.error["code"] == -32020


async def test_what_every_request_must_carry_is_asked_for_by_name(tmp_path: Path) -> None:
    async with small_gate(tmp_path, lab(echo=None)) as gate, client_of(gate) as client:
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}
        for missing in META:
            kept = {name: value for name, value in META.items() if name != missing}
            message = {"jsonrpc": "2.0", "id": "x", "method": "tools/list", "params": {"_meta": kept}}
            reply = await client.send("POST", encode(message), headers)
            assert (reply.status, reply.error["code"], reply.json["id"]) == (400, -32602, "x")
            assert missing in reply.error["message"]


async def test_an_unknown_revision_is_told_which_ones_there_are(tmp_path: Path) -> None:
    async with small_gate(tmp_path, lab(echo=None)) as gate, client_of(gate) as client:
        version = {"io.modelcontextprotocol/protocolVersion": "2027-01-01"}
        headers = {"MCP-Protocol-Version": "2027-01-01"}
        reply = await client.modern("tools/list", headers=headers, _meta=version)
        assert (reply.status, reply.error["code"]) == (400, -32022)
        assert reply.error["data"] == {"supported": [MODERN], "requested": "2027-01-01"}


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "x/y"])
async def test_methods_that_this_revision_does_not_have_are_not_found(tmp_path: Path, method: str) -> None:
    async with small_gate(tmp_path, lab(echo=None)) as gate, client_of(gate) as client:
        reply = await client.modern(method)
        assert (reply.status, reply.error["code"]) == (404, -32601)
        headers = {"MCP-Protocol-Version": MODERN}
        for verb in "GET", "DELETE":
            assert (await client.send(verb, headers=headers)).status == 405


async def test_log_messages_come_only_where_the_request_asked_for_them(tmp_path: Path) -> None:
    async def logs(job: Job) -> Any:
        conversation = job.case.call.conversation
        assert conversation is not None
        await conversation.notify("notifications/message", {"level": "info", "data": "line"})
        return "logged"

    async with small_gate(tmp_path, lab(logs=logs)) as gate, client_of(gate) as client:
        assert not (await client.modern_call("lab__logs")).streams
        wish = {"io.modelcontextprotocol/logLevel": "info"}
        events = await (await client.modern_call("lab__logs", _meta=wish)).events()
        assert [event.get("method") for event in events] == ["notifications/message", None]
        higher = {"io.modelcontextprotocol/logLevel": "error"}
        assert not (await client.modern_call("lab__logs", _meta=higher)).streams


async def test_an_upstreams_protocol_error_keeps_its_code_unless_this_revision_abolished_it(
    tmp_path: Path,
) -> None:
    def failing(code: int) -> Any:
        async def work(job: Job) -> Any:
            raise UpstreamError("lab: no", details={"server": "lab", "code": code, "data": {"why": "x"}})

        return work

    source = lab(needs=failing(-32021), old=failing(-32042))
    async with small_gate(tmp_path, source) as gate, client_of(gate) as client:
        needs = await client.modern_call("lab__needs")
        assert (needs.status, needs.error["code"]) == (400, -32021)
        assert needs.error["data"] == {"why": "x"}
        assert needs.error["message"].startswith("lab: ")
        assert (await client.modern_call("lab__old")).error["code"] == -32602
        assert (await client.call("lab__old")).error["code"] == -32042


async def test_hanging_up_cancels_a_call_that_runs(tmp_path: Path) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def hangs(job: Job) -> Any:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with small_gate(tmp_path, lab(hangs=hangs)) as gate, client_of(gate) as client:
        asking = asyncio.create_task(client.modern_call("lab__hangs"))
        await began.wait()
        client.replies[-1].hang_up()
        await ended.wait()
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await asking


async def test_hanging_up_leaves_a_question_to_a_person_open(tmp_path: Path) -> None:
    async with small_gate(tmp_path, lab(echo=None), rules=ASK) as gate, client_of(gate) as client:
        asking = asyncio.create_task(client.modern_call("lab__echo"))
        approval = await gate.approval()
        client.replies[-1].hang_up()
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await asking
        await client.modern("server/discover")
        assert [one.id for one in gate.inbox.open()] == [approval.id]


async def test_a_call_that_waits_comes_back_with_a_state_and_runs_once_however_often_it_is_used(
    tmp_path: Path,
) -> None:
    async with (
        small_gate(tmp_path, lab(echo=None), rules=ASK, hold=0.05) as gate,
        client_of(gate) as client,
    ):
        first = (await client.modern_call("lab__echo", {"a": 1})).result
        assert first["resultType"] == "input_required"
        state = first["requestState"]
        second = (await client.modern_call("lab__echo", {"a": 1}, requestState=state)).result
        assert second["resultType"] == "input_required"
        await gate.approve_and_wait()
        for used in (second["requestState"], state, state):
            done = (await client.modern_call("lab__echo", {"a": 1}, requestState=used)).result
            assert done["structuredContent"] == {"a": 1}
        assert len(gate.sources["lab"].jobs) == 1


async def test_a_client_that_was_sent_back_nine_times_is_told_where_to_find_the_result(
    tmp_path: Path,
) -> None:
    """The official clients give up after ten times, and their error names no call."""

    async with (
        small_gate(tmp_path, lab(echo=None), rules=ASK, hold=0.01) as gate,
        client_of(gate) as client,
    ):
        result, back = (await client.modern_call("lab__echo", {"a": 1})).result, 0
        while result["resultType"] == "input_required" and back < 20:
            state, back = result["requestState"], back + 1
            result = (await client.modern_call("lab__echo", {"a": 1}, requestState=state)).result
        ident = result["_meta"]["agent-gate/pending"]["call"]
        assert (back, result["resultType"]) == (9, "complete")
        assert f'gate_result with {{"id":"{ident}"}}' in text_of(result)
        await gate.approve_and_wait()
        done = (await client.modern_call("gate_result", {"id": ident})).result
        assert done["structuredContent"] == {"a": 1}
        assert len(gate.sources["lab"].jobs) == 1


async def test_a_state_is_refused_to_others_for_other_arguments_and_when_touched(tmp_path: Path) -> None:
    async with (
        small_gate(tmp_path, lab(echo=None), rules=ASK, hold=0.01) as gate,
        client_of(gate) as anna,
        client_of(gate, token=BERT) as bert,
    ):
        state = (await anna.modern_call("lab__echo", {"a": 1})).result["requestState"]
        flipped = state[:-2] + ("A" if state[-2] != "A" else "B") + state[-1]
        for client, arguments, used in (
            (bert, {"a": 1}, state),
            (anna, {"a": 2}, state),
            (anna, {"a": 1}, flipped),
            (anna, {"a": 1}, state + "-TAMPERED"),
            (anna, {"a": 1}, 7),
            (anna, {"a": 1}, ""),
        ):
            refused = await client.modern_call("lab__echo", arguments, requestState=used)
            assert (refused.status, refused.error["code"]) == (400, -32602)
        assert len(gate.inbox.open()) == 1
        assert gate.sources["lab"].jobs == []


async def test_the_upstreams_state_travels_sealed_and_comes_back_to_it_open(tmp_path: Path) -> None:
    async def asks(job: Job) -> Any:
        meta = job.case.call.meta
        if "inputResponses" in meta:
            return [meta["requestState"], meta["inputResponses"]]
        question = {"method": "elicitation/create", "params": {"message": "Who?"}}
        body = {"resultType": "input_required", "inputRequests": {"q": question}, "requestState": "secret-1"}
        return Result(encode(body), "mcp")

    async with (
        small_gate(tmp_path, lab(asks=asks)) as gate,
        client_of(gate) as anna,
        client_of(gate, token=BERT) as bert,
    ):
        reply = await anna.modern_call("lab__asks")
        assert b"secret-1" not in reply.body
        assert reply.result["inputRequests"]["q"]["params"] == {"message": "Who?"}
        answers = {"q": {"action": "accept", "content": {}}}
        more = {"requestState": reply.result["requestState"], "inputResponses": answers}
        done = (await anna.modern_call("lab__asks", **more)).result
        assert text_of(done) == encode(["secret-1", answers]).decode()
        assert (await bert.modern_call("lab__asks", **more)).error["code"] == -32602


async def test_a_further_round_runs_once_whatever_idempotency_keys_its_client_makes_up(
    tmp_path: Path,
) -> None:
    rounds: list[Any] = []

    async def asks(job: Job) -> Any:
        if "requestState" in job.case.call.meta:
            rounds.append(job.case.call.meta["requestState"])
            return "done"
        return Result(encode({"resultType": "input_required", "requestState": "first"}), "mcp")

    async with small_gate(tmp_path, lab(asks=asks), rules=ASK, hold=0.5) as gate, client_of(gate) as anna:
        asked = await anna.modern_call("lab__asks")
        await gate.approve()
        more = {"requestState": asked.result["requestState"]}
        state = (await anna.modern_call("lab__asks", **more)).result["requestState"]
        for number in range(5):
            key = {"agent-gate/idempotency-key": f"made-up-{number}"}
            again = await anna.modern_call("lab__asks", requestState=state, _meta=key)
            assert text_of(again.result) == "done"
        assert rounds == ["first"]


async def test_a_state_in_the_metadata_of_a_client_reaches_nobody(tmp_path: Path) -> None:
    source = lab(echo=None)
    async with small_gate(tmp_path, source) as gate, client_of(gate) as anna:
        forged = {"requestState": "forged", "inputResponses": {"q": {}}, "agent-gate/x": 1, "kept": 1}
        await anna.modern_call("lab__echo", _meta=forged)
        [job] = source.jobs
        assert job.case.call.meta["kept"] == 1
        assert not {"requestState", "inputResponses", "agent-gate/x"} & job.case.call.meta.keys()


@pytest.mark.parametrize("responses", [None, 5, [], {"q": 12345}])
async def test_answers_that_are_no_objects_are_refused(tmp_path: Path, responses: Any) -> None:
    async with small_gate(tmp_path, lab(echo=None)) as gate, client_of(gate) as client:
        reply = await client.modern_call("lab__echo", inputResponses=responses)
        assert reply.error["code"] == -32602
        assert gate.sources["lab"].jobs == []


async def test_a_listener_hears_what_it_asked_for_and_only_visible_changes(tmp_path: Path) -> None:
    source = lab(echo=None, hidden=None)
    rules = (*ALLOW, make_rule(pattern="lab__hidden*", action="deny"))
    async with small_gate(tmp_path, source, rules=rules) as gate, client_of(gate) as client:
        wanted = {"toolsListChanged": True, "resourceSubscriptions": ["lab://a"]}
        stream = await client.modern("subscriptions/listen", notifications=wanted)
        ack = await stream.event()
        assert ack["method"] == "notifications/subscriptions/acknowledged"
        assert ack["params"]["notifications"] == wanted
        stamp = ack["params"]["_meta"]
        source.tool("hidden", description="Changed out of sight")
        gate.publish()
        source.context["prompts"] = [{"name": "p"}]
        source.announce("notifications/prompts/list_changed")
        source.announce("notifications/resources/updated", uri="lab://b")
        source.announce("notifications/resources/updated", uri="lab://a")
        heard = await stream.event()
        assert heard["method"] == "notifications/resources/updated"
        assert heard["params"] == {"uri": "lab://a", "_meta": stamp}
        source.tool("another")
        gate.publish()
        assert (await stream.event())["method"] == "notifications/tools/list_changed"
        await gate.surface.close()
        assert (await stream.event())["result"] == {"resultType": "complete", "_meta": stamp}
