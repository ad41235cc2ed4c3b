"""A host over real sockets: nothing before it is paired, everything strict afterwards, nobody but its gateway."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.hosts.hosting import CONTEXT, Gate, a_call, send, serving_host
from tests.waiting import until

from agent_gate.errors import ConfigError, PairingFailed
from agent_gate.hosts import Host, Refused, current_context, log_line
from agent_gate.hosts.server import MOST_HANDSHAKES
from agent_gate.net.pool import Lost, NotSent, Pool, Target
from agent_gate.net.tls.mutual import unverified_client
from agent_gate.peers.dialing import Endpoint, dial
from agent_gate.peers.signing import IdentityKey


class Counting:
    """A host that counts what it did."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.hold = threading.Event()
        self.host = host = Host("counting")

        @host.tool(idempotent=True, side_effects=False)
        def add(a: int, b: int = 1) -> int:
            """Add two numbers"""
            return a + b

        @host.tool("note.write")
        def write(text: str) -> dict[str, str]:
            """Write a note"""
            self.done.append(text)
            log_line(f"wrote for {current_context().agent_id}")
            return {"operation_id": f"op-{len(self.done)}"}

        @host.tool(timeout_ms=50, timeout_ms_max=200)
        def hang() -> None:
            self.done.append("hang")
            self.hold.wait(10)

        @host.tool(timeout_ms=100)
        async def wait_for_ever() -> None:
            self.done.append("waiting")
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self.done.append("stopped")

        @host.tool()
        async def wait_until_stopped() -> None:
            self.done.append("waiting")
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self.done.append("stopped")

        @host.tool()
        def refuse(code: str, retryable: bool = False) -> None:
            raise Refused("no", code=code, retryable=retryable)  # type: ignore[arg-type]

        @host.tool()
        def fail() -> None:
            raise KeyError("a secret of the host")

        @host.tool()
        async def slowly(text: str) -> str:
            self.done.append(text)
            await asyncio.sleep(0.05)
            return text


@asynccontextmanager
async def hosting(
    folder: Path, counting: Counting | None = None, gate: Gate | None = None
) -> AsyncIterator[tuple[Any, Gate, Counting]]:
    counting, gate = counting or Counting(), gate or Gate()
    try:
        async with serving_host(counting.host, folder / "host", gate) as server:
            yield server, gate, counting
    finally:
        counting.hold.set()


async def paired(server: Any, gate: Gate) -> int:
    port: int = server.server.port
    await gate.pair(port, server.folder.identity.fingerprint)
    return port


async def test_before_it_is_paired_a_host_tells_nothing(tmp_path: Path) -> None:
    async with hosting(tmp_path) as (server, _, counting):
        pool = Pool(unverified_client())
        target = Target.parse(f"https://127.0.0.1:{server.server.port}")
        for method, path, body in (
            ("GET", "/v1/tools", None),
            ("POST", "/v1/tools/call", a_call("note.write", {"text": "x"})),
            ("POST", "/v1/tools/cancel", {"version": "v1", "call_id": "x"}),
        ):
            reply = await send(pool, target, method, path, body)
            assert reply.status == 503
            assert msgspec.json.decode(reply.body)["error"]["code"] == "PAIRING_REQUIRED"
        assert counting.done == []
        await pool.aclose()


async def test_a_paired_host_offers_its_tools_with_schema_and_defaults(tmp_path: Path) -> None:
    async with hosting(tmp_path) as (server, gate, _):
        port = await paired(server, gate)
        offer = msgspec.json.decode((await gate.ask(port, "GET", "/v1/tools")).body)
        assert (offer["version"], offer["service"]) == ("v1", "counting")
        tools = {tool["name"]: tool for tool in offer["tools"]}
        assert list(tools) == sorted(tools)
        assert tools["add"] == {
            "name": "add",
            "description": "Add two numbers",
            "input_schema": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 1}},
                "required": ["a"],
                "additionalProperties": False,
            },
            "output_schema": {},
            "timeout_ms_default": 30_000,
            "timeout_ms_max": 120_000,
            "idempotent": True,
            "side_effects": False,
        }


