"""What servers behind the gateway can see, and what they can make of it."""

import json

import pytest
from tests.gateway import TOKEN, Gateway
from tests.security.house import SERVER_SECRET, SERVICE_SECRET
from tests.security.upstream_texts import LOOKALIKES

from agent_gate.core.signature import MASK


def environment(home, server):
    reply = home.gateway.call(f"{server}__env")
    return json.loads(reply.json["data"])


def test_two_servers_never_see_each_others_secrets_nor_the_gateways_environment(home):
    box, other = environment(home, "box"), environment(home, "other")
    # Only a server's own key is masked in its results, so the mask shows that it has that and no other.
    assert box["BOX_KEY"] == other["OTHER_KEY"] == MASK
    assert "OTHER_KEY" not in box
    assert "BOX_KEY" not in other
    assert "the-key-of" not in json.dumps([box, other])
    for seen in box, other:
        assert "LOG_LEVEL" not in seen
        assert TOKEN not in json.dumps(seen)


def test_the_agents_token_and_headers_reach_no_upstream(home):
    extra = {"X-Agent-Secret": "mine", "Cookie": "session=mine"}
    home.gateway.call("get_state", {"entity_id": "a.b"}, headers=extra)
    home.gateway.call("far__echo", {"a": 1}, headers=extra)
    home.modern("far__echo", {"a": 1}, _meta={"authorization": f"Bearer {TOKEN}"})
    home.gateway.call("box__echo", {"a": 1}, headers=extra)
    seen = repr(home.reached())
    assert SERVICE_SECRET in seen
    assert SERVER_SECRET in seen
    assert TOKEN not in repr([request["headers"] for request in home.recorder.requests])
    assert "mine" not in seen


def test_each_credential_goes_to_its_own_upstream_only(home):
    home.gateway.call("get_state", {"entity_id": "a.b"})
    home.gateway.call("far__echo")
    by_path = {r["path"].split("/")[1]: repr(r) for r in home.recorder.requests}
    assert SERVICE_SECRET in by_path["states"]
    assert SERVICE_SECRET not in by_path["far"]
    assert SERVER_SECRET in by_path["far"]
    assert SERVER_SECRET not in by_path["states"]


def test_hidden_characters_in_a_servers_texts_are_gone_everywhere(home):
    pages = [
        home.gateway.request("GET", path).body.decode()
        for path in ("/api/tools", "/api/tools/box__poisoned", "/openapi.json", "/runtime/tools.ts")
    ]
    pages.append(json.dumps(home.modern("tool_browse", {"query": "adds numbers"}, path="/mcp/gateway")))
    pages.append(json.dumps(home.gateway.admin.get("/api/tools")))
    for page in pages:
        assert "poisoned" in page or "numbers" in page
        for hidden in "\u202e\u200b\U000e0041\U000e0042\x1b":
            assert hidden not in page
            assert json.dumps(hidden)[1:-1] not in page.lower()


def test_a_schema_is_never_fetched_from_elsewhere_and_its_tool_is_left_out(home):
    listed = {tool["name"] for tool in home.gateway.request("GET", "/api/tools").json["tools"]}
    assert {"box__echo", "box__poisoned"} <= listed
    assert not {"box__remote_ref", "box__file_ref"} & listed
    assert home.gateway.call("box__remote_ref", {"a": 1}).json["error"]["code"] == "TOOL_NOT_FOUND"
    assert not [r for r in home.recorder.requests if "schema" in r["path"]]


@pytest.mark.parametrize("kind", LOOKALIKES)
def test_a_result_that_looks_like_a_message_is_text(home, kind):
    wanted = LOOKALIKES[kind]
    assert home.gateway.call("box__lookalike", {"kind": kind}).json["content"][0]["text"] == wanted
    assert home.modern("box__lookalike", {"kind": kind})["result"]["content"][0]["text"] == wanted
    assert home.said("box__lookalike", {"kind": kind}, ident=7)["id"] == 7
    assert (
        home.modern(
            "tool_execute", {"tool_id": "box:lookalike", "args": {"kind": kind}}, path="/mcp/gateway"
        )["result"]["structuredContent"]["status"]
        == "ok"
    )


@pytest.mark.parametrize(
    "command",
    ["sh -c 'touch pwned'", "touch pwned; true", "$(touch pwned)", "true && touch pwned", "|touch pwned"],
)
def test_a_command_is_a_program_and_never_a_line_for_a_shell(tmp_path, command):
    (tmp_path / "config.yaml").write_text(
        json.dumps({"servers": {"x": {"type": "stdio", "command": command}}})
    )
    gateway = Gateway(tmp_path, "--insecure")
    with pytest.raises(AssertionError, match="the gateway did not start: 8"):
        gateway.start()
    assert "servers.x" in gateway.stderr
    assert not list(tmp_path.glob("**/pwned"))


def test_no_surface_lets_an_agent_add_or_try_a_server(home):
    body = {"name": "x", "command": "touch", "args": ["pwned"]}
    for path in (
        "/api/servers",
        "/servers",
        "/api/sources",
        "/api/sources/test",
        "/mcp/servers",
        "/api/connect",
    ):
        for method in ("POST", "PUT", "PATCH"):
            assert home.gateway.request(method, path, body).status in (404, 405)
    assert not list(home.folder.glob("**/pwned"))
