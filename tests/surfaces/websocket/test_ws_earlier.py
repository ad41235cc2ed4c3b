"""Agents written before there was an acknowledgement keep working, and leave nothing behind."""

import json
from pathlib import Path

import pytest
from tests.gateway import OTHER_TOKEN, TOKEN, Api
from tests.surfaces.websocket.earlier_client import EarlierClient
from tests.waiting import until
from tests.wsgate import ALLOWED, Home, started

LIGHT = {"entity_id": "light.a"}


async def waiting(home: Home) -> int:
    """How many results are kept and not known to have arrived."""
    await home.gateway.kept.store.flush()
    rows = await home.gateway.kept.store.read("SELECT COUNT(*) FROM results WHERE acknowledged_at IS NULL")
    return int(rows[0][0])


async def gone(home: Home) -> None:
    async def nothing_waits() -> bool:
        return not await waiting(home)

    await until(nothing_waits)


async def answered_while_away(home: Home, client: EarlierClient, verdict: str = "approve") -> int:
    """The id of a call whose connection was cut before a person answered."""
    ident = await client.request("turn_on", LIGHT)
    await home.asked()
    client.cut()
    await until(lambda: not home.gateway.ways_in.websocket.connected)
    await home.answer(verdict)
    if verdict == "approve":
        await home.settled("/turn_on")
    return ident


