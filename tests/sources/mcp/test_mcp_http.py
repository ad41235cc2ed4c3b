"""Streamable HTTP and SSE against servers whose every answer the test writes."""

import asyncio
import gc
from collections.abc import Mapping
from time import monotonic

import msgspec
import pytest
from tests.sources.mcp.upstreams import (
    Bench,
    Conversation,
    Memory,
    Request,
    Scripted,
    bench,
    connected,
    discovery,
    free_port,
    handshake,
    leave_when_parked,
    modern,
    scripted,
    text,
    tool,
)
from tests.waiting import PATIENCE, until

from agent_gate.config.servers.settings import ServerAuth, ServerRate, TraitSettings
from agent_gate.core.credentials import Identity
from agent_gate.errors import (
    CallTimeout,
    CatalogError,
    DependencyUnavailable,
    OutcomeUnknown,
    RateLimited,
    Unauthorized,
    UpstreamError,
)
from agent_gate.mcp.revisions import NEWEST_WITHOUT_SESSIONS
from agent_gate.net.pool import Pool
from agent_gate.sources.access import Access, FixedCredentials
from agent_gate.sources.mcp import source as source_module
from agent_gate.sources.mcp.lists import watcher
from agent_gate.sources.mcp.sessions.session import ServerSession
from agent_gate.sources.mcp.wire import http, replies
from agent_gate.sources.mcp.wire.http import HttpLink
from agent_gate.sources.mcp.wire.mux import MAX_QUESTIONS
from agent_gate.sources.mcp.wire.order import Order


def reply(request: Request, result: object) -> dict:
    return {"jsonrpc": "2.0", "id": request.body["id"], "result": result}


async def taken(request: Request, answered: "asyncio.Queue[object]") -> bool:
    """Whether this is the client's answer to a question, which is kept for whoever asked."""
    if request.method != "POST" or request.rpc:
        return False
    await answered.put(request.body)
    await request.send(202)
    return True


def sessions(made: Bench) -> list[ServerSession]:
    """Every session that is open, the callers' own too."""
    connections = made.source.connections
    return [connections.current(), *(task.result() for task in connections.others.values() if task.done())]


def in_flight(made: Bench) -> int:
    return sum(session.in_flight for session in sessions(made))


def note(method: str, **params: object) -> dict:
    return {"jsonrpc": "2.0", "method": method, "params": params}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (404, b""),
        (400, b'{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID"}}'),
    ],
)
async def test_a_forgotten_session_is_begun_again_and_the_refused_call_sent_once_more(
    status: int, words: bytes
) -> None:
    sessions = iter(["one", "two", "three"])
    ran: list[str] = []

    async def handler(request: Request) -> None:
        session = request.headers.get("mcp-session-id", "")
        if request.rpc == "initialize":
            offered = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {}}
            await request.result(offered, mcp_session_id=next(sessions))
        elif request.rpc == "tools/call" and session == "two":
            await request.send(status, words)
        elif request.rpc == "tools/call":
            ran.append(session)
            await request.result(text("ran"))
        else:
            await handshake(request)

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        assert await made.text("work") == "ran"
        assert ran == ["three"]
        versions = {request.headers.get("mcp-protocol-version") for request in upstream.sent("tools/call")}
        assert versions == {"2025-06-18"}


class Forgetful:
    """A server that forgot its first sessions, and takes its time over the handshake of the next."""

    def __init__(self) -> None:
        self.sessions, self.known = 0, {"s3"}
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()
        self.bare = 0

    async def __call__(self, request: Request) -> None:
        session = request.headers.get("mcp-session-id", "")
        if request.rpc == "initialize":
            assert "mcp-session-id" not in request.headers
            self.sessions += 1
            if self.sessions == 3:
                self.asked.set()
                await self.go_on.wait()
            offered = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {}}
            await request.result(offered, mcp_session_id=f"s{self.sessions}")
        elif request.rpc == "tools/call" and not session:
            self.bare += 1
            await request.send(400)
        elif request.rpc == "tools/call" and session not in self.known:
            await request.send(404)
        elif request.rpc == "tools/call":
            await request.result(text(session))
        else:
            await handshake(request)


async def test_calls_that_come_while_a_session_is_begun_again_wait_for_it() -> None:
    server = Forgetful()
    async with scripted(server) as upstream, connected(url=upstream.url) as made:
        first = asyncio.create_task(made.text("work"))
        await server.asked.wait()
        second = asyncio.create_task(made.text("work"))
        await until(lambda: len(upstream.sent("tools/call")) == 2)
        server.go_on.set()
        assert await asyncio.gather(first, second) == ["s3", "s3"]
        assert server.bare == 0
        assert server.sessions == 3


async def test_a_call_given_up_while_its_session_is_begun_again_leaves_the_session_to_the_next() -> None:
    server = Forgetful()
    async with scripted(server) as upstream, connected(url=upstream.url) as made:
        first = asyncio.create_task(made.text("work"))
        await server.asked.wait()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        server.go_on.set()
        assert await made.text("work") == "s3"
        assert server.bare == 0


