"""Clients of the revisions with a handshake: sessions, streams, questions, and calls that go on alone."""

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.surfaces.mcp.mcp_client import NEWEST, client_of, encode, text_of
from tests.surfaces.mcp.mcp_small import ANNA, ASK, BERT, Cupboard, caller, small_gate
from tests.waiting import PATIENCE, until

from agent_gate.core.call import Outcome, Result
from agent_gate.core.ports import Job
from agent_gate.mcp.revisions import NEWEST_WITH_SESSIONS
from agent_gate.net.http import Request
from agent_gate.surfaces.mcp.http.posting import HttpVisit
from agent_gate.surfaces.mcp.sessions import kept as kept_module
from agent_gate.surfaces.mcp.sessions.sessions import IDLE_SECONDS, MOST_PER_CALLER, McpSession, McpSessions


def lab(**works: Any) -> Cupboard:
    source = Cupboard()
    for name, work in works.items():
        source.tool(name, work)
    return source


async def asks(job: Job) -> Any:
    conversation = job.case.call.conversation
    assert conversation is not None
    reply = await conversation.request("elicitation/create", {"message": "Who?"})
    return {"said": reply}


class Gated:
    """Work that says it began and ends when it is told to."""

    def __init__(self) -> None:
        self.began, self.go = asyncio.Event(), asyncio.Event()

    async def __call__(self, job: Job) -> Any:
        conversation = job.case.call.conversation
        assert conversation is not None
        await conversation.notify("notifications/message", {"level": "info", "data": "began"})
        self.began.set()
        await self.go.wait()
        return "done"


