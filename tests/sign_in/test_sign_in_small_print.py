"""What a sign-in promises beside letting in: how long a code counts, what is kept of secrets, what looking changes."""

import asyncio
import sqlite3
from contextlib import closing

import pytest
from tests.calls.small_calls import Clock, opened
from tests.gateway import running
from tests.sign_in.conftest import files
from tests.sign_in.small_client import (
    CALLBACK,
    SmallBrowser,
    SmallClient,
    begin,
    challenge_of,
    follow,
    question,
    say_yes,
    sign_in,
)
from tests.sign_in.test_sign_in_flow import open_stream
from tests.sign_in.test_token_families import TERMS, SmallFamilies

from agent_gate.access.sign_in.clients import SignInClients
from agent_gate.access.sign_in.consents import (
    CODE_SECONDS,
    ENOUGH_SECONDS,
    OPEN_SECONDS,
    BegunSignIn,
    SignInsBegun,
)
from agent_gate.access.sign_in.desk import SignInDesk
from agent_gate.access.sign_in.faults import SignInFault
from agent_gate.access.sign_in.request import AskedFor

VERIFIER = "v" * 43


class SmallDesk:
    """One sign-in up to its yes, over a real store."""

    def __init__(self, store, catch_up=None):
        self.families = SmallFamilies(store, Clock())
        self.clock = self.families.clock
        clients, begun = SignInClients(store, self.clock, None), SignInsBegun(store, self.clock, b"k")
        self.desk = SignInDesk(
            clients, begun, self.families.signed_in, self.clock, lambda _name: False, catch_up=catch_up
        )

    async def agreed(self):
        client = await self.desk.clients.register({"redirect_uris": [CALLBACK]}, "192.0.2.1")
        asked = AskedFor(
            client_id=client.id,
            client_name="",
            client="claude",
            redirect_uri=CALLBACK,
            state=None,
            challenge=challenge_of(VERIFIER),
            resource="https://gate.example/mcp",
            namespaces=None,
        )
        ends = self.clock.now() + OPEN_SECONDS
        self.sign_in = BegunSignIn(id="call-1", state="asked", asked=asked, number="47", expires_at=ends)
        await self.desk.begun.begin(self.sign_in, "browser", "192.0.2.1", None)
        assert await self.desk.begun.grant("call-1", TERMS)
        return self

    async def come_back(self):
        """What the browser gets that comes back now."""
        return await self.desk.begun.make_code(await self.desk.begun.get("call-1"))

    async def redeem(self, code):
        return await self.desk.redeem(code, self.sign_in.asked.client_id, CALLBACK, VERIFIER)


async def test_a_code_counts_for_sixty_seconds(tmp_path):
    async with opened(tmp_path) as store:
        small = await SmallDesk(store).agreed()
        late = await small.come_back()
        small.clock.time += CODE_SECONDS
        with pytest.raises(SignInFault):
            await small.redeem(late)
        code = await small.come_back()
        small.clock.time += CODE_SECONDS - 1
        assert (await small.redeem(code)).access


async def test_what_other_gateways_did_is_heard_before_a_code_becomes_a_token(tmp_path):
    """The person may have logged in there, whose groups the agent has."""
    heard = []

    async def catch_up():
        heard.append(len(small.families.signed_in.credentials()))

    async with opened(tmp_path) as store:
        small = await SmallDesk(store, catch_up).agreed()
        with pytest.raises(SignInFault):
            await small.redeem("no code at all")
        assert heard == []
        assert (await small.redeem(await small.come_back())).access
        assert heard == [0]
        assert small.families.signed_in.credentials()


async def test_a_browser_that_comes_twice_gets_its_code_again_and_it_counts_once(tmp_path):
    """A browser reloads by itself, and people do; the client may be using the first code by then."""
    async with opened(tmp_path) as store:
        small = await SmallDesk(store).agreed()
        first = await small.come_back()
        assert await small.come_back() == first
        assert (await small.redeem(first)).access
        assert await small.come_back() is None
        with pytest.raises(SignInFault):
            await small.redeem(first)


async def test_two_gateways_that_are_asked_at_once_hand_out_one_code(tmp_path):
    async with opened(tmp_path) as store:
        small = await SmallDesk(store).agreed()
        codes = await asyncio.gather(*(small.desk.begun.make_code(small.sign_in) for _ in range(5)))
        assert len(set(codes)) == 1
        assert (await small.redeem(codes[0])).access


async def test_of_two_that_bring_one_code_at_once_one_is_let_in(tmp_path):
    async with opened(tmp_path) as store:
        small = await SmallDesk(store).agreed()
        code = await small.come_back()
        came = await asyncio.gather(*(small.redeem(code) for _ in range(5)), return_exceptions=True)
        assert sorted(isinstance(one, SignInFault) for one in came) == [False, True, True, True, True]
        [[families]] = await store.read("SELECT COUNT(*) FROM token_families")
        assert families == 1


async def test_a_code_that_will_not_count_for_long_is_replaced_by_another(tmp_path):
    async with opened(tmp_path) as store:
        small = await SmallDesk(store).agreed()
        first = await small.come_back()
        small.clock.time += CODE_SECONDS - ENOUGH_SECONDS + 1
        second = await small.come_back()
        with pytest.raises(SignInFault):
            await small.redeem(first)
        assert (await small.redeem(second)).access


