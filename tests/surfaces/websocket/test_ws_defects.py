"""What earlier gateways got wrong on this protocol, each as a test that names it."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.gateway import OTHER_TOKEN, Api, HeldReply
from tests.waiting import until
from tests.wsgate import ALLOWED, Home, started

from agent_gate.core.approval import Approval
from agent_gate.core.call import Pending


async def test_an_approved_call_whose_agent_left_runs_exactly_once(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home:
        async with home.agent() as agent:
            await agent.request("turn_on", {"entity_id": "light.a"})
            await home.asked()
            agent.socket.transport.abort()
        await home.answer()
        await home.settled("/turn_on")
        async with home.agent() as agent:
            assert len((await agent.ask("get_pending_results"))["result"]["results"]) == 1
        assert home.executed("/turn_on") == 1


async def test_an_agent_may_come_back_while_its_approval_is_pending(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home:
        async with home.agent() as agent:
            await agent.request("turn_on", {"entity_id": "light.a"}, ident=1)
            await home.asked()
        async with home.agent() as back, home.agent() as beside:
            assert (await beside.call("get_state", ALLOWED))["result"]["status"] == "executed"
            await back.request("turn_on", {"entity_id": "light.a"}, ident=2)
            await asyncio.sleep(0)
            await home.answer()
            assert (await back.reply())["id"] == 2
        assert home.executed("/turn_on") == 1


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({}, "Missing required argument: entity_id"),
        ({"entity_id": "NOT VALID"}, "Invalid value for entity_id"),
        ({"entity_id": "a(b)"}, "Argument 'entity_id' contains forbidden characters"),
        ({"entity_id": ["lock.front"]}, "Invalid value for entity_id"),
    ],
)
async def test_a_missing_or_bad_argument_is_answered_and_recorded(
    tmp_path: Path, api: Api, args: dict[str, object], message: str
) -> None:
    async with started(tmp_path, api) as home, home.agent() as agent:
        reply = await agent.call("get_state", args, ident="x")
        assert reply["id"] == "x"
        said = reply["error"]["message"].partition("\n")[0]
        assert (reply["error"]["code"], said) == (-32600, message)
        await home.gateway.kept.store.flush()
        [(state, tool)] = await home.gateway.kept.store.read("SELECT state, tool FROM record")
        assert state == "refused"
        assert tool.startswith("home:get_state")


async def test_a_services_mapped_error_reaches_the_agent_without_its_credential(
    tmp_path: Path, api: Api
) -> None:
    api.replies["/states/sensor.temp"] = (404, {}, b'{"echo": "the-secret-of-the-service"}')

    async with started(tmp_path, api) as home, home.agent() as agent:
        error = (await agent.call("get_state", ALLOWED))["error"]
        assert (error["code"], error["message"]) == (-32004, "Entity not found")
        api.replies["/states/sensor.temp"] = (500, {}, b'{"echo": "the-secret-of-the-service"}')
        other = (await agent.call("get_state", ALLOWED))["error"]
        assert other["data"]["code"] == "UPSTREAM_ERROR"
        assert "the-secret-of-the-service" not in json.dumps(other)


@pytest.mark.parametrize("args", [[], ["a"], "text", 7, True])
async def test_args_that_are_no_object_are_answered(tmp_path: Path, api: Api, args: object) -> None:
    async with started(tmp_path, api) as home, home.agent() as agent:
        reply = await agent.ask("tool_request", {"tool": "get_state", "args": args}, ident=3)
        assert (reply["id"], reply["error"]["code"]) == (3, -32600)
        array = await agent.ask("tool_request", [{"tool": "get_state"}], ident=4)
        assert (array["id"], array["error"]["code"]) == (4, -32600)


async def test_equal_request_ids_of_two_agents_never_mix(tmp_path: Path, api: Api) -> None:
    async def many(home: Home, token: str, prefix: str) -> None:
        async with home.agent(token) as agent:
            for number in range(30):
                name = f"{prefix}.{'abcdefghij'[number % 10]}"
                reply = await agent.call("get_state", {"entity_id": name}, ident=0)
                assert reply["result"]["data"]["path"] == f"/states/{name}"

    async with started(tmp_path, api) as home:
        tokens = (("one", OTHER_TOKEN), ("two", OTHER_TOKEN))
        await asyncio.gather(*(many(home, token, prefix) for prefix, token in tokens))
        async with home.agent() as one, home.agent() as two:
            await one.request("turn_on", {"entity_id": "light.one"}, ident=1)
            await home.asked(1)
            await two.request("turn_on", {"entity_id": "light.two"}, ident=1)
            await home.asked(2)
            for approval in list(home.open):
                assert approval.call.client_id == 1
            assert len({approval.call_id for approval in home.open}) == 2


async def test_an_unknown_tool_is_refused_and_nobody_is_asked(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, home.agent() as agent:
        error = (await agent.call("open_the_gate", {"a": 1}))["error"]
        assert (error["code"], error["message"]) == (-32004, "Unknown tool: open_the_gate")
        assert error["data"]["code"] == "TOOL_NOT_FOUND"
        assert home.open == []


async def test_twenty_equal_questions_are_one_question_and_one_execution(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, home.agent() as agent:
        for number in range(20):
            await agent.request("turn_on", {"entity_id": "light.same"}, ident=number)
        await home.asked()
        await asyncio.sleep(0)
        assert len(home.open) == 1
        await home.answer()
        replies = [await agent.reply() for _ in range(20)]
        assert {reply["id"] for reply in replies} == set(range(20))
        assert home.executed("/turn_on") == 1


async def test_a_channel_that_fails_leaves_the_question_open_and_its_agent_waiting(
    tmp_path: Path, api: Api
) -> None:
    def broken(_approval: Approval) -> None:
        raise RuntimeError("the messenger is away")

    async with started(tmp_path, api) as home, home.agent() as agent:
        home.gateway.kept.inbox.subscribe(broken)
        await agent.request("turn_on", {"entity_id": "light.a"})
        await home.answer()
        assert (await agent.reply())["result"]["status"] == "executed"


async def test_a_call_that_was_approved_while_its_source_is_away_is_neither_lost_nor_run_twice(
    tmp_path: Path, api: Api
) -> None:
    async with started(tmp_path, api) as home:
        supervisor = home.gateway.supervisor
        plan = supervisor.keepers["home"].plan
        supervisor.publish(plan, None, False)
        async with home.agent() as agent:
            await agent.request("turn_on", {"entity_id": "light.a"}, idempotency_key="k")
            await home.answer()
        async with home.agent() as agent:
            await agent.request("turn_on", {"entity_id": "light.a"}, idempotency_key="k")
            await agent.ask("list_tools", ident="meanwhile")
            assert home.executed("/turn_on") == 0
            supervisor.publish(plan, None, True)
            assert (await agent.reply())["result"]["status"] == "executed"
        assert home.executed("/turn_on") == 1


async def test_the_outcome_of_a_running_call_is_told_to_its_own_caller_only(tmp_path: Path, api: Api) -> None:
    held = api.replies["/states/sensor.temp"] = HeldReply()

    async with started(tmp_path, api) as home, home.agent() as agent:
        await agent.request("get_state", ALLOWED)
        await until(held.arrived.is_set)
        calls, tokens = home.gateway.calls, home.gateway.ways_in.tokens
        [running] = calls.running()
        other = await calls.await_outcome(running.case.call.id, tokens.caller("other"), wait=0)
        assert other.error.message == "There is no such call"
        own = await calls.await_outcome(running.case.call.id, tokens.caller("first"), wait=0)
        assert isinstance(own, Pending)
        held.go_on.set()
        assert (await agent.reply())["result"]["status"] == "executed"