async def test_a_server_that_forgets_every_session_is_unavailable_not_retried_for_ever() -> None:
    async def handler(request: Request) -> None:
        if not await handshake(request):
            await request.send(404)

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        with pytest.raises(DependencyUnavailable, match="forgets its sessions"):
            await made.call("work")
        assert len(upstream.sent("tools/call")) <= 4


async def test_a_call_whose_session_is_closed_while_it_is_opened_was_not_sent() -> None:
    opening = asyncio.Event()

    async def handler(request: Request) -> None:
        if request.rpc == "initialize" and opening.is_set():
            return
        await handshake(request)

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        opening.set()
        call = asyncio.create_task(made.text("work"))
        await until(lambda: len(upstream.sent("initialize")) == 2)
        await made.source.connections.close()
        with pytest.raises(DependencyUnavailable, match="is not available"):
            await call
        assert not upstream.sent("tools/call")


async def test_each_caller_has_its_own_session_of_a_handshake_server() -> None:
    numbers = iter(range(100))

    async def handler(request: Request) -> None:
        if request.rpc == "initialize":
            offered = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {}}
            await request.result(offered, mcp_session_id=f"s{next(numbers)}")
        elif not await handshake(request):
            await request.result(text(request.headers["mcp-session-id"]))

    async with scripted(handler) as upstream:
        async with connected(url=upstream.url) as made:
            first, second = await made.text("work", caller="a"), await made.text("work", caller="b")
            assert first != second
            assert await made.text("work", caller="a") == first
        ended = {
            request.headers["mcp-session-id"] for request in upstream.requests if request.method == "DELETE"
        }
        assert ended == {"s0", first, second}


async def test_the_callers_capabilities_are_declared_in_its_own_session() -> None:
    async def handler(request: Request) -> None:
        if not await handshake(request):
            await request.result(text("ok"))

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        await made.call("work", conversation=Conversation(capabilities={"roots": {}}))
        declared = [request.body["params"]["capabilities"] for request in upstream.sent("initialize")]
        assert declared[1:] == [{"roots": {}}]


async def test_an_answer_in_a_stream_comes_after_its_notes_without_sending_again() -> None:
    async def handler(request: Request) -> None:
        if not await handshake(request):
            token = request.body["params"]["_meta"]["progressToken"]
            progress = note("notifications/progress", progressToken=token, progress=1)
            log = note("notifications/message", level="info", data="half")
            await request.events(b": comment\n\n", progress, log, reply(request, text("done")))

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        conversation = Conversation()
        assert await made.text("work", conversation=conversation, meta={"progressToken": 5}) == "done"
        assert [method for method, _ in conversation.notes] == [
            "notifications/progress",
            "notifications/message",
        ]
        assert conversation.notes[0][1]["progressToken"] == 5
        assert len(upstream.sent("tools/call")) == 1


async def test_a_question_in_a_stream_is_answered_by_a_post_of_its_own() -> None:
    answered: asyncio.Queue[object] = asyncio.Queue()

    async def handler(request: Request) -> None:
        if not await taken(request, answered) and not await handshake(request):
            question = {
                "jsonrpc": "2.0",
                "id": "q1",
                "method": "elicitation/create",
                "params": {"message": "?"},
            }
            ping = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
            await request.events(ping, question, end=False)
            replies = {(await answered.get())["id"]: True for _ in range(2)}
            await request.more(reply(request, text(str(sorted(map(str, replies))))))
            request.writer.write(b"0\r\n\r\n")

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        assert await made.text("work", conversation=Conversation()) == "['7', 'q1']"


WHO = {"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": {"message": "who?"}}


async def asked(made: Bench) -> dict:
    """What a modern caller is told whose call waits for an answer to the server's question."""
    return msgspec.json.decode((await made.call("work", conversation=modern())).body)


def accepting(first: Mapping, **content: object) -> dict:
    """What that caller comes back with: yes to every question, and this to say."""
    answers = {name: {"action": "accept", "content": content} for name in first["inputRequests"]}
    return {"inputResponses": answers, "requestState": first["requestState"]}


async def test_a_server_without_a_stream_of_its_own_asks_a_modern_caller_round_by_round() -> None:
    answered: asyncio.Queue[object] = asyncio.Queue()

    async def handler(request: Request) -> None:
        if not await taken(request, answered) and not await handshake(request):
            await request.events(WHO, end=False)
            said = (await answered.get())["result"]["content"]["name"]
            await request.more(reply(request, text(f"hello {said}")))
            request.writer.write(b"0\r\n\r\n")

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        first = await asked(made)
        question, *_ = first["inputRequests"].values()
        assert question["params"]["message"] == "who?"
        again = accepting(first, name="Bo")
        assert await made.text("work", conversation=modern(), meta=again) == "hello Bo"
        assert len(upstream.sent("tools/call")) == 1
        assert made.source.bridge.parking.waiting == {}
        await until(lambda: not in_flight(made))