def test_nothing_that_lets_anybody_in_is_in_the_store_as_it_is(gate):
    client = SmallClient(gate)
    client.register()
    browser = SmallBrowser(gate.url)
    invite = gate.admin.request("POST", "/api/invites", {})["url"]
    browser.get(invite)
    browser, place = begin(client, browser)
    say_yes(gate, browser.get(place).number)
    code = follow(browser, place).answer()["code"]
    assert client.redeem(code).status == 200
    secrets = [code, client.verifier, client.tokens["access_token"], client.tokens["refresh_token"]]
    secrets += [invite.rpartition("/")[2], *browser.cookies.values()]
    assert all(len(secret) >= 40 for secret in secrets)
    for file in (gate.folder / "data").glob("gate.db*"):
        kept = file.read_bytes()
        assert not [secret for secret in secrets if secret.encode() in kept]
    assert not [secret for secret in secrets if secret in gate.stderr]


def test_the_paths_that_are_open_to_every_page_take_and_give_no_cookies(gate):
    client = SmallClient(gate)
    client.register()
    browser, place = begin(client)
    told = {"Cookie": "; ".join(f"{name}={value}" for name, value in browser.cookies.items())}
    told |= {"Origin": "https://evil.example"}
    for method, path in (
        ("POST", "/token"),
        ("POST", "/register"),
        ("POST", "/revoke"),
        ("GET", "/.well-known/oauth-authorization-server"),
        ("GET", "/.well-known/oauth-protected-resource/mcp"),
    ):
        bare = gate.request(method, path, token=None, headers={"Origin": "https://evil.example"})
        with_cookie = gate.request(method, path, token=None, headers=told)
        assert (with_cookie.status, with_cookie.body) == (bare.status, bare.body)
        assert "set-cookie" not in with_cookie.headers
        assert "access-control-allow-credentials" not in with_cookie.headers
    assert browser.get(place).number


def rows(gate):
    with closing(sqlite3.connect(gate.folder / "data" / "gate.db")) as store:
        tables = ("sign_ins", "sign_in_invites", "sign_in_clients", "token_families", "approvals")
        return [store.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in tables]


def test_a_preview_of_a_link_changes_nothing_whatever_link_it_is(gate):
    client = SmallClient(gate)
    client.register()
    invite = gate.admin.request("POST", "/api/invites", {})["url"]
    browser, place = begin(client)
    before = rows(gate)
    for method in ("GET", "HEAD"):
        for link in (client.authorize_url(state="other"), invite, f"{gate.url}{place}"):
            SmallBrowser(gate.url).request(method, link.removeprefix(gate.url))
    assert rows(gate) == before
    assert browser.get(place).number


def test_the_browser_that_waits_is_told_where_the_question_can_be_answered(gate):
    client = SmallClient(gate)
    client.register()
    browser, place = begin(client)
    assert f'href="{gate.announced["admin"]}/#/approvals/{question(gate)["id"]}"' in browser.get(place).text


def test_the_question_says_where_the_answer_goes_what_is_claimed_and_what_for(gate):
    client = SmallClient(gate, name="Helper", callback="https://claude.ai/api/mcp/auth_callback")
    client.register()
    begin(client, scope="mcp:notes")
    asked = question(gate)
    said = asked["sentence"]
    assert said.index("claude.ai wants to come in as agent claude/") < said.index("Helper")
    terms = {name: asked["arguments"][name] for name in ("namespaces", "mode", "days")}
    assert terms == {"namespaces": ["notes"], "mode": "full", "days": 90}


def test_a_token_that_is_given_back_ends_the_stream_that_was_opened_with_it(gate):
    client = sign_in(gate)
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    started = client.mcp({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    with open_stream(gate, client, started.headers["mcp-session-id"]) as stream:
        assert client.post_form("/revoke", {"token": client.tokens["refresh_token"]}).status == 200
        stream.read()  # to its end, which comes at once
        assert stream.isclosed()
    assert client.list_tools().status == 401


def test_an_agent_that_signed_in_has_neither_a_configured_agents_name_nor_more_calls_than_any(tmp_path, api):
    found = files(api, more="rate_limit: {max_requests_per_minute: 2}")
    config = found["config.yaml"].replace(
        "agents:\n", "agents:\n  desk/ada: {token: token-of-the-desk-in-tests-0}\n"
    )
    with running(tmp_path, found | {"config.yaml": config}, "--insecure") as gate:
        client = SmallClient(gate, name="Desk")
        client.register()
        browser, place = begin(client)
        number = browser.get(place).number
        with pytest.raises(Exception, match="another agent named desk/ada"):
            say_yes(gate, number, terms={"agent": "desk/ada"})
        say_yes(gate, number)
        assert client.redeem(follow(browser, place).answer()["code"]).status == 200
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "home_act"}}
        answers = [client.mcp(call).json["result"] for _ in range(3)]
        assert [answer.get("isError", False) for answer in answers] == [False, False, True]
        assert "calls per minute" in str(answers[2]).lower() or "RATE" in str(answers[2])