async def test_a_call_is_answered_with_result_duration_and_logs(tmp_path: Path) -> None:
    async with hosting(tmp_path) as (server, gate, _):
        port = await paired(server, gate)
        said = await gate.call(port, "add", {"a": 2})
        assert (said["status"], said["result"]) == ("ok", {"result": 3})
        assert said["duration_ms"] >= 0
        said = await gate.call(port, "note.write", {"text": "x"})
        assert (said["result"], said["logs"]) == ({"operation_id": "op-1"}, ["wrote for assistant"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"version": "v9"},
        {"extra": 1},
        {"timeout_ms": 0},
        {"timeout_ms": 120_001},
        {"timeout_ms": None},
        {"args": []},
        {"context": {"agent_id": "a"}},
        {"context": {**CONTEXT, "more": "x"}},
        {"context": {**CONTEXT, "request_origin": "nobody"}},
    ],
)
async def test_a_request_that_is_not_of_the_protocol_runs_nothing(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    async with hosting(tmp_path) as (server, gate, counting):
        port = await paired(server, gate)
        body = {**a_call("note.write", {"text": "x"}), **wrong}
        reply = await gate.ask(port, "POST", "/v1/tools/call", body)
        assert (reply.status, counting.done) == (400, [])
        assert msgspec.json.decode(reply.body)["error"]["code"] == "INVALID_ARGS"


async def test_arguments_that_do_not_fit_and_unknown_tools_are_errors_of_the_call(tmp_path: Path) -> None:
    async with hosting(tmp_path) as (server, gate, _):
        port = await paired(server, gate)
        codes = [
            (await gate.call(port, "add", {"a": "2"}))["error"]["code"],
            (await gate.call(port, "add", {"a": 2, "c": 3}))["error"]["code"],
            (await gate.call(port, "nothing", {}))["error"]["code"],
        ]
        assert codes == ["INVALID_ARGS", "INVALID_ARGS", "TOOL_NOT_FOUND"]
        said = await gate.call(port, "refuse", {"code": "RATE_LIMITED", "retryable": True})
        assert (said["status"], said["error"]["code"]) == ("retryable_error", "RATE_LIMITED")
        said = await gate.call(port, "fail", {})
        assert said["error"]["code"] == "INTERNAL"
        assert "secret" not in str(said)


async def test_a_tool_is_stopped_at_its_deadline_even_where_it_blocks(tmp_path: Path) -> None:
    async with hosting(tmp_path) as (server, gate, counting):
        port = await paired(server, gate)
        for given in ({}, {"timeout_ms": 120_000}, {"timeout_ms": 5}):
            began = time.monotonic()
            said = await gate.call(port, "hang", {}, **given)
            assert (said["status"], said["error"]["code"]) == ("timeout", "TIMEOUT")
            assert time.monotonic() - began < 60, "it was stopped by the caller's own time, if at all"
        said = await gate.call(port, "wait_for_ever", {})
        assert said["status"] == "timeout"
        assert counting.done[-1] == "stopped"
        assert (await gate.call(port, "add", {"a": 1}))["status"] == "ok"


async def test_a_call_that_nobody_waits_for_is_stopped(tmp_path: Path) -> None:
    async with hosting(tmp_path) as (server, gate, counting):
        port = await paired(server, gate)
        body = {**a_call("wait_until_stopped", {}), "call_id": "c1"}
        waiting = asyncio.ensure_future(gate.ask(port, "POST", "/v1/tools/call", body))
        while not counting.done:
            await asyncio.sleep(0)
        for cancelled in (True, False):
            wish = {"version": "v1", "call_id": "c1"}
            reply = await gate.ask(port, "POST", "/v1/tools/cancel", wish)
            assert msgspec.json.decode(reply.body) == {"version": "v1", "cancelled": cancelled}
            await asyncio.wait([waiting])
        assert counting.done == ["waiting", "stopped"]


async def test_one_idempotency_key_is_one_execution(tmp_path: Path) -> None:
    async with hosting(tmp_path) as (server, gate, counting):
        port = await paired(server, gate)
        again = [gate.call(port, "slowly", {"text": "x"}, idempotency_key="k1") for _ in range(5)]
        assert [said["result"] for said in await asyncio.gather(*again)] == [{"result": "x"}] * 5
        assert counting.done == ["x"]
        first = await gate.call(port, "note.write", {"text": "y"}, idempotency_key="k2")
        second = await gate.call(port, "note.write", {"text": "y"}, idempotency_key="k2")
        assert first["result"] == second["result"]
        assert counting.done == ["x", "y"]
        other = await gate.call(port, "note.write", {"text": "z"}, idempotency_key="k2")
        assert other["error"]["code"] == "INVALID_ARGS"
        mine = {"context": {**CONTEXT, "agent_id": "another"}}
        await gate.call(port, "note.write", {"text": "y"}, idempotency_key="k2", **mine)
        assert counting.done == ["x", "y", "y"]


async def test_a_restart_remembers_certificate_results_and_initiations(tmp_path: Path) -> None:
    gate, counting = Gate(), Counting()
    async with hosting(tmp_path, counting, gate) as (server, *_):
        port = await paired(server, gate)
        await gate.call(port, "note.write", {"text": "x"}, idempotency_key="k")
    async with hosting(tmp_path, counting, gate) as (server, *_):
        said = await gate.call(server.server.port, "note.write", {"text": "x"}, idempotency_key="k")
        assert said["result"] == {"operation_id": "op-1"}
        target = Target.parse(f"https://127.0.0.1:{server.server.port}")
        with pytest.raises((NotSent, Lost)):
            await send(Pool(unverified_client()), target, "GET", "/v1/tools")
    assert counting.done == ["x"]


async def test_a_host_that_is_to_be_paired_again_forgets_its_gateway(tmp_path: Path) -> None:
    gate = Gate()

    async with serving_host(Host("a"), tmp_path, gate) as server:
        await paired(server, gate)
    async with serving_host(Host("a"), tmp_path, gate) as server:
        assert server.membership is not None
    async with serving_host(Host("a"), tmp_path, gate, pair_again=True) as server:
        assert server.membership is None


async def test_a_paired_host_is_paired_anew_by_its_gateway_alone(tmp_path: Path) -> None:
    async with hosting(tmp_path) as (server, gate, _):
        port = await paired(server, gate)
        first = gate.leaf.fingerprint
        await gate.pair(port, server.folder.identity.fingerprint)
        assert gate.leaf.fingerprint != first
        assert (await gate.call(port, "add", {"a": 1}))["status"] == "ok"
        with pytest.raises(PairingFailed):
            await Gate().pair(port, server.folder.identity.fingerprint)


async def test_a_wrong_pin_or_another_gateway_installs_nothing(tmp_path: Path) -> None:
    async with hosting(tmp_path) as (server, gate, _):
        port: int = server.server.port
        with pytest.raises(PairingFailed, match="another one was named"):
            await gate.pair(port, IdentityKey.new().fingerprint)
        with pytest.raises(PairingFailed, match="another gateway is configured"):
            await Gate().pair(port, server.folder.identity.fingerprint)
        assert server.membership is None


async def test_p30_handshakes_that_go_nowhere_are_few_and_leave_room_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hosting(tmp_path) as (server, gate, _):
        endpoint = Endpoint.parse(f"wss://127.0.0.1:{server.server.port}")
        running = server._handshakes.running

        def set_step(seconds: float) -> None:
            monkeypatch.setattr("agent_gate.peers.joining.STEP_SECONDS", seconds)

        async def half_open() -> str:
            try:
                async with dial(endpoint, gate.passport.pair) as line:
                    await line.receive()
            except PairingFailed as error:
                return error.message
            return "answered"

        set_step(60)
        asked = [asyncio.create_task(half_open()) for _ in range(MOST_HANDSHAKES + 8)]
        await until(lambda: sum(one.done() for one in asked) >= 8)
        ended = [one for one in asked if one.done()]
        assert ["status 503" in one.result() for one in ended] == [True] * 8
        assert len(running) == MOST_HANDSHAKES
        for one in asked:
            one.cancel()
        await until(lambda: not running)
        set_step(0.05)
        assert "status 503" not in await half_open()
        await until(lambda: not running)
        set_step(60)
        assert (await paired(server, gate)) > 0


async def test_a_local_host_answers_this_user_on_its_socket_without_pairing(tmp_path: Path) -> None:
    server = Counting().host.server()
    await server.start_unix(tmp_path / "run" / "host.sock")
    pool = Pool()
    try:
        target = Target.unix(tmp_path / "run" / "host.sock")
        reply = await send(pool, target, "POST", "/v1/tools/call", a_call("add", {"a": 4}))
        assert msgspec.json.decode(reply.body)["result"] == {"result": 5}
    finally:
        await pool.aclose()
        await server.stop(0.1)


async def test_a_local_host_keeps_its_events_until_they_have_arrived(tmp_path: Path) -> None:
    host = Counting().host
    server = host.server()
    await server.start_unix(tmp_path / "run" / "host.sock")
    pool, target = Pool(), Target.unix(tmp_path / "run" / "host.sock")

    async def asked(after: int, wait: int) -> Any:
        reply = await send(pool, target, "GET", f"/v1/events?after={after}&wait={wait}")
        return msgspec.json.decode(reply.body)

    try:
        assert await asked(0, 0) == {"version": "v1", "events": []}
        waiting = asyncio.ensure_future(asked(0, 25))
        await asyncio.sleep(0)
        event = host.publish("cron.triggered", {"n": 1}, tenant="home")
        [told] = (await waiting)["events"]
        assert (set(told), told["event"]["event_id"]) == ({"cursor", "event"}, event.event_id)
        assert (await asked(0, 0))["events"] == [told]
        assert (await asked(told["cursor"], 0))["events"] == []
        assert server.outbox.waiting() == []
    finally:
        await pool.aclose()
        await server.stop(0.1)


@pytest.mark.parametrize("harm", ["mode", "link"])
async def test_p28_a_key_that_others_can_read_is_not_used(tmp_path: Path, harm: str) -> None:
    async with hosting(tmp_path):
        pass
    key = tmp_path / "host" / "identity.key"
    if harm == "mode":
        key.chmod(0o644)
    else:
        key.rename(tmp_path / "elsewhere")
        key.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match=r"identity\.key"):
        async with hosting(tmp_path):
            pass


@pytest.mark.parametrize(
    "url", ["ws://10.0.0.1:5225", "ws://example.test/v1/pair", "http://127.0.0.1", "wss://"]
)
def test_p29_plain_websockets_to_other_machines_are_refused_before_anything_is_looked_up(url: str) -> None:
    with pytest.raises(Exception, match="wss://"):
        Endpoint.parse(url)


def test_a_url_without_a_path_means_the_pairing_path() -> None:
    assert Endpoint.parse("wss://10.0.0.1:5225").url == "wss://10.0.0.1:5225/v1/pair"
    assert Endpoint.parse("wss://10.0.0.1:5225/").tools == "https://10.0.0.1:5225"
    assert Endpoint.parse("ws://127.0.0.1:80/x").url == "ws://127.0.0.1:80/x"
