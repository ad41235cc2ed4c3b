"""The Python client against a real gateway: data, typed errors, and connections that break."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.gateway import TOKEN, Api, HeldReply, running
from tests.waiting import until
from tests.wsgate import ALLOWED, LIMITED_TOKEN, Home, files, started

from agent_gate import Client, SyncClient
from agent_gate.client.wire import WireError
from agent_gate.errors import (
    ApprovalDenied,
    CallTimeout,
    ConfigError,
    Forbidden,
    GatewayError,
    HTTPServiceError,
    InvalidArgs,
    RateLimited,
    ToolNotFound,
    Unauthorized,
    Unreachable,
    UpstreamError,
    by_code,
)
from agent_gate.surfaces.websocket.agent import Agent

HEAVY = (
    "cryptography",
    "httptools",
    "jsonschema_rs",
    "uvloop",
    "ruamel",
    "agent_gate.app",
    "agent_gate.net.http",
    "agent_gate.net.tls.files",
    "click",
)


def gate(home: Home, token: str = TOKEN, **options: Any) -> Client:
    return Client(home.url, token, **options)


async def drop(home: Home) -> None:
    """Cut every agent's connection, as a network does."""
    for agent in list(home.gateway.ways_in.websocket._agents):
        agent.ws.transport.abort()
    await until(lambda: home.gateway.ways_in.websocket.connected == 0)