async def test_a_plain_answer_to_a_caller_that_could_be_asked_starts_nothing_beside_the_call() -> None:
    async def handler(request: Request) -> None:
        if not await handshake(request):
            await request.result(text("done"))

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        assert await made.text("work", conversation=modern()) == "done"
        await until(lambda: all(session.link.parks for session in sessions(made)))
        tasks = asyncio.all_tasks()
        for _ in range(3):
            assert await made.text("work", conversation=modern()) == "done"
        assert asyncio.all_tasks() == tasks


async def test_a_server_is_told_once_that_a_caller_left_in_the_middle_of_its_stream() -> None:
    async def handler(request: Request) -> None:
        if not await handshake(request):
            told = note("notifications/progress", progressToken=request.body["id"], progress=1)
            await request.events(told, end=False)

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        conversation = modern()
        meta = {"progressToken": "mine"}
        call = asyncio.create_task(made.call("work", conversation=conversation, meta=meta))
        await until(lambda: conversation.notes)
        call.cancel()
        await asyncio.wait([call])
        await until(lambda: upstream.sent("notifications/cancelled"))
        await until(lambda: not in_flight(made))
        assert len(upstream.sent("notifications/cancelled")) == 1


async def test_a_parked_call_whose_server_goes_away_ends_in_an_unknown_outcome() -> None:
    async def handler(request: Request) -> None:
        if request.method == "POST" and not request.rpc:
            request.writer.transport.abort()
            upstream_of[0].stop()
        elif not await handshake(request):
            await request.events(WHO, end=False)

    upstream_of: list[Scripted] = []
    async with scripted(handler) as upstream:
        upstream_of.append(upstream)
        async with connected(url=upstream.url) as made:
            first = await asked(made)
            with pytest.raises(OutcomeUnknown):
                await made.call("work", conversation=modern(), meta=accepting(first))