@pytest.mark.parametrize("era", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_handshake_revision_is_agreed_to(tmp_path: Path, era: str) -> None:
    async with small_gate(tmp_path, lab(echo=None)) as gate, client_of(gate) as client:
        welcome = await client.initialize(era)
        assert welcome["protocolVersion"] == era
        assert welcome["capabilities"]["tools"] == {"listChanged": True}
        assert (await client.tell({"method": "notifications/initialized"})).status == 202
        assert (await client.ask("ping")).result == {}
        reply = await client.call("lab__echo", word="hello")
        assert reply.result["structuredContent"] == {"word": "hello"}
        assert reply.headers["content-type"] == "application/json"


@pytest.mark.parametrize("wanted", ["2026-07-28", "1999-01-01"])
async def test_a_revision_without_a_handshake_is_answered_with_the_newest_that_has_one(
    tmp_path: Path, wanted: str
) -> None:
    async with small_gate(tmp_path, lab(echo=None)) as gate, client_of(gate) as client:
        assert (await client.initialize(wanted))["protocolVersion"] == NEWEST


async def test_a_session_belongs_to_the_caller_that_began_it(tmp_path: Path) -> None:
    async with (
        small_gate(tmp_path, lab(echo=None)) as gate,
        client_of(gate) as anna,
        client_of(gate, token=BERT) as bert,
    ):
        await anna.initialize()
        bert.session = anna.session
        stolen = await bert.ask("tools/list", number=1)
        bert.session = "0" * 32
        unknown = await bert.ask("tools/list", number=1)
        assert stolen.status == unknown.status == 404
        assert stolen.body == unknown.body
        assert (await anna.ask("tools/list")).status == 200


async def test_a_deleted_session_is_gone(tmp_path: Path) -> None:
    async with small_gate(tmp_path, lab(echo=None)) as gate, client_of(gate) as client:
        await client.initialize()
        assert (await client.send("DELETE", headers=client.session_headers())).status == 204
        assert (await client.ask("tools/list")).status == 404
        assert (await client.listen()).status == 404


async def test_requests_that_need_no_session_are_served_without_one(tmp_path: Path) -> None:
    async with small_gate(tmp_path, lab(echo=None)) as gate, client_of(gate) as client:
        assert len((await client.ask("tools/list")).result["tools"]) == 2
        assert (await client.call("lab__echo", a=1)).result["structuredContent"] == {"a": 1}
        refused = await client.ask("resources/subscribe", uri="x://y")
        assert refused.error["code"] == -32600
        assert (await client.send("GET", headers=client.session_headers())).status == 405


async def test_a_batch_and_a_body_that_is_not_json_are_refused(tmp_path: Path) -> None:
    async with small_gate(tmp_path, lab(echo=None)) as gate, client_of(gate) as client:
        batch = await client.send("POST", encode([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]))
        assert (batch.status, batch.error["code"]) == (400, -32600)
        broken = await client.send("POST", b"{")
        assert (broken.status, broken.error["code"]) == (400, -32700)
        unknown = await client.ask("no/such/method")
        assert (unknown.status, unknown.error["code"]) == (200, -32601)


async def test_a_question_to_the_client_is_put_on_the_stream_and_its_answer_comes_back(
    tmp_path: Path,
) -> None:
    async with small_gate(tmp_path, lab(asks=asks)) as gate, client_of(gate) as client:
        await client.initialize(capabilities={"elicitation": {}})
        reply = await client.call("lab__asks")
        assert reply.streams
        question = await reply.event()
        assert question["method"] == "elicitation/create"
        answer = {"action": "accept", "content": {"name": "Ada"}}
        assert (await client.tell({"id": question["id"], "result": answer})).status == 202
        final = await reply.event()
        assert final["result"]["structuredContent"] == {"said": answer}
        assert await reply.event() is None


async def test_a_client_that_declines_a_question_fails_only_that_question(tmp_path: Path) -> None:
    async with small_gate(tmp_path, lab(asks=asks)) as gate, client_of(gate) as client:
        await client.initialize(capabilities={"elicitation": {}})
        reply = await client.call("lab__asks")
        question = await reply.event()
        await client.tell({"id": question["id"], "error": {"code": -1, "message": "no user here"}})
        final = await reply.event()
        assert final["result"]["isError"]
        assert "no user here" in text_of(final["result"])


async def test_a_client_that_lost_its_stream_reads_the_result_from_where_it_stopped(tmp_path: Path) -> None:
    work = Gated()
    async with small_gate(tmp_path, lab(slow=work)) as gate, client_of(gate) as client:
        await client.initialize()
        reply = await client.call("lab__slow")
        assert (await reply.event())["method"] == "notifications/message"
        reply.hang_up()
        work.go.set()
        resumed = await client.listen(last=reply.last_id)
        events = await resumed.events()
        assert [text_of(event["result"]) for event in events] == ["done"]
        again = await client.listen(last=reply.last_id)
        assert await again.events() == events
        assert len(gate.sources["lab"].jobs) == 1


async def test_what_is_kept_of_ended_streams_is_bounded_for_all_sessions_of_a_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_module, "MOST_KEPT", 2500 + 2 * kept_module.EMPTY_STREAM)

    async def long(job: Job) -> Any:
        conversation = job.case.call.conversation
        assert conversation is not None
        await conversation.notify("notifications/message", {"level": "info", "data": "began"})
        return "x" * 1000

    async with small_gate(tmp_path, lab(long=long)) as gate, contextlib.AsyncExitStack() as stack:
        tokens = (BERT, ANNA, ANNA, ANNA)
        clients = [await stack.enter_async_context(client_of(gate, token=token)) for token in tokens]
        places = []
        for client in clients:
            await client.initialize()
            reply = await client.call("lab__long")
            await reply.event()
            places.append(reply.last_id)
            await reply.events()
        again = [await client.listen(last=place) for client, place in zip(clients, places, strict=True)]
        ends = [(await reply.event()).keys() for reply in again]
        assert ["result" in end for end in ends] == [True, False, True, True]
        for client in clients:
            await client.send("DELETE", headers=client.session_headers())
        assert not gate.surface.sessions._kept


async def test_every_answer_waits_for_a_client_that_made_many_calls_and_went_away(tmp_path: Path) -> None:
    work, many = Gated(), 40
    async with small_gate(tmp_path, lab(slow=work)) as gate, client_of(gate) as client:
        await client.initialize()
        replies = [await client.call("lab__slow") for _ in range(many)]
        for reply in replies:
            await reply.event()
            reply.hang_up()
        work.go.set()
        again = [await client.listen(last=reply.last_id) for reply in replies]
        assert [text_of((await reply.event())["result"]) for reply in again] == ["done"] * many


async def test_a_client_hears_that_the_answer_it_comes_back_for_is_no_longer_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_module, "MOST_STREAMS", 2)
    monkeypatch.setattr(kept_module, "MOST_GONE", 1)
    work = Gated()
    work.go.set()
    async with small_gate(tmp_path, lab(slow=work)) as gate, client_of(gate) as client:
        await client.initialize()
        replies = [await client.call("lab__slow") for _ in range(4)]
        places = []
        for reply in replies:
            await reply.event()
            places.append(reply.last_id)
            await reply.events()
        forgotten, gone, *kept = [await client.listen(last=place) for place in places]
        assert [text_of((await reply.event())["result"]) for reply in kept] == ["done", "done"]
        [answer] = await gone.events()
        assert (answer["id"], answer["error"]["code"]) == (2, -32603)
        assert "may have run" in answer["error"]["message"]
        asked = await client.call("gate_result", id=answer["error"]["data"]["call"])
        assert "The call is completed" in text_of(asked.result)
        assert (forgotten.status, forgotten.error["code"]) == (400, -32600)
        async with client_of(gate) as other:
            await other.initialize()
            assert (await other.listen(last=places[1])).status == 400


