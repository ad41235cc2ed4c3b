"""One pipeline for every way in: what policy denies is denied however it is named, spelled or wrapped."""

import json

import pytest
from tests.gateway import OTHER_TOKEN
from tests.security.house import META
from tests.waiting import wait_until

ARGS = {"branch": "main"}
EXECUTE = {"tool_id": "box:push", "args": ARGS}


def rest_error(reply):
    assert reply.status == 403
    error = reply.json["error"]
    return error["code"], error["message"]


def mcp_error(message):
    result = message["result"]
    assert result["isError"] is True
    error = result["_meta"].get("agent-gate/error") or result["structuredContent"]
    return error.get("code", error.get("error")), error["message"]


def socket_error(message):
    error = message["error"]
    assert error["code"] == -32003
    return error["data"]["code"], error["message"]


def tool_id(home):
    return home.gateway.request("GET", "/api/tools/box:push").json["id"]


PATHS = {
    "REST by name": lambda home: rest_error(home.gateway.call("box__push", ARGS)),
    "REST by id": lambda home: rest_error(home.gateway.call(tool_id(home).replace("#", "%23"), ARGS)),
    "REST by alias": lambda home: rest_error(home.gateway.call("box:push", ARGS)),
    "REST escaped": lambda home: rest_error(home.gateway.call("%62ox__push", ARGS)),
    "REST call": lambda home: rest_error(
        home.gateway.request("POST", "/api/call", {"tool": "box__push", "arguments": ARGS})
    ),
    "REST call by server": lambda home: rest_error(
        home.gateway.request("POST", "/api/call", {"server": "box", "tool": "push", "args": ARGS})
    ),
    "REST meta-tool": lambda home: rest_error(home.gateway.call("tool_execute", EXECUTE)),
    "WebSocket": lambda home: socket_error(home.said("box__push", ARGS)),
    "WebSocket by alias": lambda home: socket_error(home.said("box:push", ARGS)),
    "MCP": lambda home: mcp_error(home.modern("box__push", ARGS)),
    "MCP by id": lambda home: mcp_error(home.modern(tool_id(home), ARGS)),
    "MCP gateway mode": lambda home: mcp_error(home.modern("tool_execute", EXECUTE, path="/mcp/gateway")),
    "MCP proxy mode": lambda home: mcp_error(home.modern("tool_execute", EXECUTE, path="/mcp/proxy")),
}


@pytest.mark.parametrize("path", PATHS)
def test_a_denied_call_is_denied_alike_on_every_path_and_reaches_nobody(home, path):
    before = len(home.rows(state="refused"))
    assert PATHS[path](home) == ("FORBIDDEN", "Denied by policy")
    assert home.reached() == []
    wait_until(lambda: len(home.rows(state="refused")) == before + 1)
    row = home.rows(state="refused")[0]
    assert row["body"]["signature"] == "box__push(branch=main)"
    assert row["body"]["rule"] == "deny box__push(*branch=main*)"


@pytest.mark.parametrize("mode", ["gateway", "proxy"])
def test_the_stripped_name_of_a_tool_cannot_be_called_around_tool_execute(home, mode):
    result = home.modern("box__push", {"branch": "free"}, path=f"/mcp/{mode}")["result"]
    assert result["structuredContent"]["error"] == "ARGS_INVALID"
    assert home.reached() == []


@pytest.mark.parametrize(
    "spelled",
    [
        "box__push ",
        "BOX__PUSH",
        "box__push#00000000",
        "box:push@1",
        "box:push#",
        "box__pus\u0068\u200b",
        "../tools/x",
    ],
)
def test_a_name_that_is_almost_a_tool_is_none(home, spelled):
    assert home.said(spelled, ARGS)["error"]["data"]["code"] == "TOOL_NOT_FOUND"
    assert home.reached() == []


@pytest.mark.parametrize("level", ["5", "5.0", "5e0", "0.5e1", "50E-1"])
def test_a_number_is_the_same_number_however_it_is_written(home, level):
    body = b'{"room": "cellar", "level": %b}' % level.encode()
    assert home.gateway.request("POST", "/api/tools/set_level", body).status == 403
    wanted = b'{"room": "hall", "level": %b}' % level.replace("5", "7", 1).encode()
    if level != "0.5e1" and level != "50E-1":
        assert home.gateway.request("POST", "/api/tools/set_level", wanted).status == 403
    assert home.reached() == []


