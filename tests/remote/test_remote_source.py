"""A tool host as a source: its codes, when it is asked again, what it is told, and what is no answer."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tests.hosts.hosting import Gate
from tests.peers.handshakes import ShiftedClock
from tests.rows import opened
from tests.toolboxes import toolbox

from agent_gate.core.call import GIVEN_CONTEXT, Call, Caller, Case, Decision
from agent_gate.core.catalog import Listing, build
from agent_gate.core.ports import Job, SystemClock
from agent_gate.core.tool import Tool
from agent_gate.errors import CallTimeout, GatewayError, OutcomeUnknown, PairingRequired, UpstreamError
from agent_gate.net.http import Request, Response, json_response
from agent_gate.net.pool import Pool
from agent_gate.net.server import Server
from agent_gate.peers.authority import Authority, CertificateSubject
from agent_gate.peers.pairing import Candidate
from agent_gate.peers.passport import renewal
from agent_gate.peers.records import Peers
from agent_gate.sources.mcp.wire.order import Order
from agent_gate.sources.remote.errors import BY_CODE
from agent_gate.sources.remote.pooled import PooledSource
from agent_gate.sources.remote.source import RemoteSource, context_of
from agent_gate.sources.remote.ways import LocalWay
from agent_gate.store import StoreSettings
from agent_gate.surfaces.mcp.incoming.params import CallParams
from agent_gate.surfaces.mcp.tools.calling import passed_meta

CALLER = Caller(name="assistant", context=frozenset({"isolation_key"}))
TOOL = {"name": "note.write", "timeout_ms_default": 500, "timeout_ms_max": 2000, "idempotent": True}
Answer = Callable[[dict[str, Any]], Any]


class FakeHost:
    """Speaks the protocol as it was told to, on a Unix socket, and writes down what came."""

    server: Server

    def __init__(self, *answers: Answer, tool: dict[str, Any] = TOOL) -> None:
        self.answers, self.tool = list(answers), tool
        self.asked: list[dict[str, Any]] = []

    async def handle(self, request: Request) -> Response:
        if request.method == "GET":
            return json_response(200, {"version": "v1", "service": "x", "tools": [self.tool]})
        said = msgspec.json.decode(request.body)
        self.asked.append(said | {"path": request.path})
        answer = self.answers.pop(0)(said)
        return answer if isinstance(answer, Response) else json_response(200, answer)


def answer(status: str = "ok", **more: Any) -> Answer:
    return lambda said: {
        "version": "v1",
        "call_id": said["call_id"],
        "tool_name": said["tool_name"],
        "status": status,
        "duration_ms": 1,
        **more,
    }


def job_of(tool: Tool, call: Call) -> Job:
    """The call as it was allowed."""
    case = Case(
        call=call,
        tool=tool,
        signature="",
        decision=Decision(effect="allow"),
        arguments_hash="",
        definition_hash="",
    )
    return Job(case=case, deadline=asyncio.get_running_loop().time() + 5)


async def ask(folder: Path, host: FakeHost, *, trusted: bool = True, **call: Any) -> Any:
    server, pool = Server(host.handle), Pool()
    await server.start_unix(folder / "host.sock")
    source = RemoteSource(
        "notes", LocalWay(pool, folder / "host.sock"), toolbox(pool), tenant="family", trusted=trusted
    )
    try:
        definitions = await source.connect()
        listing = Listing(key="notes", namespace="notes", definitions=definitions)
        [tool] = build([listing]).tools
        made = Call(tool=tool.wire, arguments={"text": "x"}, caller=CALLER, **call)
        result = await source.answer(job_of(tool, made))
        return msgspec.json.decode(result.body)
    finally:
        await pool.aclose()
        await server.drain(0)


async def test_a_result_comes_back_and_the_host_is_told_for_whom(tmp_path: Path) -> None:
    host = FakeHost(answer(result={"id": "1"}, logs=["a line"]))
    assert await ask(tmp_path, host, session="ses_1", timeout=60.0, idempotency_key="k") == {"id": "1"}
    [asked] = host.asked
    assert (asked["tenant_id"], asked["idempotency_key"], asked["timeout_ms"]) == ("family", "k", 2000)
    assert asked["context"]["agent_id"] == "assistant"
    assert asked["context"]["session_id"] == "ses_1"
    assert asked["context"]["request_origin"] == "agent_turn"
    assert "isolation_key" not in asked["context"]


class Hearing:
    """A caller that hears what is said while its call runs."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []

    async def notify(self, method: str, params: Any) -> None:
        self.heard.append((method, params))