async def test_a_token_with_the_line_break_of_its_file_is_taken(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, gate(home, f"{TOKEN}\n") as client:
        assert await client.call("get_state", ALLOWED)


@pytest.mark.parametrize("token", ["hunter2\nhunter2", "hunter2\udcff", "hunter2\u20ac"])
def test_a_token_that_cannot_be_sent_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(Unreachable, match="the agent token has a character") as refused:
        Client("ws://127.0.0.1:1", token)
    assert "hunter2" not in str(refused.value)


async def test_text_that_is_not_unicode_is_an_invalid_argument(tmp_path: Path, api: Api) -> None:
    with pytest.raises(InvalidArgs, match="The session's name"):
        Client("ws://127.0.0.1:1", TOKEN, session="\udcff")

    async with started(tmp_path, api) as home, gate(home) as client:
        with pytest.raises(InvalidArgs, match="not Unicode"):
            await client.call("get_state", {"entity_id": "\udcff"})
        assert await client.call("get_state", ALLOWED)


async def test_a_call_returns_the_data_and_leaves_nothing_pending(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, gate(home) as client:
        data = await client.call("get_state", ALLOWED)
        assert data["path"] == "/states/sensor.temp"
        [tool] = await client.tools(["get_state"])
        assert tool["args"]["entity_id"]["required"] is True
        assert len(await client.tools()) == 4
        assert await client.pending() == []


async def test_every_refusal_is_the_error_it_is_in_the_tree(tmp_path: Path, api: Api) -> None:
    api.replies["/states/sensor.gone"] = (404, {}, b"{}")

    async with started(tmp_path, api) as home, gate(home) as client:
        with pytest.raises(Forbidden, match=r"^Denied by policy$"):
            await client.call("unlock", {"entity_id": "lock.front"})
        with pytest.raises(ToolNotFound, match="Unknown tool: nothing"):
            await client.call("nothing")
        with pytest.raises(InvalidArgs, match="Missing required argument: entity_id"):
            await client.call("get_state")
        with pytest.raises(UpstreamError, match="Entity not found"):
            await client.call("get_state", {"entity_id": "sensor.gone"})
        asked = asyncio.create_task(client.call("turn_on", {"entity_id": "light.a"}))
        await home.answer("deny")
        with pytest.raises(ApprovalDenied, match="Denied by user"):
            await asked
        async with gate(home, LIMITED_TOKEN) as limited:
            for _ in range(5):
                await limited.call("get_state", ALLOWED)
            with pytest.raises(RateLimited) as caught:
                await limited.call("get_state", ALLOWED)
            assert caught.value.retry_after > 0
        assert await client.pending() == []


def test_every_outward_code_comes_back_as_its_own_class() -> None:
    for code, cls in by_code().items():
        error = WireError(code=cls.rpc, message="m", data={"code": code, "message": "m"}).error()
        assert type(error) is cls
    assert type(WireError(code=-32001, message="m").error()) is ApprovalDenied
    assert WireError(code=-1, message="m").error().code == "INTERNAL"
    assert issubclass(HTTPServiceError, GatewayError)


async def test_a_call_survives_a_lost_connection_and_runs_once(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, gate(home) as client:
        calls = [asyncio.create_task(client.call("turn_on", {"entity_id": f"light.{n}"})) for n in "abc"]
        await home.asked(3)
        await drop(home)
        await until(lambda: home.gateway.ways_in.websocket.connected == 1)
        while home.open:
            await home.answer()
        assert [data["path"] for data in await asyncio.gather(*calls)] == ["/turn_on"] * 3
        assert home.executed("/turn_on") == 3
        assert await client.pending() == []


async def test_a_result_that_came_while_the_client_was_away_has_its_data(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, gate(home) as client:
        call = asyncio.create_task(client.call("turn_on", {"entity_id": "light.a"}))
        await home.asked()
        home.gateway.listeners.public.upgrade = None
        await drop(home)
        await home.answer()
        await home.settled("/turn_on")
        home.gateway.listeners.public.upgrade = home.gateway.ways_in.websocket.upgrade
        assert (await call)["path"] == "/turn_on"
        await until(lambda: not client._received)
        assert await client.pending() == []
        assert home.executed("/turn_on") == 1


async def test_a_call_made_while_the_gateway_is_away_waits_for_it(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, gate(home) as client:
        home.gateway.listeners.public.upgrade = None
        await drop(home)
        await until(lambda: client._link is None)
        call = asyncio.create_task(client.call("get_state", ALLOWED))
        await asyncio.sleep(0)
        home.gateway.listeners.public.upgrade = home.gateway.ways_in.websocket.upgrade
        assert (await call)["path"] == "/states/sensor.temp"


async def test_a_client_waits_longer_each_time_and_never_in_step_with_others(
    tmp_path: Path, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds: list[tuple[float, float]] = []

    def uniform(least: float, most: float) -> float:
        bounds.append((least, most))
        return 0.0

    async with started(tmp_path, api) as home, gate(home) as client:
        monkeypatch.setattr("random.uniform", uniform)
        home.gateway.listeners.public.upgrade = None
        await drop(home)
        await until(lambda: len(bounds) >= 9)
        assert bounds[:9] == [(0, min(0.25 * 2**n, 30.0)) for n in range(9)]
        await client.close()


async def test_pending_calls_survive_the_gateways_restart(tmp_path: Path, api: Api) -> None:
    with running(tmp_path, files(api), "--insecure") as gateway:
        port = gateway.url.rpartition(":")[2]
        async with Client(gateway.url, TOKEN) as client:
            call = asyncio.create_task(client.call("turn_on", {"entity_id": "light.a"}))
            await until(lambda: gateway.admin.get("/api/approvals"))
            await asyncio.to_thread(gateway.kill)
            gateway.options = ("--insecure", "--port", port)
            await asyncio.to_thread(gateway.start)
            await asyncio.to_thread(gateway.answer)
            assert (await call)["path"] == "/turn_on"
            assert len(api.requests) == 1


async def test_what_a_gateway_refuses_because_it_stops_is_sent_to_the_next_one(
    tmp_path: Path, api: Api
) -> None:
    held = api.replies["/states/sensor.temp"] = HeldReply()
    with running(tmp_path, files(api), "--insecure") as gateway:
        port = gateway.url.rpartition(":")[2]
        async with Client(gateway.url, TOKEN) as client:
            first = asyncio.create_task(client.call("get_state", ALLOWED))
            await until(held.arrived.is_set)
            gateway.process.send_signal(signal.SIGTERM)
            await until(lambda: gateway.request("GET", "/ready", token=None).status == 503)
            late = client.start("forecast", {})
            held.go_on.set()
            assert (await first)["path"] == "/states/sensor.temp"
            await asyncio.to_thread(gateway.stop)
            gateway.options = ("--insecure", "--port", port)
            await asyncio.to_thread(gateway.start)
            assert (await client.reply(late)).data["path"].startswith("/forecast")


async def test_without_reconnecting_a_lost_connection_is_unreachable(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, gate(home, reconnect=False) as client:
        call = asyncio.create_task(client.call("turn_on", {"entity_id": "light.a"}))
        await home.asked()
        await drop(home)
        with pytest.raises(Unreachable):
            await call
        with pytest.raises(Unreachable):
            await client.tools()


async def test_a_client_whose_token_was_revoked_says_so_on_every_call(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, gate(home) as client:
        waiting = asyncio.create_task(client.call("turn_on", {"entity_id": "light.a"}))
        await home.asked()
        home.gateway.ways_in.tokens.replace([])
        await drop(home)
        with pytest.raises(Unauthorized):
            await waiting
        with pytest.raises(Unauthorized):
            await client.call("get_state", ALLOWED, timeout=2)


async def test_a_result_is_acknowledged_also_when_the_gateway_leaves_right_after_it(
    tmp_path: Path, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answers_and_leaves(agent: Agent, text: str) -> bool:
        monkeypatch.undo()
        agent.ws.send(text)
        agent.ws.close(1001, "the gateway is shutting down")
        return True

    async with started(tmp_path, api) as home, gate(home) as client:
        call = asyncio.create_task(client.call("turn_on", {"entity_id": "light.a"}))
        await home.asked()
        first = client._link
        monkeypatch.setattr(Agent, "deliver", answers_and_leaves)
        await home.answer()
        assert (await call)["path"] == "/turn_on"
        await until(lambda: client._link not in (None, first))

        async def has_nothing_pending() -> bool:
            return not await client.pending()

        assert await until(has_nothing_pending)


async def test_a_result_that_an_earlier_run_of_the_session_left_is_not_taken_for_a_new_calls(
    tmp_path: Path, api: Api
) -> None:
    async with started(tmp_path, api) as home:
        async with gate(home, session="nightly") as earlier:
            left = asyncio.create_task(earlier.call("turn_on", {"entity_id": "light.a"}))
            await home.asked()
        with pytest.raises(Unreachable):
            await left
        await home.answer()
        await home.settled("/turn_on")
        async with gate(home, session="nightly") as client:
            call = asyncio.create_task(client.call("unlock", {"entity_id": "lock.back"}))
            await home.asked()
            await drop(home)
            await until(lambda: home.gateway.ways_in.websocket.connected == 1)
            assert len(await client.pending()) == 1
            await home.answer()
            assert (await call)["path"] == "/unlock"
            assert [row["tool_name"] for row in await client.pending()] == ["turn_on"]


async def test_a_callback_that_fails_costs_neither_the_call_nor_the_connection(
    tmp_path: Path, api: Api
) -> None:
    async with started(tmp_path, api) as home, gate(home) as client:
        told: list[Any] = []

        def fails(params: Any) -> None:
            told.append(params)
            raise KeyError("total")

        call = asyncio.create_task(client.call("turn_on", {"entity_id": "light.a"}, on_waiting=fails))
        await until(lambda: told)
        link = client._link
        await home.answer()
        assert (await call)["path"] == "/turn_on"
        assert client._link is link


async def test_a_local_timeout_leaves_the_call_to_the_gateway(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, gate(home) as client:
        with pytest.raises(CallTimeout, match=r"No answer within 0\.05 s"):
            await client.call("turn_on", {"entity_id": "light.a"}, timeout=0.05)
        await home.answer()
        await home.settled("/turn_on")
        [row] = await client.pending()
        assert await client.acknowledge([row["request_id"]]) == 1


async def test_a_request_leaves_its_result_kept_until_it_is_acknowledged(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, gate(home) as client:
        reply = await client.request("get_state", ALLOWED)
        assert reply.data["path"] == "/states/sensor.temp"
        await client.close()
        async with gate(home) as again:
            assert [row["request_id"] for row in await again.pending()] == [reply.call_id]
            assert await again.acknowledge([reply.call_id]) == 1
            assert await again.pending() == []


async def test_a_call_that_was_started_is_waited_for_or_withdrawn_later(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, gate(home) as client:
        wanted = client.start("turn_on", {"entity_id": "light.a"})
        unwanted = client.start("turn_on", {"entity_id": "light.b"})
        await home.asked(2)
        assert await client.withdraw(unwanted) is True
        with pytest.raises(ApprovalDenied, match="Withdrawn"):
            await client.reply(unwanted)
        await home.answer()
        assert (await client.reply(wanted)).data["path"] == "/turn_on"
        assert home.executed("/turn_on") == 1


async def test_a_tool_runs_no_longer_than_its_run_timeout(tmp_path: Path, api: Api) -> None:
    held = api.replies["/states/sensor.temp"] = HeldReply()

    async with started(tmp_path, api) as home, gate(home) as client:
        with pytest.raises(GatewayError) as late:
            await client.call("get_state", ALLOWED, run_timeout=0.1)
        held.go_on.set()
        assert late.value.code in ("TIMEOUT", "OUTCOME_UNKNOWN")


async def test_callbacks_hear_what_is_waited_for_and_cancel_takes_it_back(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, gate(home) as client:
        told: list[Any] = []
        call = asyncio.create_task(client.call("turn_on", {"entity_id": "light.a"}, on_waiting=told.append))
        await until(lambda: told)
        assert told[0]["signature"] == "turn_on(light.a)"
        assert await client.cancel(told[0]["request_id"]) is True
        with pytest.raises(ApprovalDenied, match="Withdrawn"):
            await call
        assert home.open == []


async def test_the_wrong_kind_of_address_is_told_with_the_right_one(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home:
        with pytest.raises(Unreachable, match=r"TLS failed.*\n.*ws://"):
            async with Client(home.url.replace("ws://", "wss://"), TOKEN):
                pass

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Unreachable, match=r"closed\n.*wss://"):
            async with Client(f"ws://127.0.0.1:{port}", TOKEN):
                pass


async def test_a_wrong_token_and_an_absent_gateway_are_told_at_once(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home:
        with pytest.raises(Unauthorized, match="Invalid token"):
            async with gate(home, "wrong"):
                pass
        url = home.url
    with pytest.raises(Unreachable, match="Connection refused"):
        async with Client(url, TOKEN):
            pass


def test_a_client_needs_an_address_and_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AGENT_GATE_URL", "AGENT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(Unreachable, match="no gateway is named"):
        Client()
    with pytest.raises(Unreachable, match="no agent token"):
        Client("ws://127.0.0.1:1")
    for url in ("ftp://x", "ws://", "ws://user:pw@host", "ws://host:99999", "host:8443"):
        with pytest.raises(ConfigError):
            Client(url, TOKEN)


def test_scripts_without_asyncio_have_the_same_client(tmp_path: Path, api: Api) -> None:
    with running(tmp_path, files(api), "--insecure") as gateway, SyncClient(gateway.url, TOKEN) as client:
        assert client.call("get_state", ALLOWED)["path"] == "/states/sensor.temp"
        assert {tool["name"] for tool in client.tools()} >= {"get_state", "turn_on"}
        with pytest.raises(Forbidden):
            client.call("unlock", {"entity_id": "lock.front"})
        assert client.pending() == []
        assert client.cancel("nothing") is False
    with pytest.raises(Unreachable), SyncClient(gateway.url, TOKEN):
        pass


async def test_the_certificate_is_trusted_by_file_or_fingerprint_and_by_nothing_else(
    tmp_path: Path, api: Api
) -> None:
    with running(tmp_path, files(api)) as gateway:
        pin = gateway.announced["fingerprint"]
        ca = tmp_path / "data" / "tls" / "gateway.crt"
        assert gateway.url.startswith("https://")
        for trust in (
            {"ca": ca},
            {"fingerprint": pin},
            {"fingerprint": pin.removeprefix("sha256:").upper()},
        ):
            async with Client(gateway.url, TOKEN, **trust) as client:
                assert (await client.call("get_state", ALLOWED))["path"] == "/states/sensor.temp"
        with pytest.raises(Unreachable, match=r"self.signed.*\n.*--ca FILE"):
            async with Client(gateway.url, TOKEN):
                pass
        with pytest.raises(Unreachable, match="not the one with this fingerprint"):
            async with Client(gateway.url, TOKEN, fingerprint="sha256:" + "0" * 64):
                pass
        assert TOKEN not in gateway.stderr


def test_importing_the_client_brings_nothing_heavy_along() -> None:
    code = f"import sys; from agent_gate import Client; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