async def test_an_answer_is_kept_however_many_other_calls_of_its_session_still_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_module, "MOST_STREAMS", 2)
    works = [Gated() for _ in range(4)]
    tools = {f"slow{number}": work for number, work in enumerate(works)}
    async with small_gate(tmp_path, lab(**tools)) as gate, client_of(gate) as client:
        await client.initialize()
        replies = [await client.call(f"lab__{name}") for name in tools]
        places = []
        for reply in replies:
            await reply.event()
            places.append(reply.last_id)
        for reply, work in zip(replies[:2], works[:2], strict=True):
            work.go.set()
            await reply.events()
        again = [await client.listen(last=place) for place in places[:2]]
        assert [reply.status for reply in again] == [200, 200]
        for work in works:
            work.go.set()


async def test_a_stream_that_is_no_longer_kept_is_refused_and_not_mistaken_for_the_sessions_own(
    tmp_path: Path,
) -> None:
    async with small_gate(tmp_path, lab(echo=None)) as gate, client_of(gate) as client:
        await client.initialize()
        own = await client.listen()
        gone = await client.listen(last="s99-1")
        assert (gone.status, gone.error["code"]) == (400, -32600)
        gate.sources["lab"].tool("new")
        gate.publish()
        assert (await own.event())["method"] == "notifications/tools/list_changed"


async def test_an_answer_that_cannot_be_read_fails_only_its_question(tmp_path: Path) -> None:
    async with small_gate(tmp_path, lab(asks=asks)) as gate, client_of(gate) as client:
        await client.initialize(capabilities={"elicitation": {}})
        for result in b"1e999", b"[" * 100 + b"]" * 100:
            reply = await client.call("lab__asks")
            question = await reply.event()
            body = b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (question["id"], result)
            assert (await client.send("POST", body, client.session_headers())).status == 202
            assert "cannot be read" in text_of((await reply.event())["result"])


async def test_a_greeting_that_a_session_would_have_to_keep_is_short(tmp_path: Path) -> None:
    async with small_gate(tmp_path, lab(echo=None)) as gate, client_of(gate) as client:
        long = {"protocolVersion": NEWEST, "capabilities": {"experimental": {"x": "y" * 100_000}}}
        refused = (await client.ask("initialize", **long)).error
        assert (refused["code"], len(gate.surface.sessions)) == (-32602, 0)


async def test_each_source_is_asked_for_the_most_that_anybody_who_sees_it_wants(tmp_path: Path) -> None:
    attic, cellar = Cupboard("attic"), Cupboard("cellar")
    callers = tuple(
        caller(name, namespaces=frozenset({space})) for name, space in (("anna", "attic"), ("bert", "cellar"))
    )
    async with (
        small_gate(tmp_path, attic, cellar, callers=callers) as gate,
        client_of(gate) as anna,
        client_of(gate, token=BERT) as bert,
    ):
        for client in anna, bert:
            for level in "debug", "warning":
                assert (await client.ask("logging/setLevel", level=level)).result == {}
            assert (await client.ask("logging/setLevel", level=["debug"])).error["code"] == -32602
        assert attic.forwarded == cellar.forwarded == [("logging/setLevel", {"level": "debug"})]
        fresh = gate.sources["cellar"] = Cupboard("cellar")
        await bert.ask("logging/setLevel", level="debug")
        assert fresh.forwarded == [("logging/setLevel", {"level": "debug"})]


async def test_a_client_that_reads_slowly_still_gets_the_answer(tmp_path: Path) -> None:
    go = asyncio.Event()

    async def talks(job: Job) -> Any:
        conversation = job.case.call.conversation
        assert conversation is not None
        await conversation.notify("notifications/message", {"level": "info", "data": "x" * 32_000_000})
        await go.wait()
        return "done"

    async with small_gate(tmp_path, lab(talks=talks)) as gate, client_of(gate) as client:
        await client.initialize()
        reply = await client.call("lab__talks")
        await until(lambda: any(getattr(one, "drained", None) for one in gate.server.connections))
        go.set()
        await until(lambda: not gate.surface._under_way)
        events = await reply.events()
        assert [event.get("method", "the answer") for event in events] == [
            "notifications/message",
            "the answer",
        ]


