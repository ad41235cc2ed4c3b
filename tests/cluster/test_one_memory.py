"""What is changed on one gateway counts on the other: each kind of thing that is kept in memory."""

import json
import urllib.request

import pytest
from tests.approval.bot_api import CHAT, BotApi
from tests.approval.bot_api import TOKEN as BOT_TOKEN
from tests.cluster.several import SECRET, several
from tests.gateway import TOKEN
from tests.waiting import wait_until

from agent_gate.errors import GatewayError

MODERN = "2026-07-28"
ANN = 11


def made(gateway, kind, name):
    return gateway.admin.request("POST", f"/api/{kind}", {"name": name})["token"]


def revoke(gateway, kind, name):
    gateway.admin.request("DELETE", f"/api/{kind}/{name}")


def lets_in(gateway, token):
    return gateway.request("GET", "/api/tools", token=token).status == 200


def page(gateway, path, body=None, **headers):
    """The answer of the operator's listener, with its status."""
    data = None if body is None else json.dumps(body).encode()
    address = gateway.announced["admin"] + path
    headers = {"Content-Type": "application/json", **headers}
    try:
        with urllib.request.urlopen(urllib.request.Request(address, data, headers)) as reply:
            return reply.status, reply.read(), reply.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read(), error.headers


def questions(gateway):
    return gateway.admin.get("/api/approvals")


def answer(gateway, question, verdict="approve", **body):
    path = f"/api/approvals/{question['id']}"
    return gateway.admin.request("POST", path, {"verdict": verdict, **body})


def test_an_agents_token_counts_on_the_other_gateway_until_it_is_revoked_on_either(pair):
    token = made(pair.one, "agents", "visitor")
    assert wait_until(lambda: lets_in(pair.two, token))
    revoke(pair.two, "agents", "visitor")
    assert wait_until(lambda: not lets_in(pair.one, token))


def test_an_operators_token_counts_on_the_other_gateway_until_it_is_revoked(pair):
    token = made(pair.one, "operators", "robot")

    def status():
        return page(pair.two, "/api/status", Authorization=f"Bearer {token}")[0]

    assert wait_until(lambda: status() == 200)
    revoke(pair.one, "operators", "robot")
    assert wait_until(lambda: status() == 401)


@pytest.mark.parametrize("kind", ["agents", "operators"])
def test_a_token_that_was_given_a_moment_ago_is_good_on_the_other_gateway_at_once(pair, kind):
    for n in range(20):
        token = made(pair.one, kind, f"quick-{n}")
        if kind == "agents":
            assert lets_in(pair.two, token)
        else:
            assert page(pair.two, "/api/me", Authorization=f"Bearer {token}")[0] == 200


def test_a_remembered_answer_counts_on_the_other_gateway_until_it_is_taken_back(pair):
    pair.one.call("write", {"n": 70}, wait=0)
    [question] = wait_until(lambda: questions(pair.two))
    answer(pair.two, question, lifetime="hour")
    assert wait_until(lambda: pair.one.call("write", {"n": 70}, wait=0).status == 200)
    [grant] = wait_until(lambda: pair.one.admin.get("/api/grants"))
    pair.one.admin.request("DELETE", f"/api/grants/{grant['id']}")
    assert wait_until(lambda: pair.two.call("write", {"n": 70}, wait=0).status == 202)
    [question] = wait_until(lambda: questions(pair.one))
    answer(pair.one, question, "deny")
    assert wait_until(lambda: not questions(pair.two))


def test_a_request_state_of_one_gateway_is_good_on_the_other(tmp_path, database, api):
    with several(tmp_path, database, api, more="limits: {hold: 0}") as gateways:
        one, two = gateways.start("one"), gateways.start("two")

        def call(gateway, **more):
            meta = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            params = {"name": "write", "arguments": {"n": 1}, "_meta": meta, **more}
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            headers = {
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": MODERN,
                "Mcp-Method": "tools/call",
                "Mcp-Name": "write",
            }
            return gateway.request("POST", "/mcp", body, headers=headers).json

        state = call(one)["result"]["requestState"]
        [question] = wait_until(lambda: questions(two))
        again = call(two, requestState=state, inputResponses={})["result"]
        assert again["resultType"] == "input_required"
        answer(two, question)
        wait_until(lambda: api.requests)
        done = wait_until(
            lambda: (
                (told := call(two, requestState=again["requestState"], inputResponses={})["result"])
                and told["resultType"] != "input_required"
                and told
            ),
        )
        assert not done.get("isError")
        assert len(api.requests) == 1


