"""What an agent can do over a WebSocket, with a client that we did not write."""

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.gateway import OTHER_TOKEN, TOKEN, Api, HeldReply
from tests.waiting import PATIENCE, until
from tests.wsgate import ALLOWED, LIMITED_TOKEN, NARROW_TOKEN, started
from websockets.exceptions import InvalidStatus

from agent_gate import Client
from agent_gate.results import kept

REPORTING = Path(__file__).parents[2] / "sources" / "mcp" / "sdk_server.py"


async def test_an_allowed_call_is_executed_and_its_data_is_the_services(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, home.agent() as agent:
        reply = await agent.call("get_state", ALLOWED, ident=7)
        assert reply["jsonrpc"] == "2.0"
        assert reply["id"] == 7
        assert reply["result"]["status"] == "executed"
        assert reply["result"]["data"]["path"] == "/states/sensor.temp"
        assert len(reply["result"]["request_id"]) == 32


async def test_a_trace_that_a_call_brings_goes_on_to_the_service(tmp_path: Path, api: Api) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    async with started(tmp_path, api) as home, home.agent() as agent:
        asked = {"tool": "get_state", "args": ALLOWED, "traceparent": parent}
        assert (await agent.ask("tool_request", asked))["result"]["status"] == "executed"
    sent = api.requests[-1]["headers"]["traceparent"]
    assert sent.split("-")[1] == parent.split("-")[1]
    assert sent.split("-")[2] != parent.split("-")[2]


async def test_a_tool_answers_to_its_id_and_its_alias(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, home.agent() as agent:
        ident = (await agent.ask("list_tools", {"tools": ["get_state"]}))["result"]["tools"][0]["id"]
        for name in (ident, "home:get_state"):
            assert (await agent.call(name, ALLOWED))["result"]["status"] == "executed"


async def test_list_tools_describes_what_the_caller_may_call(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, home.agent() as agent, home.agent(NARROW_TOKEN) as narrow:
        tools = (await agent.ask("list_tools"))["result"]["tools"]
        by_name = {tool["name"]: tool for tool in tools}
        assert set(by_name) == {"get_state", "forecast", "turn_on", "unlock"}
        shown = by_name["get_state"]
        assert shown["description"] == "Get the state of an entity"
        assert shown["service"] == "home"
        assert shown["args"] == {"entity_id": {"required": True, "validate": "^[a-z_.]+$"}}
        assert shown["id"].startswith("home:get_state")
        assert shown["input_schema"]["required"] == ["entity_id"]
        assert by_name["forecast"]["args"]["days"] == {"required": False}
        assert (await narrow.ask("list_tools"))["result"] == {"tools": []}


async def test_a_denied_call_and_a_hidden_tool_say_what_policy_says(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, home.agent() as agent, home.agent(NARROW_TOKEN) as narrow:
        denied = (await agent.call("unlock", {"entity_id": "lock.front_door"}))["error"]
        assert (denied["code"], denied["message"]) == (-32003, "Denied by policy")
        assert denied["data"]["code"] == "FORBIDDEN"
        assert denied["data"]["retryable"] is False
        assert (await agent.call("secret_door"))["error"]["code"] == -32003
        hidden = (await narrow.call("get_state", ALLOWED))["error"]
        absent = (await narrow.call("get_stats", ALLOWED))["error"]
        assert hidden["message"] == "Unknown tool: get_state"
        assert absent["message"] == "Unknown tool: get_stats"
        assert hidden["code"] == absent["code"] == -32004
        assert home.open == []


async def test_replies_come_as_calls_end_not_as_they_were_sent(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, home.agent() as agent:
        await agent.request("turn_on", {"entity_id": "light.a"}, ident="slow")
        await home.asked()
        assert (await agent.call("get_state", ALLOWED, ident="fast"))["id"] == "fast"
        await home.answer()
        reply = await agent.reply()
        assert reply["id"] == "slow"
        assert reply["result"]["status"] == "executed"


async def test_a_persons_no_and_an_approval_that_timed_out_have_their_own_codes(
    tmp_path: Path, api: Api
) -> None:
    async with started(tmp_path, api) as home, home.agent() as agent:
        terms = home.gateway.in_force.terms
        home.gateway.in_force.swap(replace(terms, settings=replace(terms.settings, approval_timeout=0.3)))
        await agent.request("turn_on", {"entity_id": "light.a"})
        await home.answer("deny", reason="not at night")
        denied = (await agent.reply())["error"]
        assert denied["code"] == -32001
        assert denied["message"] == "Denied by user\nReason: not at night"
        late = (await agent.call("turn_on", {"entity_id": "light.b"}))["error"]
        assert (late["code"], late["message"]) == (-32002, "Approval timed out")
        assert home.executed("/turn_on") == 0


async def test_too_many_calls_and_too_many_questions_are_rate_limited(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, home.agent(LIMITED_TOKEN) as agent:
        for number in range(2):
            await agent.request("turn_on", {"entity_id": f"light.{number}"}, ident=number)
        await home.asked(2)
        third = (await agent.call("turn_on", {"entity_id": "light.z"}, ident=3))["error"]
        assert third["code"] == -32006
        assert third["data"]["retryable"] is True
        assert third["data"]["retry_after"] > 0
        assert len(home.open) == 2
        replies = [await agent.call("get_state", ALLOWED, ident=number) for number in range(4, 8)]
        assert [reply.get("error", {}).get("code") for reply in replies] == [None, None, -32006, -32006]


async def test_results_stay_until_they_are_acknowledged(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home:
        async with home.agent(session="run-1") as agent:
            await agent.request("turn_on", {"entity_id": "light.a"}, ident=41)
            await home.asked()
        await home.answer()
        await home.settled("/turn_on")
        async with home.agent() as agent:
            for _ in range(2):
                [row] = (await agent.ask("get_pending_results"))["result"]["results"]
            assert row["client_id"] == 41
            assert row["session"] == "run-1"
            assert row["tool_name"] == "turn_on"
            assert json.loads(row["args"]) == {"entity_id": "light.a"}
            assert row["signature"] == "turn_on(light.a)"
            assert row["message_id"] is row["chat_id"] is None
            assert row["expires_at"] > row["created_at"]
            kept = json.loads(row["result"])
            assert kept["status"] == "executed"
            assert kept["data"]["path"] == "/turn_on"
            async with home.agent(OTHER_TOKEN) as other:
                stolen = await other.ask("ack_results", {"request_ids": [row["request_id"]]})
                assert stolen["result"] == {"acknowledged": 0}
                assert (await other.ask("get_pending_results"))["result"] == {"results": []}
            ack = await agent.ask("ack_results", {"request_ids": [row["request_id"]]})
            assert ack["result"] == {"acknowledged": 1}
            assert (await agent.ask("get_pending_results"))["result"] == {"results": []}


async def test_a_kept_denial_says_denied_and_why(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home:
        async with home.agent() as agent:
            await agent.request("turn_on", {"entity_id": "light.a"})
            await home.asked()
        await home.answer("deny")
        async with home.agent() as agent:
            [row] = (await agent.ask("get_pending_results"))["result"]["results"]
            kept = json.loads(row["result"])
            assert kept["status"] == "denied"
            assert kept["data"] == "Denied by user"
            assert kept["error"]["code"] == "APPROVAL_DENIED"


async def test_an_allowed_calls_result_is_kept_when_its_agent_left(tmp_path: Path, api: Api) -> None:
    held = api.replies["/states/sensor.temp"] = HeldReply()

    async with started(tmp_path, api) as home:
        async with home.agent() as agent:
            await agent.request("get_state", ALLOWED, ident="gone")
            await until(held.arrived.is_set)
        await until(lambda: home.gateway.ways_in.websocket.connected == 0)
        held.go_on.set()
        async with home.agent() as agent:
            await until(lambda: not home.gateway.calls.running())
            [row] = (await agent.ask("get_pending_results"))["result"]["results"]
            assert row["client_id"] == "gone"
            assert json.loads(row["result"])["data"]["path"] == "/states/sensor.temp"
    assert home.executed("/states/sensor.temp") == 1


async def test_cancel_withdraws_a_question_by_the_requests_id_or_the_calls_id(
    tmp_path: Path, api: Api
) -> None:
    async with started(tmp_path, api) as home, home.agent() as agent, home.agent(OTHER_TOKEN) as other:
        await agent.request("turn_on", {"entity_id": "light.a"}, ident=5)
        approval = await home.asked()
        assert (await other.ask("cancel", {"id": 5}))["result"] == {"cancelled": False}
        assert (await other.ask("cancel", {"id": approval.call_id}))["result"] == {"cancelled": False}
        await agent.send(id=6, method="cancel", params={"id": 5})
        replies = {reply["id"]: reply for reply in [await agent.reply(), await agent.reply()]}
        assert replies[6]["result"] == {"cancelled": True}
        assert replies[5]["error"]["code"] == -32001
        assert "Withdrawn" in replies[5]["error"]["message"]
        await agent.request("turn_on", {"entity_id": "light.b"}, ident=7)
        call_id = (await home.asked()).call_id
        await agent.send(id=8, method="cancel", params={"id": call_id})
        assert {(await agent.reply())["id"], (await agent.reply())["id"]} == {7, 8}
        assert home.open == []
        assert home.executed("/turn_on") == 0


async def test_an_idempotency_key_runs_a_call_once_over_two_connections(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, home.agent() as one, home.agent() as two:
        await one.request("turn_on", {"entity_id": "light.a"}, ident=1, idempotency_key="k")
        await home.asked()
        await two.request("turn_on", {"entity_id": "light.a"}, ident=9, idempotency_key="k")
        await home.answer()
        first, second = await one.reply(), await two.reply()
        assert first["result"] == second["result"]
        again = await two.call("turn_on", {"entity_id": "light.a"}, ident=10, idempotency_key="k")
        assert again["result"] == first["result"]
        assert home.executed("/turn_on") == 1


async def test_an_agent_that_asks_for_it_hears_what_its_call_waits_for(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, home.agent() as agent:
        await agent.request("turn_on", {"entity_id": "light.a"}, ident=3, progress=True)
        approval = await home.answer()
        assert (await agent.reply())["result"]["status"] == "executed"
        accepted, told = agent.notified
        assert accepted["method"] == "accepted"
        assert accepted["params"] == {"id": 3, "request_id": approval.call_id}
        assert told["method"] == "waiting"
        assert told["params"]["id"] == 3
        assert told["params"]["request_id"] == approval.call_id
        assert told["params"]["signature"] == "turn_on(light.a)"
        await agent.request("turn_on", {"entity_id": "light.b"}, ident=4)
        await home.answer()
        await agent.reply()
        assert len(agent.notified) == 2


async def test_what_a_tool_reports_reaches_the_agent_that_asked_for_it(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, home.agent() as agent, Client(home.url, TOKEN) as client:
        server = json.dumps({"command": sys.executable, "args": [str(REPORTING), "stdio"]})
        with (tmp_path / "config.yaml").open("a") as config:
            config.write(f"mcpServers: {{lab: {server}}}\n")
        await home.gateway.reload()
        await until(lambda: home.gateway.supervisor.shelf.catalog.find("lab__steps"))
        await agent.request("lab__steps", ident=3, progress=True)
        await home.answer()
        assert "result" in await agent.reply()
        told = [note["params"] for note in agent.notified if note["method"] == "progress"]
        expected = [{"progress": n, "total": 3, "message": f"step {n}"} for n in range(3)]
        assert told == [{"id": 3, **each} for each in expected]
        heard: list[Any] = []
        call = asyncio.create_task(client.call("lab__steps", on_progress=heard.append))
        await home.answer()
        await call
        assert [{**each, "id": 3} for each in heard] == told


async def test_without_a_name_the_connection_is_the_session(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, home.agent() as one, home.agent() as two:
        for number, agent in enumerate((one, one, two), start=1):
            await agent.request("turn_on", {"entity_id": f"light.{number}"}, ident=number)
            await home.asked(number)
        first, second, other = (approval.session for approval in home.open)
        assert first == second != other


async def test_a_tool_runs_no_longer_than_its_caller_wants_and_the_record_names_the_callers_trace(
    tmp_path: Path, api: Api
) -> None:
    held = api.replies["/states/sensor.temp"] = HeldReply()
    trace = f"00-{'a' * 32}-{'b' * 16}-01"

    async with started(tmp_path, api) as home, home.agent() as agent:
        late = await agent.call("get_state", ALLOWED, timeout=0.1, traceparent=trace)
        held.go_on.set()
        assert late["error"]["data"]["code"] in ("TIMEOUT", "OUTCOME_UNKNOWN")
        [recorded] = [
            row
            for row in await home.gateway.kept.store.read("SELECT body FROM record ORDER BY seq")
            if trace in str(row[0])
        ]
        assert json.loads(recorded[0])["trace"] == trace


async def test_a_result_of_five_megabytes_reaches_a_good_reader(tmp_path: Path, api: Api) -> None:
    text = "x" * 5_000_000
    api.replies["/states/sensor.temp"] = (200, {}, json.dumps({"text": text}).encode())

    async with started(tmp_path, api) as home, home.agent() as agent:
        for number in range(3):
            await agent.request("get_state", ALLOWED, ident=number)
        for _ in range(3):
            assert (await agent.reply())["result"]["data"]["text"] == text


async def test_a_running_call_is_answered_before_the_gateway_stops(tmp_path: Path, api: Api) -> None:
    held = api.replies["/states/sensor.temp"] = HeldReply()

    async with started(tmp_path, api) as home, home.agent() as agent:
        await agent.request("turn_on", {"entity_id": "light.a"}, ident="asked")
        await home.asked()
        await agent.request("get_state", ALLOWED, ident="running")
        await until(held.arrived.is_set)
        stopping = asyncio.create_task(home.gateway.ways_in.websocket.drain(10))
        await asyncio.sleep(0)
        late = (await agent.call("get_state", ALLOWED, ident="late"))["error"]["data"]
        assert (late["retryable"], late["details"]) == (True, {"stopping": True})
        held.go_on.set()
        assert (await agent.reply())["id"] == "running"
        assert await agent.closed() == 1001
        await stopping
        assert len(home.open) == 1


async def test_agents_for_whom_nothing_runs_are_sent_on_at_once_when_the_gateway_stops(
    tmp_path: Path, api: Api
) -> None:
    held = api.replies["/states/sensor.temp"] = HeldReply()

    async with (
        started(tmp_path, api) as home,
        home.agent() as waiting,
        home.agent(OTHER_TOKEN) as idle,
        home.agent() as busy,
    ):
        await waiting.request("turn_on", {"entity_id": "light.a"}, ident="asked")
        await home.asked()
        await busy.request("get_state", ALLOWED, ident="running")
        await until(held.arrived.is_set)
        stopping = asyncio.create_task(home.gateway.ways_in.websocket.drain(10))
        assert (await waiting.closed(), await idle.closed()) == (1001, 1001)
        with pytest.raises(InvalidStatus, match="503"):
            await home.stranger().__aenter__()
        held.go_on.set()
        assert (await busy.reply())["id"] == "running"
        await stopping


async def test_a_revoked_agent_is_closed_when_the_configuration_is_reloaded(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, home.agent(OTHER_TOKEN) as other, home.agent() as agent:
        path = tmp_path / "config.yaml"
        path.write_text(path.read_text().replace(OTHER_TOKEN, "another-token-for-the-other-agent"))
        (tmp_path / "config.yaml").write_text(
            "\n".join(line for line in path.read_text().splitlines() if not line.startswith("  other:"))
        )
        await home.gateway.reload()
        assert await other.closed() == 1008
        assert (await agent.call("get_state", ALLOWED))["result"]["status"] == "executed"


@pytest.mark.parametrize(("limit", "most"), [("MOST_ROWS", 2), ("MOST_BYTES", 150)])
async def test_kept_results_come_in_replies_that_a_connection_can_carry(
    tmp_path: Path, api: Api, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(kept, limit, most)

    async with started(tmp_path, api) as home, home.agent() as agent:
        made = []
        for number in range(5):
            reply = await agent.call("get_state", ALLOWED, ident=number, idempotency_key=f"key-{number}")
            made.append(reply["result"]["request_id"])
        seen: list[str] = []
        replies = 0
        while len(seen) < len(made):
            page = (await agent.ask("get_pending_results"))["result"]
            found = [row["request_id"] for row in page["results"]]
            assert 0 < len(found) < len(made)
            await agent.ask("ack_results", {"request_ids": found})
            seen, replies = found + seen, replies + 1
            assert page.get("more", False) is (len(seen) < len(made))
        assert (seen, replies > 1) == (made, True)


@pytest.mark.parametrize("way", ["message", "header"])
async def test_a_connection_made_with_a_token_that_was_replaced_is_closed(
    tmp_path: Path, api: Api, way: str
) -> None:
    async with started(tmp_path, api) as home, home.agent() as agent:
        headers = {"Authorization": f"Bearer {OTHER_TOKEN}"} if way == "header" else None
        async with home.stranger(additional_headers=headers) as leaked:
            if way == "message":
                await leaked.ask("auth", {"token": OTHER_TOKEN})
            assert (await leaked.call("get_state", ALLOWED))["result"]["status"] == "executed"
            path = tmp_path / "config.yaml"
            path.write_text(path.read_text().replace(OTHER_TOKEN, "a-new-token-for-the-other-agent"))
            await home.gateway.reload()
            async with asyncio.timeout(PATIENCE):
                assert await leaked.closed() == 1008
        assert (await agent.call("get_state", ALLOWED))["result"]["status"] == "executed"


async def test_the_token_is_never_needed_twice_and_never_changes_its_caller(tmp_path: Path, api: Api) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with started(tmp_path, api) as home, home.stranger("/ws", additional_headers=headers) as agent:
        assert (await agent.call("get_state", ALLOWED))["result"]["status"] == "executed"
        again = await agent.ask("auth", {"token": TOKEN, "session": "s"}, ident="auth-1")
        assert again["result"] == {"status": "authenticated", "agent": "first"}
        foreign = await agent.ask("auth", {"token": OTHER_TOKEN}, ident="auth-2")
        assert foreign["error"]["code"] == -32005
        assert await agent.closed() == 1008


async def test_a_session_or_a_key_with_a_nul_is_refused_because_not_every_store_can_keep_it(
    tmp_path: Path, api: Api
) -> None:
    async with started(tmp_path, api) as home, home.agent() as agent:
        call = {"tool": "get_state", "args": ALLOWED, "idempotency_key": "k\0"}
        for method, params in (("tool_request", call), ("auth", {"token": TOKEN, "session": "s\0"})):
            said = await agent.ask(method, params, ident=method)
            assert "none of them NUL" in said["error"]["message"]


EXECUTED = {"tool_id": "home:turn_on", "args": {"entity_id": "light.bed"}}


async def test_a_call_by_tool_execute_is_of_its_connections_session_and_can_be_cancelled(
    tmp_path: Path, api: Api
) -> None:
    async with started(tmp_path, api) as home, home.agent(session="night") as agent:
        await agent.send(id=5, method="tool_execute", params=EXECUTED)
        assert (await home.asked()).session == "night"
        await agent.send(id=6, method="cancel", params={"id": 5})
        replies = {reply["id"]: reply for reply in [await agent.reply(), await agent.reply()]}
        assert replies[6]["result"] == {"cancelled": True}
        assert replies[5]["error"]["data"]["code"] == "APPROVAL_DENIED"
        assert (home.open, home.executed("/turn_on")) == ([], 0)


async def test_a_stop_does_not_wait_for_a_person_whom_tool_execute_asked(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, home.agent() as agent:
        await agent.send(id=5, method="tool_execute", params=EXECUTED)
        await home.asked()
        async with asyncio.timeout(PATIENCE):
            await home.gateway.ways_in.websocket.drain(3600)
        assert len(home.open) == 1