async def test_a_hung_up_stream_does_not_cancel_but_a_cancel_notice_does(tmp_path: Path) -> None:
    work = Gated()
    async with small_gate(tmp_path, lab(slow=work)) as gate, client_of(gate) as client:
        await client.initialize()
        reply = await client.ask("tools/call", number="call-1", name="lab__slow", arguments={})
        await reply.event()
        reply.hang_up()
        await client.ask("ping")
        assert len(gate.calls.running()) == 1
        params = {"requestId": "call-1", "reason": "not needed"}
        await client.tell({"method": "notifications/cancelled", "params": params})
        await until(lambda: not gate.calls.running())

        async def is_forgotten() -> bool:
            """Nothing is sent for a request that was cancelled, so there is nothing to come back for."""
            return (await client.listen(last=reply.last_id)).status == 400

        assert await until(is_forgotten)


async def test_the_result_of_a_call_whose_client_hung_up_is_kept(tmp_path: Path) -> None:
    began, go = asyncio.Event(), asyncio.Event()

    async def quiet(job: Job) -> Any:
        began.set()
        await go.wait()
        return "done"

    async with small_gate(tmp_path, lab(quiet=quiet, echo=None)) as gate, client_of(gate) as client:
        await client.initialize()
        asking = asyncio.create_task(client.call("lab__quiet"))
        await began.wait()
        client.replies[-1].hang_up()
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await asking
        assert (await client.call("lab__echo", word="here")).result["structuredContent"]
        go.set()
        await until(lambda: not gate.calls.running())
        kept = (await gate.calls.read_kept(caller("anna"))).results
        assert [(one.tool, one.outcome.state) for one in kept] == [("lab__quiet", "completed")]


async def test_what_a_call_says_after_its_request_was_answered_is_kept_by_nobody(tmp_path: Path) -> None:
    work = Gated()
    async with (
        small_gate(tmp_path, lab(slow=work, asks=asks), rules=ASK, hold=0.0) as gate,
        client_of(gate) as client,
    ):
        await client.initialize()
        [session] = gate.surface.sessions
        await client.call("lab__slow")
        await gate.approve()
        await work.began.wait()
        assert not session.streams
        work.go.set()
        asked = (await client.call("lab__asks")).result["_meta"]["agent-gate/pending"]
        await gate.approve()
        outcome = await gate.calls.await_outcome(asked["call"], caller("anna"), wait=10)
        assert isinstance(outcome, Outcome)
        assert outcome.error is not None
        assert "cannot be asked" in outcome.error.message


def test_a_stream_that_ended_takes_no_more() -> None:
    session = McpSession(caller("anna"), NEWEST_WITH_SESSIONS, "full", {})
    visit = HttpVisit(
        session.caller,
        session.revision,
        "full",
        session,
        b"1",
        {},
        {},
        False,
        request_in=Request("POST", b"/mcp", {}),
    )
    visit.stream = stream = session.open_stream()
    assert visit.emit(b"{}")
    visit.finish(b"{}")
    size = stream.size
    assert not visit.emit(b"{}")
    assert stream.size == size


@pytest.mark.parametrize(
    ("sent", "meant"),
    [(rb'"\u00e9\/"', rb'"\u00e9\/"'), (rb'"\u00e9"', '"é"'.encode()), (b"1.0", b"1"), (b"7", b"7")],
)
async def test_a_cancel_finds_its_request_however_the_id_is_written(
    tmp_path: Path, sent: bytes, meant: bytes
) -> None:
    work = Gated()
    async with small_gate(tmp_path, lab(slow=work)) as gate, client_of(gate) as client:
        await client.initialize()
        body = b'{"jsonrpc":"2.0","id":%b,"method":"tools/call","params":{"name":"lab__slow"}}' % sent
        reply = await client.send("POST", body, client.session_headers())
        await reply.event()
        params = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b}}' % meant
        assert (await client.send("POST", params, client.session_headers())).status == 202
        assert not any("result" in event or "error" in event for event in await reply.events())
        assert not gate.calls.running()


async def test_a_question_to_a_client_that_takes_no_event_stream_fails_at_once(tmp_path: Path) -> None:
    async with small_gate(tmp_path, lab(asks=asks)) as gate, client_of(gate) as client:
        await client.initialize(capabilities={"elicitation": {}})
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "lab__asks"}}
        headers = {**client.session_headers(), "Accept": "application/json"}
        async with asyncio.timeout(PATIENCE):
            reply = await client.send("POST", encode(message), headers)
        assert "cannot be asked" in text_of(reply.result)