def test_a_secret_set_on_one_gateway_is_used_by_the_other(tmp_path, database, api):
    keyed = (
        f'  keyed: {{url: "{api.url}", auth: {{type: bearer, token: "vault:door"}}, '
        "tools: {look: {request: {method: GET, path: /look}}}}"
    )
    with several(tmp_path, database, api, services=keyed) as gateways:
        one, two = gateways.start("one"), gateways.start("two")

        def sent(gateway):
            api.reset()
            gateway.call("look", wait=0)
            return [request["headers"].get("authorization") for request in api.requests]

        for value in ("first-secret-value", "second-secret-value"):
            one.admin.request("PUT", "/api/secrets/door", {"value": value})
            assert wait_until(lambda value=value: sent(two) == [f"Bearer {value}"])


def test_a_gateway_with_another_master_key_says_what_to_do(tmp_path, database, api):
    with several(tmp_path, database, api) as gateways:
        gateways.start("one")
        two = gateways.start("two", env={"AGENT_GATE_SECRET": "quite another passphrase"})
        assert "All gateways on one store need the same master key" in two.stderr
        assert "AGENT_GATE_SECRET" in two.stderr
        assert SECRET["AGENT_GATE_SECRET"] not in two.stderr


def test_a_second_gateway_of_one_id_does_not_start_and_names_the_first(pair, tmp_path):
    first = pair.one.announced["pid"]
    told = rf"Another gateway writes as 'one' .*\(pid {first} on .+, since 20.+Stop that one first"
    with (
        several(tmp_path, pair.database, pair.api) as others,
        pytest.raises(AssertionError, match=told),
    ):
        others.start("one")
    assert pair.one.call("read").status == 200


def test_the_gateways_are_listed_with_what_each_does(pair):
    for gateway, own in ((pair.one, "one"), (pair.two, "two")):
        listed = {one["id"]: one for one in gateway.admin.get("/api/gateways")}
        assert set(listed) == {"one", "two"}
        assert [one["id"] for one in listed.values() if one["this"]] == [own]
        assert all(one["state"] == "serving" and one["alive"] for one in listed.values())
        assert listed[own]["pid"] == gateway.announced["pid"]
        wait_until(lambda gateway=gateway: all(g["tools"] == 3 for g in gateway.admin.get("/api/gateways")))
        assert [g["holds"] for g in listed.values()].count(["channels"]) == 1


def test_a_question_is_told_once_by_a_channel_and_its_button_is_good_when_another_gateway_serves_it(
    tmp_path, database, api
):
    bot = BotApi()
    channel = (
        f"messenger: {{type: telegram, telegram: {{token: '{BOT_TOKEN}', chat_id: {CHAT}, allowed_users: [{ANN}], "
        f"base_url: '{bot.url}'}}}}"
    )
    try:
        with several(tmp_path, database, api, more=channel) as gateways:
            one, two = gateways.start("one"), gateways.start("two")
            call = two.call("write", {"n": 1}, wait=0).json["call"]
            message = bot.question()
            assert len(questions(one)) == 1
            gateways.stop("one")
            assert "Approved" in bot.press(message, "Once", ANN)
            told = two.request("GET", f"/api/calls/{call}?wait=20").json
            assert told["status"] == "executed"
            assert len(bot.messages) == 1
    finally:
        bot.stop()


def test_a_person_who_is_not_logged_in_is_not_by_another_gateway_either(pair):
    with pytest.raises(GatewayError, match="no agent named"):
        pair.two.admin.get("/api/agents/nobody-at-all")
    assert page(pair.two, "/api/status", Authorization=f"Bearer {TOKEN}")[0] == 401
