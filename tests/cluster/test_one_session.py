"""A client of a handshake revision goes on with its session on another gateway; what cannot go on says so."""

import http.client
import json
from contextlib import ExitStack, closing
from types import SimpleNamespace

import pytest
from tests import postgres
from tests.cluster.several import several
from tests.gateway import OTHER_TOKEN, TOKEN, Api, HeldReply
from tests.waiting import PATIENCE, wait_until

REVISION = "2025-06-18"


def say(
    gateway, method="tools/list", params=None, *, session=None, ident=1, token=TOKEN, http="POST", **headers
):
    body = {"jsonrpc": "2.0", "method": method, "params": params or {}} | ({"id": ident} if ident else {})
    given = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": REVISION,
        **({"Mcp-Session-Id": session} if session else {}),
        **headers,
    }
    return gateway.request(http, "/mcp", body if http == "POST" else None, headers=given, token=token)


@pytest.fixture
def session(pair):
    """A session that began on the first gateway."""
    greeting = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    begun = say(pair.one, "initialize", greeting)
    assert begun.json["result"]["protocolVersion"] == REVISION
    return begun.headers["mcp-session-id"]


def test_a_session_goes_on_where_it_did_not_begin(pair, session):
    listed = say(pair.two, session=session)
    assert {tool["name"] for tool in listed.json["result"]["tools"]} >= {"read", "write"}
    called = say(pair.two, "tools/call", {"name": "read", "arguments": {}}, session=session)
    assert not called.json["result"].get("isError")
    assert say(pair.two, "logging/setLevel", {"level": "error"}, session=session).status == 200
    assert say(pair.one, session=session).status == 200


def test_a_session_is_nobody_elses_on_any_gateway(pair, session):
    for gateway in (pair.one, pair.two):
        assert say(gateway, session=session, token=OTHER_TOKEN).status == 404
        assert say(gateway, session="0" * 32).status == 404
        assert say(gateway, session="no such ' session").status == 404


def test_a_session_that_its_client_ended_is_over_on_every_gateway(pair, session):
    assert say(pair.two, session=session).status == 200
    assert say(pair.two, session=session, http="DELETE").status == 204
    wait_until(lambda: say(pair.one, session=session).status == 404)
    told = say(pair.two, session=session)
    assert (told.status, told.json["error"]["message"]) == (
        404,
        "Session not found; send initialize to begin a new one",
    )


def test_who_comes_back_for_a_stream_on_another_gateway_is_told_that_it_is_lost(pair, session):
    told = say(pair.two, session=session, http="GET", **{"Last-Event-ID": "s1-1"})
    assert told.status == 400
    assert "no longer kept" in told.json["error"]["message"]


@pytest.fixture(scope="module")
def asking(tmp_path_factory):
    """Two gateways where the client's own person is asked before something is written."""
    rules = "rules: [{pattern: write, action: ask, via: client}, {pattern: run, action: allow}]"
    with Api() as api:
        database = postgres.server().new_database()
        with several(tmp_path_factory.mktemp("asking"), database, api, rules=rules) as gateways:
            yield SimpleNamespace(one=gateways.start("one"), two=gateways.start("two"), api=api)


@pytest.fixture
def answering(asking):
    """A session, begun on the first gateway, of a client whose person can be asked."""
    greeting = {
        "protocolVersion": REVISION,
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "t", "version": "1"},
    }
    return say(asking.one, "initialize", greeting).headers["mcp-session-id"]


class Streamed:
    """A call of a tool whose answer is a stream; `read` gives its next message, with the event's id."""

    def __init__(self, gateway, session, tool, ident):
        self._connection = http.client.HTTPConnection(gateway.url.rpartition("/")[2], timeout=PATIENCE)
        params = {"name": tool, "arguments": {"n": ident}}
        self._connection.request(
            "POST",
            "/mcp",
            json.dumps({"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params}),
            {
                "Authorization": f"Bearer {TOKEN}",
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": REVISION,
                "Mcp-Session-Id": session,
            },
        )

    def read(self):
        if not hasattr(self, "_response"):
            self._response = self._connection.getresponse()
        event = {}
        while line := self._response.readline().decode().rstrip("\n"):
            name, _, value = line.partition(": ")
            event[name] = value
        return event["id"], json.loads(event["data"])

    def close(self):
        if hasattr(self, "_response"):
            self._response.close()
        self._connection.close()


def answer(gateway, session, question, yes=True):
    content = dict.fromkeys(question["params"]["requestedSchema"]["properties"], yes)
    body = {
        "jsonrpc": "2.0",
        "id": question["id"],
        "result": {"action": "accept", "content": content},
    }
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": REVISION,
        "Mcp-Session-Id": session,
    }
    assert gateway.request("POST", "/mcp", body, headers=headers).status == 202


def test_a_question_on_one_gateway_is_answered_by_its_client_on_the_other(asking, answering):
    with closing(Streamed(asking.one, answering, "write", 41)) as call:
        _, question = call.read()
        assert question["method"] == "elicitation/create"
        answer(asking.two, answering, question)
        _, told = call.read()
    assert (told["id"], told["result"].get("isError", False)) == (41, False)


def test_questions_and_streams_of_one_session_on_two_gateways_are_never_taken_for_each_other(
    asking, answering
):
    with ExitStack() as life:
        calls = [
            life.enter_context(closing(Streamed(gateway, answering, "write", ident)))
            for gateway, ident in ((asking.one, 51), (asking.two, 52))
        ]
        (first_event, first), (second_event, second) = (call.read() for call in calls)
        assert first["id"] != second["id"]
        assert first_event != second_event
        lost = say(asking.two, session=answering, http="GET", **{"Last-Event-ID": first_event})
        assert lost.status == 400
        for gateway, question in ((asking.two, first), (asking.one, second)):
            answer(gateway, answering, question)
        assert [call.read()[1]["id"] for call in calls] == [51, 52]


def test_a_call_on_one_gateway_is_cancelled_by_its_client_on_the_other(asking, answering):
    held = HeldReply()
    asking.api.replies["/write"] = held
    try:
        with closing(Streamed(asking.one, answering, "run", 61)):
            assert held.arrived.wait(PATIENCE)
            # The row of an earlier call's end may come later than that of this one's beginning.
            rows = asking.one.admin.get("/api/calls")["rows"]
            [call] = {row["call"] for row in rows if row["tool"].startswith("home:run")}
            done = say(
                asking.two, "notifications/cancelled", {"requestId": 61}, session=answering, ident=None
            )
            assert done.status == 202
            wait_until(lambda: asking.one.story(call)[-1] == "unknown")
    finally:
        held.go_on.set()
        asking.api.replies.clear()


def test_the_stream_of_a_session_is_not_gone_on_with_after_an_event_of_another_gateway(pair, session):
    for _ in range(2):
        assert say(pair.two, session=session).status == 200
    told = say(pair.two, session=session, http="GET", **{"Last-Event-ID": "0-0"})
    assert told.status == 400