async def test_a_question_without_a_conversation_is_answered_with_an_error() -> None:
    answered: asyncio.Queue[object] = asyncio.Queue()

    async def handler(request: Request) -> None:
        if not await taken(request, answered) and not await handshake(request):
            question = {"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {}}
            await request.events(question, end=False)
            error = (await answered.get())["error"]
            await request.more(reply(request, text(error["message"])))
            request.writer.write(b"0\r\n\r\n")

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        assert "carries no questions" in await made.text("work")


async def test_a_broken_stream_with_event_ids_is_resumed_not_repeated() -> None:
    async def handler(request: Request) -> None:
        if request.method == "GET" and request.headers.get("last-event-id") == "e1":
            waiting = upstream_call[0]
            await request.events(reply(waiting, text("resumed")))
        elif not await handshake(request):
            upstream_call.append(request)
            await request.events(b"id: e1\nretry: 10\ndata: \n\n")

    upstream_call: list[Request] = []
    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        assert await made.text("work") == "resumed"
        assert len(upstream.sent("tools/call")) == 1


async def test_a_stream_that_ends_without_an_answer_leaves_the_outcome_unknown() -> None:
    async def handler(request: Request) -> None:
        if not await discovery(request):
            await request.events(note("notifications/message", level="info", data="x"))

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        with pytest.raises(OutcomeUnknown, match="ended before the answer"):
            await made.call("work")
        assert len(upstream.sent("tools/call")) == 1


async def test_a_connection_cut_after_sending_is_unknown_unless_the_tool_is_idempotent() -> None:
    cuts: list[int] = []

    async def handler(request: Request) -> None:
        if await discovery(request):
            return
        cuts.append(1)
        if len(cuts) in (1, 2):
            request.writer.transport.abort()
        else:
            await request.result(text("third time"))

    async with scripted(handler) as upstream:
        async with connected(url=upstream.url) as made:
            with pytest.raises(OutcomeUnknown):
                await made.call("work")
            assert len(cuts) == 1
        async with connected(url=upstream.url, traits=TraitSettings(idempotent=True)) as made:
            assert await made.text("work") == "third time"


async def test_a_refused_connection_is_unavailable_because_nothing_was_sent() -> None:
    async with bench(url=f"http://127.0.0.1:{free_port()}/mcp") as made:
        with pytest.raises(DependencyUnavailable):
            await made.source.connect()


async def test_modern_requests_repeat_their_method_and_name_in_headers() -> None:
    annotated = {"type": "object", "properties": {"city": {"type": "string", "x-mcp-header": "City"}}}

    async def handler(request: Request) -> None:
        if not await discovery(request, tool("wörk", inputSchema=annotated)):
            await request.result(text("ok"))

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        await made.call("wörk", {"city": "Köln"}, conversation=modern({"roots": {}}))
        (request,) = upstream.sent("tools/call")
        assert request.headers["mcp-protocol-version"] == "2026-07-28"
        assert request.headers["mcp-method"] == "tools/call"
        assert request.headers["mcp-name"] == "=?base64?d8O2cms=?="
        assert request.headers["mcp-param-city"] == "=?base64?S8O2bG4=?="
        assert "mcp-session-id" not in request.headers
        meta = request.body["params"]["_meta"]
        assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
        assert meta["io.modelcontextprotocol/clientCapabilities"] == {"roots": {}}
        assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "agent-gate"


async def test_a_tool_with_a_malicious_header_is_left_out_and_its_siblings_stay() -> None:
    def annotated(header: object, kind: str = "string") -> dict:
        return {"type": "object", "properties": {"a": {"type": kind, "x-mcp-header": header}}}

    bad = [annotated("X\r\nA"), annotated(""), annotated(7), annotated("A", "number"), {"x-mcp-header": "A"}]
    bad.append({"type": "object", "properties": {n: {"type": "string", "x-mcp-header": "A"} for n in "ab"}})
    bad.append({"type": "object", "anyOf": [annotated("A")]})

    async def handler(request: Request) -> None:
        tools = [tool(f"bad{number}", inputSchema=schema) for number, schema in enumerate(bad)]
        await discovery(request, *tools, tool("good", inputSchema=annotated("A")))

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        assert [d.name for d in made.source.tools.definitions] == ["good"]
        assert len(made.source.tools.excluded) == len(bad)
        assert all("x-mcp-header" in left.reason for left in made.source.tools.excluded)


async def test_a_busy_server_is_waited_for_within_the_deadline() -> None:
    refused: list[int] = []

    async def handler(request: Request) -> None:
        if await discovery(request):
            return
        refused.append(1)
        if len(refused) == 1:
            await request.send(429, retry_after="1")
        elif len(refused) == 2:
            await request.result(text("now"))
        else:
            await request.send(429, retry_after="600")

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        assert await made.text("work") == "now"
        with pytest.raises(RateLimited) as caught:
            await made.call("work")
        assert caught.value.retry_after == pytest.approx(600, abs=5)


async def test_a_rate_limit_of_ours_holds_calls_back_before_they_are_sent() -> None:
    async def handler(request: Request) -> None:
        if not await discovery(request):
            await request.result(text("ok"))

    async with scripted(handler) as upstream:
        limit = ServerRate(max_requests_per_minute=20)
        async with connected(url=upstream.url, rate_limit=limit) as made:
            await made.call("work", seconds=1)
            await made.call("work", seconds=1)
            with pytest.raises(RateLimited) as caught:
                await made.call("work", seconds=1)
            assert 2 < caught.value.retry_after <= 3
            assert len(upstream.sent("tools/call")) == 2


async def test_a_wrong_credential_says_so_and_never_appears() -> None:
    async def handler(request: Request) -> None:
        await request.send(401)

    async with scripted(handler) as upstream:
        auth = ServerAuth(type="api-key", token="secret-key")
        async with bench(url=upstream.url, auth=auth) as made:
            with pytest.raises(Unauthorized, match="check its auth") as caught:
                await made.source.connect()
            assert "secret-key" not in str(caught.value)
        assert upstream.requests[0].headers["authorization"] == "Bearer secret-key"


async def test_a_key_can_travel_in_a_header_of_its_own() -> None:
    async def handler(request: Request) -> None:
        await discovery(request)

    async with scripted(handler) as upstream:
        auth = ServerAuth(type="api-key", token="k", header_name="X-Key")
        async with connected(url=upstream.url, auth=auth, headers={"X-Other": "o"}):
            sent = upstream.requests[0].headers
            assert (sent["x-key"], sent["x-other"]) == ("k", "o")
            assert "authorization" not in sent


@pytest.mark.parametrize(
    ("ours", "theirs"), [("/mcp", "/mcp/"), ("/mcp/", "/mcp"), ("/mcp?a=1", "/mcp/?a=1")]
)
async def test_a_slash_that_is_missing_or_too_many_is_learned_when_the_server_is_met(
    ours: str, theirs: str
) -> None:
    async def handler(request: Request) -> None:
        if request.path == ours:
            await request.send(308, location=theirs)
        elif not await discovery(request):
            await request.result(text(request.path))

    async with (
        scripted(handler) as upstream,
        connected(url=upstream.url.removesuffix("/mcp") + ours) as made,
    ):
        assert await made.text("work") == theirs
        assert len([sent for sent in upstream.requests if sent.path == ours]) == 1


@pytest.mark.parametrize(
    "place",
    [
        "/login",
        "/mcp2",
        "/mcp/?x=1",
        "//elsewhere.test/mcp/",
        "http://127.0.0.1:1/mcp/",
        "/a b",
        "http://[",
        "",
        "/mcp//",
    ],
)
async def test_no_other_redirect_is_followed_and_the_reason_names_its_address(place: str) -> None:
    async def handler(request: Request) -> None:
        await request.send(307, location=place)

    async with scripted(handler) as upstream:
        async with bench(url=upstream.url) as made:
            with pytest.raises(DependencyUnavailable) as caught:
                await made.source.connect()
            assert f"redirects to {place or 'no address'}, which is not followed" in caught.value.message
        assert {request.path for request in upstream.requests} == {"/mcp"}


@pytest.mark.parametrize("place", ["/login", "/mcp/"])
async def test_a_call_is_never_sent_elsewhere_and_its_source_says_so_until_it_is_well_again(
    place: str,
) -> None:
    away = [False]

    async def handler(request: Request) -> None:
        if away[0]:
            await request.send(307, location=place)
        elif not await discovery(request):
            await request.result(text("here"))

    async with scripted(handler) as upstream:
        async with connected(url=upstream.url) as made:
            watching = asyncio.create_task(made.source.watch())
            away[0] = True
            with pytest.raises(UpstreamError, match=f"redirects to {place}"):
                await made.call("work")
            with pytest.raises(DependencyUnavailable, match=f"redirects to {place}"):
                await watching
            away[0] = False
            await made.source.connect()
            assert await made.text("work") == "here"
        assert {request.path for request in upstream.requests} == {"/mcp"}


async def test_a_list_with_two_tools_of_one_id_is_refused_and_the_tools_stay(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tools = [[tool("work")], [tool("work"), tool("new"), tool("new")], [tool("work"), tool("new")]]

    async def handler(request: Request) -> None:
        if not await handshake(request, *tools[0]):
            await request.result(text("done"))

    async with scripted(handler) as upstream:
        async with connected(url=upstream.url) as made:
            del tools[0]
            assert await made.source.refresh()
            assert not made.announced
            assert "two tools with the id up:new" in (made.source.unwell or "")
            assert any(
                record.levelname == "ERROR" and "up:new" in record.message for record in caplog.records
            )
            assert await made.text("work") == "done"
            await made.source.connect()
            assert [definition.name for definition in made.source.tools.definitions] == ["work"]
            del tools[0]
            assert await made.source.refresh()
            assert made.source.unwell is None
            assert [definition.name for definition in made.announced[0]] == ["work", "new"]
        tools.insert(0, [tool("new"), tool("new")])
        async with bench(url=upstream.url) as made:
            with pytest.raises(CatalogError):
                await made.source.connect()


@pytest.mark.parametrize("kind", ["tools", "resources", "prompts"])
async def test_a_list_that_goes_on_for_ever_has_a_budget_and_a_reason(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(source_module, "MOST_PAGES", 50)

    async def handler(request: Request) -> None:
        if request.rpc == f"{kind}/list":
            await request.result({kind: [], "nextCursor": str(len(upstreams[0].requests))})
        elif not await handshake(request, resources={}, prompts={}):
            await request.result({"resourceTemplates": [], "resources": [], "prompts": []})

    upstreams: list[Scripted] = []
    async with scripted(handler) as upstream:
        upstreams.append(upstream)
        async with bench(url=upstream.url) as made:
            with pytest.raises(DependencyUnavailable, match=f"pages a minute; the last were of its {kind}"):
                await made.source.connect()
            assert len(upstream.sent(f"{kind}/list")) <= 50


async def test_an_answer_without_end_is_cut_off() -> None:
    async def handler(request: Request) -> None:
        if await discovery(request):
            return
        request.writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: ")
        while not request.writer.is_closing():
            request.writer.write(b"z" * (1 << 20))
            await request.writer.drain()

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        with pytest.raises(OutcomeUnknown, match="an event of more than"):
            await made.call("work")


async def test_a_call_past_its_deadline_is_cancelled_by_notice_or_by_hanging_up() -> None:
    async def handler(request: Request) -> None:
        play = discovery if "modern" in request.path else handshake
        await play(request)

    async with scripted(handler) as upstream:
        async with connected(url=upstream.url) as made:
            with pytest.raises(CallTimeout):
                await made.call("work", seconds=0.2)
            await until(lambda: upstream.sent("notifications/cancelled"))
            (call,) = upstream.sent("tools/call")
            (cancel,) = upstream.sent("notifications/cancelled")
            assert cancel.body["params"]["requestId"] == call.body["id"]
        async with connected(url=f"{upstream.url}/modern") as made:
            with pytest.raises(CallTimeout):
                await made.call("work", seconds=0.2)
            call = upstream.sent("tools/call")[1]
            await until(lambda: call.writer.is_closing())
            assert len(upstream.sent("notifications/cancelled")) == 1


@pytest.mark.parametrize(
    "words", [b"", b'{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"too old"}}']
)
async def test_a_server_that_was_replaced_by_a_newer_one_is_asked_again_what_it_speaks(words: bytes) -> None:
    async def handler(request: Request) -> None:
        if not await discovery(request):
            await request.send(400 if request.method == "POST" else 405, words)

    async with scripted(handler) as upstream:
        memory = Memory()
        async with connected(memory, url=upstream.url):
            (key,) = memory
        memory.set(key, "2025-11-25")
        async with connected(memory, url=upstream.url) as made:
            assert made.source.connections.main.revision is NEWEST_WITHOUT_SESSIONS
            assert memory == {key: "2026-07-28"}


async def test_a_server_that_was_away_for_a_moment_is_not_taken_for_an_older_one() -> None:
    away = [True]

    async def handler(request: Request) -> None:
        if away:
            await request.send(404, b"<html>", kind="text/html")
        elif not await handshake(request):
            await request.result(text("back"))

    async with scripted(handler) as upstream, bench(url=upstream.url) as made:
        with pytest.raises(DependencyUnavailable, match="HTTP status 404"):
            await made.source.connect()
        away.clear()
        await made.source.connect()
        assert await made.text("work") == "back"


async def test_the_get_stream_of_a_handshake_server_brings_its_changes() -> None:
    tools = [tool("work")]

    async def handler(request: Request) -> None:
        if request.method == "GET":
            tools.append(tool("more"))
            await request.events(note("notifications/tools/list_changed"), end=False)
        else:
            await handshake(request, *tools)

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        watching = asyncio.create_task(made.source.watch())
        assert await until(lambda: len(made.source.tools.definitions) >= 2)
        watching.cancel()


async def test_a_server_that_goes_away_ends_the_watch() -> None:
    async def handler(request: Request) -> None:
        if not await discovery(request, tools={"listChanged": True}):
            await request.events(end=False)

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        watching = asyncio.create_task(made.source.watch())
        await until(lambda: upstream.sent("subscriptions/listen"))
        upstream.stop()
        with pytest.raises(DependencyUnavailable):
            await watching


async def test_a_stream_of_changes_that_ends_at_once_is_opened_more_and_more_seldom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rests: list[int] = []

    async def rest(_self: object, short: int) -> None:
        rests.append(short)

    monkeypatch.setattr(watcher.Watcher, "rest", rest)

    async def handler(request: Request) -> None:
        if not await discovery(request, tools={"listChanged": True}):
            await request.result({"resultType": "complete"})

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        watching = asyncio.create_task(made.source.watch())
        await until(lambda: len(rests) >= 5)
        watching.cancel()
        assert rests[:5] == [1, 2, 3, 4, 5]


async def test_the_first_resource_that_is_watched_at_a_server_without_other_changes_is_asked_for() -> None:
    async def handler(request: Request) -> None:
        if request.rpc == "subscriptions/listen":
            await request.events(end=False)
        elif not await discovery(request, resources={"subscribe": True}):
            await request.result({"resources": [], "resourceTemplates": [], "resultType": "complete"})

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        watching = asyncio.create_task(made.source.watch())
        for _ in range(5):
            await asyncio.sleep(0)
        await made.source.forward("resources/subscribe", {"uri": "a:b"}, None, monotonic() + 5)
        await until(lambda: upstream.sent("subscriptions/listen"))
        [listened] = upstream.sent("subscriptions/listen")
        assert listened.body["params"]["notifications"] == {"resourceSubscriptions": ["a:b"]}
        watching.cancel()


async def test_a_server_on_demand_is_asked_again_to_watch_what_it_may_have_forgotten() -> None:
    async def handler(request: Request) -> None:
        if not await handshake(request):
            await request.result({})

    async with scripted(handler) as upstream, connected(url=upstream.url, connect="on-demand") as made:
        for method in "subscribe", "subscribe", "unsubscribe":
            uri = "a:b" if method == "subscribe" and not made.source.watched else "a:c"
            await made.source.forward(f"resources/{method}", {"uri": uri}, None, monotonic() + 5)
        assert made.source.watched
        await made.source.connections.close()
        await made.source.connect()
        asked = [request.body["params"]["uri"] for request in upstream.sent("resources/subscribe")]
        assert asked == ["a:b", "a:c", "a:b"]
        await made.source.connections.close()
        with pytest.raises(DependencyUnavailable):
            await made.source.forward("resources/unsubscribe", {"uri": "a:b"}, None, monotonic() + 5)
        assert not made.source.watched


async def test_a_resource_whose_subscription_failed_keeps_no_server_connected() -> None:
    async def handler(request: Request) -> None:
        if not await handshake(request):
            await request.result(None)

    async with scripted(handler) as upstream, connected(url=upstream.url, connect="on-demand") as made:
        with pytest.raises(UpstreamError):
            await made.source.forward("resources/subscribe", {"uri": "a:b"}, None, monotonic() + 5)
        assert not made.source.watched


async def asking(request: Request) -> None:
    """A server whose every call asks who is there, and waits."""
    if not await handshake(request):
        await request.events(WHO, end=False)


async def ended_while_away(made: Bench) -> None:
    """Wait until the one parked call has come to its end."""
    [parked] = made.source.bridge.parking.waiting.values()
    await until(lambda: parked.task is not None and parked.task.done())


async def test_a_caller_that_comes_back_to_a_call_that_failed_meanwhile_is_told_at_once() -> None:
    async with scripted(asking) as upstream, connected(url=upstream.url) as made:
        first = await asked(made)
        [call] = upstream.sent("tools/call")
        call.writer.transport.abort()
        await ended_while_away(made)
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(OutcomeUnknown):
                await made.call("work", conversation=modern(), meta=accepting(first))


async def test_a_caller_that_comes_back_to_a_call_that_was_answered_meanwhile_gets_the_answer() -> None:
    async with scripted(asking) as upstream, connected(url=upstream.url) as made:
        first = await asked(made)
        [call] = upstream.sent("tools/call")
        await call.more(reply(call, text("nobody answered, so I chose")))
        await ended_while_away(made)
        again = {"inputResponses": {}, "requestState": first["requestState"]}
        async with asyncio.timeout(PATIENCE):
            assert "I chose" in await made.text("work", conversation=modern(), meta=again)


async def test_a_notice_that_an_sse_server_refuses_is_no_error_of_the_loop() -> None:
    streams: list[Request] = []

    async def handler(request: Request) -> None:
        answers = {
            "initialize": {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": {}},
            "tools/list": {"tools": [tool("work")]},
        }
        if request.method == "GET":
            streams.append(request)
            await request.events(b"event: endpoint\ndata: /messages\n\n", end=False)
            return
        await request.send(401 if request.rpc == "notifications/cancelled" else 202)
        if request.rpc in answers:
            body = msgspec.json.encode(reply(request, answers[request.rpc]))
            await streams[-1].more(b"event: message\ndata: " + body + b"\n\n")

    async with scripted(handler) as upstream:
        reported = reports_of_the_loop()
        async with connected(url=upstream.url, transport="sse") as made:
            call = asyncio.create_task(made.call("work"))
            await until(lambda: upstream.sent("tools/call"))
            call.cancel()
            await asyncio.wait([call])
            link = made.source.connections.main.link
            await until(lambda: upstream.sent("notifications/cancelled") and len(link.tasks.running) == 1)
        gc.collect()
        assert reported == []


def reports_of_the_loop() -> list[object]:
    """What the loop reports from now on, such as exceptions that nobody looked at."""
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context))
    return reported


async def test_the_older_sse_transport_carries_calls_on_its_one_stream() -> None:
    streams: list[Request] = []

    async def handler(request: Request) -> None:
        if request.method == "GET":
            streams.append(request)
            await request.events(b"event: endpoint\ndata: /messages?session=1\n\n", end=False)
        elif request.path != "/messages?session=1":
            await request.send(405)
        else:
            await request.send(202)
            await answer(request, streams[-1])

    async def answer(request: Request, stream: Request) -> None:
        answers = {
            "initialize": {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": {}},
            "tools/list": {"tools": [tool("work")]},
            "tools/call": text("over sse"),
        }
        if request.rpc in answers:
            event = b"event: message\r\ndata: " + msgspec.json.encode(reply(request, answers[request.rpc]))
            await stream.more(event + b"\r\n\r\n")

    async with scripted(handler) as upstream:
        async with connected(url=upstream.url) as made:
            assert made.source.connections.main.revision.name == "2024-11-05"
            assert await made.text("work") == "over sse"
        async with connected(url=upstream.url, transport="sse") as made:
            assert await made.text("work") == "over sse"
            watching = asyncio.create_task(made.source.watch())
            streams[-1].writer.transport.abort()
            with pytest.raises(DependencyUnavailable):
                await watching


async def test_an_sse_server_cannot_send_our_requests_to_another_origin() -> None:
    async def handler(request: Request) -> None:
        await request.events(b"event: endpoint\ndata: http://127.0.0.1:1/steal\n\n", end=False)

    async with scripted(handler) as upstream, bench(url=upstream.url, transport="sse") as made:
        with pytest.raises(DependencyUnavailable, match="another origin"):
            await made.source.connect()


async def test_heads_are_kept_for_short_names_only_so_that_long_uris_fill_no_memory() -> None:
    pool = Pool()
    link = HttpLink(pool, "http://127.0.0.1:1/mcp", Access(FixedCredentials(Identity(source="up")), set))
    link.revision = NEWEST_WITHOUT_SESSIONS

    def head(uri: str) -> bytes:
        return link.heads.of(Order(method="resources/read", params={"uri": uri}, deadline=1.0))

    assert head("a:b") is head("a:b")
    long = "a:" + "b" * 100_000
    assert head(long) == head(long)
    assert f"mcp-name: {long}".encode() in head(long)
    assert sum(map(len, link.heads.encoded.values())) < 1_000
    await link.close()
    await pool.aclose()


async def test_a_caller_that_leaves_the_moment_its_server_speaks_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scripted(asking) as upstream, connected(url=upstream.url) as made:
        call = asyncio.create_task(made.call("work", conversation=modern()))
        leave_when_parked(call, monkeypatch)
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: upstream.sent("notifications/cancelled"))
        assert in_flight(made) == 0
        assert len(upstream.sent("notifications/cancelled")) == 1


async def test_a_modern_server_that_no_longer_answers_is_noticed_while_it_is_listened_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watcher, "IDLE_SECONDS", 0.02)
    monkeypatch.setattr(watcher, "CHECK_SECONDS", 0.05)
    hung = asyncio.Event()

    async def handler(request: Request) -> None:
        if request.rpc == "subscriptions/listen":
            await request.events(note("notifications/subscriptions/acknowledged"), end=False)
            hung.set()
        elif not hung.is_set():
            await discovery(request, tools={"listChanged": True})

    async with scripted(handler) as upstream, connected(url=upstream.url) as made, asyncio.timeout(PATIENCE):
        with pytest.raises(DependencyUnavailable, match="no longer answers"):
            await made.source.watch()


async def test_a_server_that_lets_a_call_be_polled_is_polled_until_it_answers() -> None:
    polls: list[str] = []

    async def handler(request: Request) -> None:
        if request.rpc == "tools/call":
            polls.append(str(request.body["id"]))
            await request.events(b"id: 0\nretry: 1\ndata:\n\n")
        elif request.method == "GET" and (last := request.headers.get("last-event-id")):
            polls.append(last)
            number = len(polls) - 1
            answer = {"jsonrpc": "2.0", "id": int(polls[0]), "result": text("at last")}
            said = msgspec.json.encode(answer) if number == 12 else b""
            await request.events(b"id: %d\ndata: %b\n\n" % (number, said))
        else:
            await handshake(request)

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        assert await made.text("work") == "at last"
        assert polls[1:] == [str(number) for number in range(12)]


async def test_a_stream_of_notices_that_is_often_ended_is_opened_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replies, "RETRY_SECONDS", 0.0001)
    monkeypatch.setattr(http, "LONGEST_RETRY", 0.001)
    ended = 0

    async def handler(request: Request) -> None:
        nonlocal ended
        if request.method == "GET" and ended < 12:
            ended += 1
            await request.events()
        elif request.method == "GET":
            await request.events(note("notifications/tools/list_changed"), end=False)
        else:
            await handshake(request)

    async with scripted(handler) as upstream:
        async with connected(url=upstream.url) as made:
            assert await until(made.source.watcher.changed.is_set)
        assert ended == 12


