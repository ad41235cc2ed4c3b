"""Agents come in with tokens of another issuer, through a running gateway: no token is stored, none outlives its entry."""

import asyncio
import json
import time

import pytest
from tests.issuer import AUDIENCE, EC, RSA, TokenIssuer
from tests.ui.ui_house import house
from tests.waiting import PATIENCE, wait_until
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

JWT = """\
auth:
  jwt:
    - {{issuer: "{issuer}", audience: "{audience}", jwks_url: "{jwks}", name: ci, groups: groups, namespaces: [house]}}
"""


@pytest.fixture(scope="module")
def issuer():
    with TokenIssuer() as started:
        yield started


@pytest.fixture(scope="module")
def started(issuer, tmp_path_factory):
    more = JWT.format(issuer=issuer.url, audience=AUDIENCE, jwks=issuer.jwks_url)
    with house(tmp_path_factory.mktemp("jwt"), more) as (gateway, _api):
        yield gateway


def read(gateway, token):
    return gateway.call("light_get", {"room": "kitchen"}, token=token)


def test_a_call_with_a_token_of_another_issuer_is_on_record_under_its_own_name(started, issuer):
    assert read(started, issuer.token(sub="build-7")).status == 200
    assert started.admin.get("/api/calls?limit=1")["rows"][0]["caller"] == "ci/build-7"
    assert "ci/build-7" in {agent["name"] for agent in started.admin.get("/api/agents")}


def test_while_the_issuer_is_away_nobody_comes_in_and_the_answer_says_why(tmp_path, issuer):
    issuer.publish(first=EC)
    more = JWT.format(issuer=issuer.url, audience=AUDIENCE, jwks=issuer.jwks_url)
    issuer.publish_as_it_is({}, status=500)
    with house(tmp_path, more) as (gateway, _api):
        wait_until(lambda: "keys of an issuer were not fetched" in gateway.stderr)
        refused = read(gateway, issuer.token())
        assert refused.status == 503
        assert "could not be fetched" in refused.json["error"]["message"]
    issuer.publish(first=EC)


@pytest.mark.parametrize("claims", [{"aud": "other"}, {"exp": 1}], ids=["audience", "expired"])
def test_a_token_that_does_not_count_is_answered_401_with_the_reason(started, issuer, claims):
    refused = read(started, issuer.token(**claims))
    assert refused.status == 401
    assert refused.json["error"]["message"].startswith("The token ")


def test_such_an_agent_sees_no_more_than_its_entry_says(started, issuer):
    assert {
        tool["name"] for tool in started.request("GET", "/api/tools", token=issuer.token()).json["tools"]
    } == {
        "light_get",
        "light_set",
    }


def test_what_a_person_approves_runs_also_when_the_token_has_ended_meanwhile(started, issuer):
    token = issuer.token(sub="short", exp=int(time.time()) + 4 - 60)
    asked = started.call("light_set", {"room": "hall"}, token=token, wait=0)
    assert asked.status == 202
    call = asked.json["call"]
    wait_until(lambda: read(started, token).status == 401)
    assert started.answer()["state"] == "approved"
    wait_until(lambda: started.story(call)[-1] == "completed")


def test_nothing_of_a_token_is_stored_or_logged(started, issuer):
    token = issuer.token(sub="secretive")
    assert read(started, token).status == 200
    signature = token.rpartition(".")[2].encode()
    files = [path for path in started.folder.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if signature in path.read_bytes()] == []


async def test_a_connection_ends_when_its_token_ends_or_its_entry_goes(tmp_path, issuer):
    issuer.publish(first=EC, second=RSA)
    more = JWT.format(issuer=issuer.url, audience=AUDIENCE, jwks=issuer.jwks_url)
    with house(tmp_path, more) as (gateway, _api):
        wait_until(lambda: read(gateway, issuer.token()).status == 200)
        await until_both_ended(gateway, issuer)
        assert read(gateway, issuer.token()).status == 401


async def until_both_ended(gateway, issuer):
    address = gateway.url.replace("http", "ws") + "/ws"

    async def opened(token):
        ws = await connect(address)
        await ws.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "auth", "params": {"token": token}}))
        assert "authenticated" in await ws.recv()
        return ws

    ending = await opened(issuer.token(sub="ending", exp=int(time.time()) + 4 - 60))
    lasting = await opened(issuer.token(sub="lasting"))
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(ConnectionClosed):
            await ending.recv()
        await lasting.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "list_tools", "params": {}}))
        assert "light_get" in await lasting.recv()
        config = gateway.folder / "config.yaml"
        config.write_text(config.read_text().partition("auth:")[0])
        await asyncio.to_thread(gateway.admin.request, "POST", "/api/reload", {})
        with pytest.raises(ConnectionClosed):
            await lasting.recv()
