"""Many at once: strangers who say nothing, and agents whose requests have the same ids."""

import http.client
import json
import socket
import threading
from contextlib import ExitStack

import psutil
import pytest
from tests.gateway import OTHER_TOKEN, TOKEN
from tests.security.house import META, MODERN
from tests.waiting import PATIENCE

UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
TIMES = 200


def address(home):
    host, _, port = home.gateway.url.rpartition("/")[2].partition(":")
    return host, int(port)


def test_three_hundred_strangers_do_not_keep_a_good_agent_out(home):
    with ExitStack() as stack:
        for number in range(300):
            stranger = stack.enter_context(socket.create_connection(address(home), timeout=PATIENCE))
            stranger.sendall((UPGRADE, b"", b"POST /api/call HTTP/1.1\r\nHost: 127.0.0.1\r\n")[number % 3])
        assert home.gateway.call("get_state", {"entity_id": "a.b"}, timeout=10).status == 200
        assert "result" in home.said("get_state", {"entity_id": "a.b"})


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (b"x/health?", 400),
        (b"127.0.0.1/health?x=", 400),
        (b"127.0.0.1@evil.example", 400),
        (b"127.0.0.1, evil.example", 400),
        (b"evil.example", 403),
        (b"127.0.0.1.evil.example", 403),
        (b"localhost.evil.example:80", 403),
        (b"", 400),
    ],
)
def test_a_host_header_chooses_no_path_and_opens_nothing(home, host, status):
    for target in (b"/status", b"/api/tools", b"/mcp", b"/health"):
        with socket.create_connection(address(home), timeout=PATIENCE) as raw:
            token = b"Authorization: Bearer " + TOKEN.encode()
            raw.sendall(b"GET %b HTTP/1.1\r\nHost: %b\r\n%b\r\n\r\n" % (target, host, token))
            assert raw.recv(4096).startswith(b"HTTP/1.1 %d " % status)


def speak(home, token, mine, told):
    """Send the same ids as everybody else over one WebSocket; note what came back."""
    with home.socket(token) as wire:
        for number in range(TIMES):
            asked = {"tool": "box__echo", "args": {"who": mine, "number": number}}
            message = {"jsonrpc": "2.0", "id": number, "method": "tool_request", "params": asked}
            wire.send(json.dumps(message))
        for _ in range(TIMES):
            reply = json.loads(wire.recv(PATIENCE))
            told.append((reply["id"], json.loads(reply["result"]["data"])))


def post(home, token, mine, told):
    """The same over MCP on one connection of its own."""
    connection = http.client.HTTPConnection(*address(home), timeout=PATIENCE)
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "box__echo",
    }
    for number in range(TIMES):
        named = {"name": "box__echo", "arguments": {"who": mine, "number": number}, "_meta": META}
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": named}
        connection.request("POST", "/mcp/full", json.dumps(message), headers)
        reply = json.loads(connection.getresponse().read())
        told.append((reply["id"], json.loads(reply["result"]["content"][0]["text"])))
    connection.close()


def test_equal_ids_of_two_agents_on_two_surfaces_are_never_mixed_up(home):
    told = {(way, token): [] for way in (speak, post) for token in (TOKEN, OTHER_TOKEN)}
    threads = [
        threading.Thread(target=way, args=(home, token, f"{way.__name__} {token}", heard))
        for (way, token), heard in told.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    for (way, token), heard in told.items():
        wanted = [(n, {"who": f"{way.__name__} {token}", "number": n}) for n in range(TIMES)]
        assert sorted(heard, key=lambda one: one[0]) == wanted


def test_a_call_a_session_and_a_state_belong_to_the_agent_that_made_them(home):
    call = home.gateway.call("act", {"what": "mine"}, wait=0).json["call"]
    waiting = home.modern("act", {"what": "mine"})["result"]["requestState"]
    unknown = home.gateway.request("GET", f"/api/calls/{'0' * 32}", token=OTHER_TOKEN).body
    assert home.gateway.request("GET", f"/api/calls/{call}", token=OTHER_TOKEN).body == unknown
    assert home.gateway.request("DELETE", f"/api/calls/{call}", token=OTHER_TOKEN).status == 404
    refused = home.modern("act", {"what": "mine"}, token=OTHER_TOKEN, requestState=waiting)
    assert refused["error"]["code"] == -32602
    looked = home.modern("gate_result", {"id": call}, token=OTHER_TOKEN)["result"]
    assert looked["isError"] is True
    viewed = home.modern(
        "tool_view",
        {"handle": f"result:{call}", "selector": {"type": "head"}},
        path="/mcp/gateway",
        token=OTHER_TOKEN,
    )
    assert viewed["result"]["isError"] is True
    assert home.gateway.story(call) == ["pending"]


@pytest.mark.parametrize("session", ["0" * 32, "../../x", "a" * 5000, "fixed-by-me"])
def test_a_session_that_an_agent_makes_up_is_none(home, session):
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
    headers["Accept"] = "application/json, text/event-stream"
    assert home.gateway.request("POST", "/mcp", message, headers=headers).status in (400, 404)


def test_an_endless_wish_is_answered_like_a_long_one(home):
    home.gateway.call("tool_browse", {"query": "warm up"})
    before = worked(home)
    reply = home.gateway.call("tool_browse", {"query": "read the notes and send them " * 30_000})
    assert (reply.status, bool(reply.json["data"]["cards"])) == (200, True)
    assert worked(home) - before < 2


def worked(home):
    """Seconds that the gateway has worked, however many other programs there are."""
    times = psutil.Process(home.gateway.process.pid).cpu_times()
    return times.user + times.system