class Undecided(Conversation):
    """A caller that is asked and does not answer."""

    async def request(self, method: str, params: Mapping[str, object]) -> object:
        self.asked.append((method, params))
        return await asyncio.Event().wait()


async def test_a_server_that_floods_a_caller_with_questions_has_the_surplus_refused() -> None:
    refused: list[object] = []

    async def handler(request: Request) -> None:
        if request.rpc == "tools/call":
            question = {"jsonrpc": "2.0", "method": "elicitation/create", "params": {"message": "who?"}}
            questions = [{**question, "id": f"q{number}"} for number in range(100)]
            await request.events(*questions, reply(request, text("done")))
        elif request.method == "POST" and not request.rpc:
            refused.append(request.body["id"])
            await request.send(202)
        else:
            await handshake(request)

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        caller = Undecided(era="2025-11-25", capabilities={"elicitation": {}})
        assert await made.text("work", conversation=caller) == "done"
        assert len(caller.asked) == MAX_QUESTIONS
        assert refused == [f"q{number}" for number in range(MAX_QUESTIONS, 100)]


async def test_a_resource_that_cannot_be_used_is_left_out_and_the_rest_of_its_server_stays() -> None:
    deep: object = "deep"
    for _ in range(100):
        deep = [deep]

    async def handler(request: Request) -> None:
        if request.rpc == "resources/list":
            await request.result({"resources": [{"uri": "a:1", "_meta": {"x": deep}}, {"uri": "a:2"}, 3]})
        elif request.rpc == "resources/templates/list":
            await request.result({"resourceTemplates": 5})
        elif not await handshake(request, resources={}):
            await request.result(text("ran"))

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        assert made.source.offers("resources") == ({"uri": "a:2"},)
        assert made.source.offers("resourceTemplates") == ()
        assert await made.text("work") == "ran"


async def test_a_server_whose_tools_are_no_list_is_named_with_that_reason() -> None:
    async def handler(request: Request) -> None:
        if request.rpc == "tools/list":
            await request.result({"tools": 5})
        else:
            await handshake(request)

    async with scripted(handler) as upstream, bench(url=upstream.url) as made:
        with pytest.raises(DependencyUnavailable, match="its tools as something that is not a list"):
            await made.source.connect()