async def test_a_call_whose_connection_was_cut_resolves_after_the_reconnect(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, EarlierClient(home.url, TOKEN) as client:
        first = await client.request("get_state", ALLOWED)
        await until(lambda: first in client.resolved)
        ident = await answered_while_away(home, client)
        assert ident == 2
        client.mend()
        await until(lambda: ident in client.resolved)
        assert client.resolved[ident]["path"] == "/turn_on"
        assert await waiting(home) == 1, "nothing shows yet that it arrived"
        await client.request("get_state", ALLOWED)
        await gone(home)
        assert home.executed("/turn_on") == 1


async def test_a_denial_while_it_was_away_reaches_it_too(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, EarlierClient(home.url, TOKEN) as client:
        ident = await answered_while_away(home, client, "deny")
        client.mend()
        await until(lambda: ident in client.resolved)
        assert client.resolved[ident].args[0]["status"] == "denied"


async def test_a_row_that_did_not_arrive_is_there_again(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, EarlierClient(home.url, TOKEN) as client:
        await answered_while_away(home, client)
        async with home.agent(acknowledges=False) as reader:
            [row] = (await reader.ask("get_pending_results"))["result"]["results"]
            assert row["request_id"] == 1
            reader.socket.transport.abort()
        async with home.agent(acknowledges=False) as reader:
            [row] = (await reader.ask("get_pending_results"))["result"]["results"]
            assert row["request_id"] != 1, "it is not of the connection just before"
            assert len(row["request_id"]) == 32
            assert (await reader.ask("get_pending_results"))["result"]["results"] == []


async def test_what_was_delivered_live_is_not_kept(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home:
        for leave in (False, True):
            async with EarlierClient(home.url, TOKEN) as client:
                ident = await client.request("turn_on", LIGHT)
                await home.asked()
                await home.answer()
                await until(lambda ident=ident, client=client: ident in client.resolved)
                assert client.resolved[ident]["data"]["path"] == "/turn_on"
                if not leave:
                    assert await client.pending() == []
            await gone(home)


async def test_a_restart_of_the_gateway_is_a_cut_like_any_other(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, home.agent(acknowledges=False) as agent:
        await agent.request("turn_on", LIGHT, ident=7)
        await home.asked()
    async with started(tmp_path, api) as home:
        await home.answer()
        await home.settled("/turn_on")
        async with home.agent(acknowledges=False) as agent:
            [row] = (await agent.ask("get_pending_results"))["result"]["results"]
            assert row["request_id"] == 7
            assert json.loads(row["result"])["status"] == "executed"


async def test_two_connections_at_once_never_get_each_others_ids(tmp_path: Path, api: Api) -> None:
    async with (
        started(tmp_path, api) as home,
        EarlierClient(home.url, TOKEN) as one,
        EarlierClient(home.url, TOKEN) as two,
    ):
        await one.request("turn_on", LIGHT)
        await home.asked()
        one.cut()
        two.cut()
        await until(lambda: not home.gateway.ways_in.websocket.connected)
        await home.answer()
        await home.settled("/turn_on")
        two.mend()
        await until(lambda: two.seen)
        assert len(two.seen[0]["request_id"]) == 32


async def test_the_rows_of_another_agent_stay_its_own(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, EarlierClient(home.url, TOKEN) as client:
        await answered_while_away(home, client)
        async with EarlierClient(home.url, OTHER_TOKEN) as other:
            assert await other.pending() == []
            await other.request("get_state", ALLOWED)
        assert await waiting(home) == 1


async def test_an_agent_that_acknowledges_keeps_its_rows_until_it_does(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, EarlierClient(home.url, TOKEN) as client:
        await answered_while_away(home, client)
        async with home.agent() as agent:
            for _ in range(2):
                [row] = (await agent.ask("get_pending_results"))["result"]["results"]
                assert len(row["request_id"]) == 32
            assert row["client_id"] == 1


async def test_an_agent_that_authenticates_by_the_header_acknowledges_and_may_name_its_session(
    tmp_path: Path, api: Api
) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Agent-Session": "night"}

    async with started(tmp_path, api) as home:
        async with home.stranger(additional_headers=headers) as agent:
            await agent.request("turn_on", LIGHT, ident=7)
            assert (await home.asked()).session == "night"
        await home.answer()
        await home.settled("/turn_on")
        async with home.stranger(additional_headers=headers) as agent:
            for _ in range(2):
                [row] = (await agent.ask("get_pending_results"))["result"]["results"]
                assert (row["client_id"], len(row["request_id"])) == (7, 32)


async def test_a_session_with_a_name_gets_the_calls_own_ids(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home:
        async with home.agent(acknowledges=False, session="night") as agent:
            await agent.request("turn_on", LIGHT, ident=7)
            await home.asked()
        await home.answer()
        await home.settled("/turn_on")
        async with home.agent(acknowledges=False, session="night") as agent:
            [row] = (await agent.ask("get_pending_results"))["result"]["results"]
            assert (row["client_id"], len(str(row["request_id"]))) == (7, 32)


@pytest.mark.parametrize("method", ["list_tools", "tool_request"])
async def test_an_id_that_is_still_open_cannot_be_used_again(tmp_path: Path, api: Api, method: str) -> None:
    async with started(tmp_path, api) as home, home.agent() as agent:
        await agent.request("turn_on", LIGHT, ident=7)
        await home.asked()
        refused = await agent.ask(method, {"tool": "get_state", "args": ALLOWED}, ident=7)
        assert (refused["id"], refused["error"]["code"]) == (None, -32600)
        assert (
            refused["error"]["message"] == "Invalid request: the id 7 belongs to a request that is still open"
        )
        await home.answer()
        assert (await agent.reply())["result"]["data"]["path"] == "/turn_on"
        assert "result" in await agent.call("get_state", ALLOWED, ident=7)


async def test_binary_frames_and_other_versions_are_refused_and_the_connection_survives(
    tmp_path: Path, api: Api
) -> None:
    async with started(tmp_path, api) as home, home.agent() as agent:
        await agent.socket.send(json.dumps({"jsonrpc": "2.0", "method": "list_tools", "id": 1}).encode())
        assert (await agent.reply())["error"]["code"] == -32600
        await agent.socket.send(json.dumps({"jsonrpc": "1.0", "method": "list_tools", "id": 2}))
        refused = await agent.reply()
        assert (refused["id"], refused["error"]["code"]) == (2, -32600)
        assert "result" in await agent.ask("list_tools")
