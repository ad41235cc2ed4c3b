"""A client of a handshake revision goes on with its session on another gateway; what cannot go on says so."""

import pytest
from tests.cluster.several import until
from tests.gateway import OTHER_TOKEN, TOKEN

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
    until(lambda: say(pair.one, session=session).status == 404, 1)
    told = say(pair.two, session=session)
    assert (told.status, told.json["error"]["message"]) == (
        404,
        "Session not found; send initialize to begin a new one",
    )


def test_who_comes_back_for_a_stream_on_another_gateway_is_told_that_it_is_lost(pair, session):
    told = say(pair.two, session=session, http="GET", **{"Last-Event-ID": "s1-1"})
    assert told.status == 400
    assert "no longer kept" in told.json["error"]["message"]