async def test_a_question_after_the_end_of_a_session_fails_at_once(tmp_path: Path) -> None:
    go = asyncio.Event()

    async def asks_later(job: Job) -> Any:
        await go.wait()
        return await asks(job)

    async with small_gate(tmp_path, lab(asks=asks_later)) as gate, client_of(gate) as client:
        await client.initialize(capabilities={"elicitation": {}})
        reply = asyncio.ensure_future(client.call("lab__asks"))
        await until(lambda: gate.sources["lab"].jobs)
        assert (await client.send("DELETE", headers=client.session_headers())).status == 204
        go.set()
        async with asyncio.timeout(PATIENCE):
            assert "ended its session" in text_of((await reply).result)


async def test_log_messages_below_the_sessions_level_stay_away(tmp_path: Path) -> None:
    async def logs(job: Job) -> Any:
        conversation = job.case.call.conversation
        assert conversation is not None
        for level in "debug", "warning":
            await conversation.notify("notifications/message", {"level": level, "data": level})
        return "logged"

    async with small_gate(tmp_path, lab(logs=logs)) as gate, client_of(gate) as client:
        await client.initialize()
        assert (await client.ask("logging/setLevel", level="warning")).result == {}
        events = await (await client.call("lab__logs")).events()
        assert [event["params"]["data"] for event in events[:-1]] == ["warning"]
        assert (await client.ask("logging/setLevel", level="loud")).error["code"] == -32602


async def test_progress_goes_only_to_a_client_that_gave_a_token(tmp_path: Path) -> None:
    async def progresses(job: Job) -> Any:
        conversation = job.case.call.conversation
        assert conversation is not None
        params: Mapping[str, Any] = {"progressToken": "of the upstream", "progress": 1}
        await conversation.notify("notifications/progress", params)
        return "done"

    async with small_gate(tmp_path, lab(progresses=progresses)) as gate, client_of(gate) as client:
        await client.initialize()
        assert not (await client.call("lab__progresses")).streams
        events = await (await client.call("lab__progresses", _meta={"progressToken": 7})).events()
        assert events[0]["params"] == {"progressToken": 7, "progress": 1}


async def test_a_call_with_a_progress_token_but_no_progress_is_answered_as_plain_json(tmp_path: Path) -> None:
    async with small_gate(tmp_path, lab(echo=None)) as gate, client_of(gate) as client:
        await client.initialize()
        assert not (await client.call("lab__echo", _meta={"progressToken": 7})).streams


async def test_a_result_with_line_breaks_survives_the_event_stream(tmp_path: Path) -> None:
    async def pretty(job: Job) -> Any:
        conversation = job.case.call.conversation
        assert conversation is not None
        await conversation.notify("notifications/message", {"level": "info", "data": "first"})
        return Result(b'{\r\n "content": [\n{"type":"text","text":"a\\nb"}]\n}', "mcp")

    async with small_gate(tmp_path, lab(pretty=pretty)) as gate, client_of(gate) as client:
        await client.initialize()
        events = await (await client.call("lab__pretty")).events()
        assert text_of(events[-1]["result"]) == "a\nb"


async def test_only_the_newest_handshake_revision_gets_an_event_without_data(tmp_path: Path) -> None:
    for era, primed in (("2025-06-18", False), (NEWEST, True)):
        work = Gated()
        work.go.set()
        folder = tmp_path / era
        folder.mkdir()
        async with small_gate(folder, lab(slow=work)) as gate, client_of(gate) as client:
            await client.initialize(era)
            reply = await client.call("lab__slow")
            assert ((await reply.chunk()).endswith(b"data: \n\n")) is primed


class Time:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds

    def monotonic(self) -> float:
        return self.seconds


def test_an_idle_session_ends_and_a_full_house_makes_room_for_its_own_caller() -> None:
    clock, ended = Time(), []
    sessions = McpSessions(clock, lambda _: None, ended.append)

    def begin(name: str) -> McpSession:
        session = McpSession(caller(name), NEWEST_WITH_SESSIONS, "full", {})
        sessions.add(session)
        return session

    first = begin("anna")
    clock.seconds = IDLE_SECONDS + 1
    assert sessions.find(first.id, caller("anna")) is None
    assert ended == [first]
    second = begin("anna")
    clock.seconds += IDLE_SECONDS + 1
    sessions.expire()
    assert ended == [first, second]
    oldest = begin("anna")
    clock.seconds += 1
    others = [begin("bert"), *(begin("anna") for _ in range(MOST_PER_CALLER))]
    assert sessions.find(oldest.id, caller("anna")) is None
    assert sessions.find(others[0].id, caller("bert")) is others[0]
    assert len(sessions) == MOST_PER_CALLER + 1