async def test_what_a_tool_logs_is_told_to_the_caller_and_is_no_part_of_the_result(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hearing = Hearing()
    caplog.set_level("DEBUG", "agent_gate")
    host = FakeHost(answer(result={"id": "1"}, logs=["a line", "x" * 5000]))
    assert await ask(tmp_path, host, conversation=hearing) == {"id": "1"}
    assert [method for method, _ in hearing.heard] == ["notifications/message"] * 2
    assert hearing.heard[0][1] == {"level": "info", "logger": "notes", "data": "a line"}
    assert len(hearing.heard[1][1]["data"]) == 2000
    assert [one.levelname for one in caplog.records if one.getMessage() == "a line"] == ["DEBUG"]


async def test_without_a_wish_the_tools_own_timeout_counts(tmp_path: Path) -> None:
    host = FakeHost(answer())
    await ask(tmp_path, host)
    assert host.asked[0]["timeout_ms"] == 500
    assert host.asked[0]["idempotency_key"] == host.asked[0]["call_id"]


def test_only_what_an_agent_may_say_of_its_conversation_is_passed_on() -> None:
    given = {"isolation_key": "anna", "actor_id": "boss", "agent_id": "another", "more": "x"}
    call = Call(tool="t", arguments={}, caller=CALLER, meta={GIVEN_CONTEXT: given})
    found = msgspec.to_builtins(context_of(call))
    assert (found["isolation_key"], found["agent_id"]) == ("anna", "assistant")
    assert "actor_id" not in found
    assert GIVEN_CONTEXT == "agent-gate/context"


@pytest.mark.parametrize(("kind", "origin"), [("agent", "agent_turn"), ("operator", "operator")])
def test_a_host_is_told_whether_an_agent_or_an_operator_calls(kind: Any, origin: str) -> None:
    call = Call(tool="t", arguments={}, caller=Caller(name="anna", kind=kind))
    found = context_of(call)
    assert (found.request_origin, found.session_id) == (origin, call.id)


async def test_a_tool_that_two_hosts_of_a_pool_describe_differently_is_the_first_ones(tmp_path: Path) -> None:
    pool, members, servers = Pool(), [], []
    for name in ("east", "west"):
        host = FakeHost(tool={**TOOL, "description": f"as {name} says"})
        servers.append(Server(host.handle))
        await servers[-1].start_unix(tmp_path / f"{name}.sock")
        members.append(
            RemoteSource(name, LocalWay(pool, tmp_path / f"{name}.sock"), toolbox(pool), tenant="family")
        )
    try:
        [definition] = await PooledSource("notes", members, toolbox(pool)).connect()
        assert definition.description == "as east says"
    finally:
        await pool.aclose()
        for server in servers:
            await server.drain(0)


@pytest.mark.parametrize("code", sorted(BY_CODE))
async def test_every_code_of_a_host_reaches_the_agent(tmp_path: Path, code: str) -> None:
    host = FakeHost(answer("error", error={"code": code, "message": "because"}))
    with pytest.raises(GatewayError, match="because") as raised:
        await ask(tmp_path, host)
    assert raised.value.code == code
    assert len(BY_CODE) == 10


async def test_a_retryable_error_is_tried_again_where_that_is_safe(tmp_path: Path) -> None:
    again = answer("retryable_error", error={"code": "DEPENDENCY_UNAVAILABLE", "message": "busy"})
    host = FakeHost(again, again, answer(result={"at": "last"}))
    assert await ask(tmp_path, host) == {"at": "last"}
    assert len({said["idempotency_key"] for said in host.asked}) == 1


async def test_a_call_is_sent_again_twice_and_no_more(tmp_path: Path) -> None:
    again = answer("retryable_error", error={"code": "DEPENDENCY_UNAVAILABLE", "message": "busy"})
    host = FakeHost(*[again] * 4)
    with pytest.raises(GatewayError, match="busy"):
        await ask(tmp_path, host)
    assert len(host.asked) == 3


class Hanging(FakeHost):
    """Takes every call and hangs up."""

    async def handle(self, request: Request) -> Response:
        if request.method == "POST":
            self.asked.append({})
            for connection in list(self.server.connections):
                connection.transport.abort()
        return await super().handle(request)


@pytest.mark.parametrize("trusted", [True, False])
async def test_a_call_that_may_have_been_sent_goes_to_the_next_host_only_where_it_is_safe_to_repeat(
    tmp_path: Path, trusted: bool
) -> None:
    pool, members = Pool(), []
    hosts = {"east": FakeHost(answer(result={"by": "east"})), "west": Hanging(*[answer()] * 9)}
    for name, host in hosts.items():
        host.server = Server(host.handle)
        await host.server.start_unix(tmp_path / f"{name}.sock")
        way = LocalWay(pool, tmp_path / f"{name}.sock")
        members.append(RemoteSource(name, way, toolbox(pool), tenant="family", trusted=trusted))
    source = PooledSource("notes", members, toolbox(pool))
    listing = Listing(key="notes", namespace="notes", definitions=await source.connect())
    [tool] = build([listing]).tools
    try:
        if trusted:
            result = await source.answer(job_of(tool, Call(tool=tool.wire, arguments={}, caller=CALLER)))
            assert msgspec.json.decode(result.body) == {"by": "east"}
        else:
            with pytest.raises(GatewayError):
                await source.answer(job_of(tool, Call(tool=tool.wire, arguments={}, caller=CALLER)))
        assert len(hosts["west"].asked) >= 1
        assert len(hosts["east"].asked) == trusted
    finally:
        await pool.aclose()
        for host in hosts.values():
            await host.server.drain(0)


@pytest.mark.parametrize("why", ["not trusted", "not idempotent"])
async def test_otherwise_it_is_asked_once(tmp_path: Path, why: str) -> None:
    again = answer("retryable_error", error={"code": "DEPENDENCY_UNAVAILABLE", "message": "busy"})
    tool = TOOL if why == "not trusted" else {**TOOL, "idempotent": False}
    host = FakeHost(again, again, tool=tool)
    with pytest.raises(GatewayError, match="busy"):
        await ask(tmp_path, host, trusted=why != "not trusted")
    assert len(host.asked) == 1


async def test_a_timeout_is_not_tried_again(tmp_path: Path) -> None:
    host = FakeHost(answer("timeout", error={"code": "TIMEOUT", "message": "too slow"}), answer())
    with pytest.raises(CallTimeout):
        await ask(tmp_path, host)
    assert len(host.asked) == 1


@pytest.mark.parametrize(
    "more",
    [
        {"extra": 1},
        {"version": "v2"},
        {"call_id": "another"},
        {"tool_name": "other"},
        {"result": []},
        {"duration_ms": -1},
    ],
)
async def test_what_is_no_answer_of_the_protocol_leaves_the_outcome_unknown(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    with pytest.raises(OutcomeUnknown):
        await ask(tmp_path, FakeHost(answer(**more)))


async def test_a_host_that_lost_its_pairing_says_so(tmp_path: Path) -> None:
    refusing = json_response(503, {"error": {"code": "PAIRING_REQUIRED", "message": "pair me"}})
    with pytest.raises(PairingRequired, match="pair me"):
        await ask(tmp_path, FakeHost(lambda _said: refusing))


async def test_a_host_that_describes_its_tools_wrongly_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UpstreamError, match="timeout_ms_max"):
        await ask(tmp_path, FakeHost(tool={**TOOL, "timeout_ms_max": 0}))


async def test_a_certificate_ends_and_its_peer_is_asked_no_more(tmp_path: Path) -> None:
    clock = ShiftedClock()
    authority = Authority.new("home", clock.now())
    subject = CertificateSubject("tool_host", "memory-east")
    leaf = authority.issue(ec.generate_private_key(ec.SECP256R1()).public_key(), subject, clock.now())
    async with opened(StoreSettings(path=tmp_path / "gate.db")) as store:
        peers = Peers(store, clock)
        await peers.load()
        who = Candidate(subject, "wss://127.0.0.1:1/v1/pair", Gate().key.public, "pairing-1")
        await peers.note_issued(who, leaf)
        await peers.activate(who, leaf)
        assert peers.usable("memory-east").fingerprint == leaf.fingerprint
        due = renewal(leaf.not_before, leaf.not_after)
        assert 19.9 < (due - SystemClock.now()) / 86_400 < 20.1
        clock.by = 30 * 86_400 + 1
        with pytest.raises(PairingRequired, match="expired"):
            peers.usable("memory-east")


def test_what_a_client_says_of_its_conversation_goes_to_tool_hosts_alone() -> None:
    said = {GIVEN_CONTEXT: {"actor_id": "boss"}, "agent-gate/error": "ours", "theirs": 1}
    meta = passed_meta(CallParams(name="t", meta=said), None)
    assert meta == {GIVEN_CONTEXT: {"actor_id": "boss"}, "theirs": 1}
    order = Order(method="tools/call", params={"name": "t"}, deadline=1.0, meta=meta)
    assert "boss" not in str(order.numbered(1))
    assert "theirs" in str(order.numbered(1))