@pytest.mark.parametrize("level", ["true", '"5"', "[5]", '{"a": 5}', "null", "5.5", "1e400", "NaN"])
def test_another_type_than_the_declared_one_reaches_nobody(home, level):
    reply = home.gateway.request(
        "POST", "/api/tools/set_level", b'{"room": "cellar", "level": %b}' % level.encode()
    )
    assert (reply.status, reply.json["error"]["code"]) == (400, "INVALID_ARGS")
    assert home.reached() == []


def test_a_denied_value_cannot_hide_behind_the_cut_of_a_long_one(home):
    hidden = {"command": "x" * 500 + " branch=main"}
    assert home.gateway.call("box__push", hidden).status == 200, (
        "an equals sign inside a value is no separator"
    )
    home.forget()
    assert home.gateway.call("box__push", {"branch": "main" + "x" * 500}).status == 403
    assert home.reached() == []


@pytest.mark.parametrize(
    "what",
    [
        "a\u202eb",
        "a\u200bb",
        "a\u2066b",
        "cafe\u0301",
        "a\x7fb",
        "a\x85b",
        "\ufeffa",
        "a\U000e0041",
        "a\u2028b",
    ],
)
def test_a_text_that_is_not_what_it_looks_like_is_no_identifier(home, what):
    reply = home.gateway.call("act", {"what": what}, wait=0)
    first, _, second = reply.json["error"]["message"].partition("\n")
    assert (reply.status, first) == (400, "Argument 'what' contains forbidden characters")
    assert second == "" or second.startswith('It has "U+')
    assert home.gateway.admin.get("/api/approvals") == []


def test_a_question_is_worded_in_one_pass(home):
    home.gateway.call("act", {"note": "and {what}", "what": "dance"}, wait=0)
    [approval] = home.gateway.admin.get("/api/approvals")
    assert approval["sentence"] == "Do dance? Note: and {what}"


def test_a_key_belongs_to_its_agent_and_tool_and_to_one_set_of_arguments_on_every_surface(home):
    key = {"Idempotency-Key": "one"}
    first = home.gateway.call("act", {"what": "a"}, wait=0, headers=key).json["call"]
    foreign = home.gateway.call("act", {"what": "a"}, wait=0, headers=key, token=OTHER_TOKEN).json["call"]
    assert foreign != first
    assert home.gateway.call("get_state", {"entity_id": "a.b"}, headers=key).status == 200
    told = [
        home.gateway.call("act", {"what": "b"}, wait=0, headers=key).json["error"],
        home.said("act", {"what": "c"}, idempotency_key="one")["error"]["data"],
        home.modern("act", {"what": "d"}, _meta=META | {"agent-gate/idempotency-key": "one"})["result"][
            "_meta"
        ]["agent-gate/error"],
    ]
    assert {error["code"] for error in told} == {"INVALID_ARGS"}
    wait_until(
        lambda: sum("idempotency key" in json.dumps(row["body"]) for row in home.rows(state="refused")) == 3
    )
    assert home.gateway.call("act", {"what": "a"}, wait=0, headers=key).json["call"] == first
    assert [request["path"] for request in home.recorder.requests] == ["/states/a.b"]


@pytest.mark.parametrize(
    "prefer", ["wait=", "wait=-1", "wait=nan", "wait=" + "9" * 400, "respond-async", "wait=0;wait=0"]
)
def test_a_senseless_preference_changes_nothing_about_a_call(home, prefer):
    reply = home.gateway.call("get_state", {"entity_id": "a.b"}, headers={"Prefer": prefer})
    assert reply.status == 200


@pytest.mark.parametrize(
    "entity", ["../config", "a/../../b", "a%2e%2e", "a?x=1", "a#b", "a;b", "a\\b", "a\nb", "..", ".", ""]
)
def test_no_argument_leaves_its_place_in_the_path(home, entity):
    reply = home.gateway.call("get_state", {"entity_id": entity})
    assert home.recorder.requests == [] or home.recorder.requests[0]["path"] == f"/states/{entity}"
    assert reply.status == 400


def test_what_stands_in_the_query_of_a_call_is_no_argument(home):
    home.gateway.request("POST", "/api/tools/get_state?entity_id=evil", {"entity_id": "a.b"})
    assert [request["path"] for request in home.recorder.requests] == ["/states/a.b"]


def test_a_key_that_is_too_long_is_refused_and_not_cut_to_another(home):
    for end in "ab":
        reply = home.gateway.call("act", {"what": "k"}, wait=0, headers={"Idempotency-Key": "x" * 300 + end})
        assert (reply.status, reply.json["error"]["code"]) == (400, "INVALID_ARGS")
    assert home.gateway.admin.get("/api/approvals") == []
