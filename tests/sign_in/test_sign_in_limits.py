"""Floods: of clients that register and of browsers that ask. Each is held to a few, and honest people still come in."""

import asyncio
import http.client
import json

import pytest
from tests.calls.small_calls import Clock, opened
from tests.gateway import TOKEN
from tests.sign_in.small_client import SmallBrowser, SmallClient, begin, follow, sign_in
from tests.waiting import PATIENCE, wait_until

from agent_gate.access.sign_in import clients, consents
from agent_gate.access.sign_in.clients import SignInClients
from agent_gate.access.sign_in.desk import SignInDesk
from agent_gate.access.sign_in.faults import SignInFault
from agent_gate.access.sign_in.request import AskedFor
from agent_gate.net.addresses import network_of
from agent_gate.net.http import Request
from agent_gate.surfaces.oauth.endpoints import OAuthEndpoints

JSON = {b"content-type": b"application/json"}


class Registry:
    """The endpoint with a real store behind it, and a clock that a test moves."""

    def __init__(self, store):
        self.store, self.clock = store, Clock()
        self.clients = SignInClients(store, self.clock, None)
        desk = SignInDesk(self.clients, None, None, self.clock, lambda _name: False)
        self._endpoints = OAuthEndpoints(desk, None, None)

    async def register(self, name, peer):
        asked = {"client_name": name, "redirect_uris": ["http://localhost/callback"]}
        request = Request("POST", b"/register", JSON, json.dumps(asked).encode(), peer=peer)
        return await self._endpoints.handle("https://gate.example", request)

    async def ident(self, name, peer="198.51.100.1"):
        reply = await self.register(name, peer)
        assert reply.status == 201
        return json.loads(reply.body)["client_id"]

    async def kept(self):
        [[count]] = await self.store.read("SELECT COUNT(*) FROM sign_in_clients")
        return count

    async def flood(self, minutes):
        """As many new clients as get in, for so long."""
        for _ in range(minutes):
            made = await asyncio.gather(
                *(
                    self.register(f"Flood {self.clock.time} {number}", f"203.0.113.{number % 6}")
                    for number in range(clients.IN_ALL)
                )
            )
            assert {reply.status for reply in made} == {201}
            self.clock.time += clients.WINDOW


async def test_of_ten_thousand_registrations_at_once_a_few_are_kept_and_a_known_client_still_registers(
    tmp_path,
):
    async with opened(tmp_path) as store:
        registry = Registry(store)
        known = await registry.ident("Known")
        replies = await asyncio.gather(
            *(
                registry.register(f"Flood {number}", f"10.{number % 250}.{number // 250}.1")
                for number in range(10_000)
            )
        )
        statuses = [reply.status for reply in replies]
        assert statuses.count(201) == clients.IN_ALL - 1
        assert statuses.count(429) == 10_000 - statuses.count(201)
        refused = next(reply for reply in replies if reply.status == 429)
        assert int(dict(refused.headers)[b"retry-after"]) > 0
        assert await registry.kept() == clients.IN_ALL
        assert await registry.ident("Known") == known
        registry.clock.time += clients.WINDOW
        assert (await registry.register("Late", "198.51.100.2")).status == 201


async def test_who_is_invited_registers_through_a_flood_of_others(tmp_path):
    async with opened(tmp_path) as store:
        registry = Registry(store)
        await registry.flood(minutes=1)
        registry.clock.time -= 1
        assert (await registry.register("Invited", "198.51.100.1")).status == 429
        registry.clients.welcome("198.51.100.1", consents.INVITE_SECONDS)
        assert (await registry.register("Invited", "198.51.100.1")).status == 201
        assert (await registry.register("Stranger", "198.51.100.2")).status == 429
        own = [(await registry.register(f"Own {number}", "198.51.100.1")).status for number in range(20)]
        assert own == [201] * (clients.PER_ADDRESS - 1) + [429]


async def test_one_address_cannot_keep_others_from_registering(tmp_path):
    async with opened(tmp_path) as store:
        registry = Registry(store)
        own = [
            (await registry.register(f"One {number}", f"2001:db8::{number:x}")).status for number in range(40)
        ]
        assert own == [201] * clients.PER_ADDRESS + [429] * (40 - clients.PER_ADDRESS)
        assert (await registry.register("Other", "2001:db8:0:1::1")).status == 201


async def test_unused_clients_are_capped_and_one_that_is_used_or_waits_for_a_yes_outlasts_a_flood(tmp_path):
    async with opened(tmp_path) as store:
        registry = Registry(store)
        used, waiting, idle = [await registry.ident(name) for name in ("Used", "Waiting", "Idle")]
        registry.clock.time += clients.SPARED_SECONDS
        await store.write(*registry.clients.using(used), registry.clients.beginning(waiting))
        await registry.flood(minutes=10)
        assert await registry.clients.find(used)
        assert await registry.clients.find(waiting)
        with pytest.raises(SignInFault):
            await registry.clients.find(idle)
        registry.clock.time += clients.SPARED_SECONDS
        await registry.ident("Next")
        assert await registry.kept() == clients.MOST_UNUSED + 1


async def test_a_client_that_nobody_used_for_a_day_is_forgotten_and_one_that_was_used_is_not(tmp_path):
    async with opened(tmp_path) as store:
        registry = Registry(store)
        used, unused = await registry.ident("Used"), await registry.ident("Unused")
        await store.write(*registry.clients.using(used))
        registry.clock.time += clients.UNUSED_SECONDS + 1
        await registry.clients.forget_unused()
        assert await registry.clients.find(used)
        with pytest.raises(SignInFault):
            await registry.clients.find(unused)
        registry.clock.time += clients.KEPT_SECONDS
        await registry.clients.forget_unused()
        assert await registry.kept() == 0


async def test_logins_under_way_are_held_to_some_for_each_address_and_in_all_until_their_time_is_over(
    tmp_path,
):
    async with opened(tmp_path) as store:
        clock = Clock()
        begun = consents.SignInsBegun(store, clock, b"k")
        words = dict.fromkeys(
            ("client_id", "client_name", "client", "redirect_uri", "challenge", "resource"), "x"
        )
        asked = AskedFor(**words, state=None, namespaces=None)

        async def begin_one(number, peer):
            sign_in = consents.BegunSignIn(
                id=f"s{number}", state="proving", asked=asked, number="12", expires_at=clock.now() + 600
            )
            await begun.begin_login(sign_in, f"browser {number}", peer, f"state {number}")

        for number in range(consents.LOGINS_PER_ADDRESS):
            await begin_one(number, "198.51.100.1")
        with pytest.raises(SignInFault, match="Too many logins"):
            await begin_one("one more", "198.51.100.1")
        for number in range(consents.LOGINS_PER_ADDRESS, consents.LOGINS_IN_ALL):
            await begin_one(number, f"203.0.113.{number % 200}")
        with pytest.raises(SignInFault, match="Too many logins"):
            await begin_one("one more", "198.51.100.2")
        clock.time += 601
        await begin_one("later", "198.51.100.1")


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("@", "@"),
    ],
)
def test_one_who_has_many_addresses_has_one_network(address, network):
    assert network_of(address) == network


class FarBrowser(SmallBrowser):
    """A browser at another address of this machine."""

    def __init__(self, issuer, peer):
        super().__init__(issuer)
        self.peer = peer

    def connect(self, host, port):
        return http.client.HTTPConnection(host, port, timeout=PATIENCE, source_address=(self.peer, 0))


def ask(client, peer, number):
    browser = FarBrowser(client.issuer, peer)
    return browser, browser.press_continue(browser.get(client.authorize_url(state=f"{peer}-{number}")))


def test_a_flood_of_consents_is_held_to_fifty_and_stops_neither_agents_nor_who_is_invited(gate):
    client = SmallClient(gate)
    client.register()
    shown = set()
    for host in range(consents.IN_ALL // consents.PER_ADDRESS):
        for number in range(consents.PER_ADDRESS):
            waiting, sent = ask(client, f"127.0.1.{host + 1}", number)
            assert sent.status == 303
            shown.add(waiting.get(sent.location).number)
        assert ask(client, f"127.0.1.{host + 1}", "more")[1].status == 429
    questions = gate.admin.get("/api/approvals")
    assert len(questions) == consents.IN_ALL
    assert len(shown) == consents.IN_ALL, "no number fits two browsers that wait"
    browser, refused = ask(client, "127.0.2.1", 0)
    assert refused.status == 429
    assert "agent-gate agents invite" in refused.text
    assert gate.call("notes_write", {"thing": "x"}, wait=0, token=TOKEN).status == 202
    browser.get(gate.admin.request("POST", "/api/invites", {})["url"])
    shown = browser.get(client.authorize_url())
    place = browser.press_continue(shown).location
    mine = next(one for one in gate.admin.get("/api/approvals") if one["call"] in place)
    number = browser.get(place).number
    gate.admin.request("POST", f"/api/approvals/{mine['id']}", {"verdict": "approve", "number": number})
    assert client.redeem(follow(browser, place).answer()["code"]).status == 200
    gate.admin.request("POST", f"/api/approvals/{questions[0]['id']}", {"verdict": "deny"})
    assert wait_until(lambda: ask(client, "127.0.2.2", 0)[1].status == 303, "a free place")


def test_whoever_looks_and_goes_takes_nobodys_place(gate):
    client = SmallClient(gate)
    client.register()
    for number in range(100):
        assert SmallBrowser(gate.url).get(client.authorize_url(state=str(number))).status == 200
    assert gate.admin.get("/api/approvals") == []
    browser, place = begin(client)
    assert browser.get(place).number
    gate.answer("deny")
    assert sign_in(gate).list_tools().status == 200


def test_opening_an_invitation_lets_the_client_there_register(gate):
    """All registrations of this minute are used up, from other addresses of this machine: the last test here."""
    link = gate.admin.request("POST", "/api/invites", {})["url"]
    flood = [
        register_from(gate, f"127.0.3.{number // 20}", f"Flood {number}") for number in range(clients.IN_ALL)
    ]
    assert 201 in flood
    assert register_from(gate, "127.0.4.1", "Invited") == 429
    browser = FarBrowser(gate.url, "127.0.4.1")
    browser.get(f"{gate.url}/invite/{'x' * 43}")
    assert register_from(gate, "127.0.4.1", "Invited") == 429
    browser.get(link)
    assert register_from(gate, "127.0.4.1", "Invited") == 201


def register_from(gate, peer, name):
    connection = FarBrowser(gate.url, peer).connect("127.0.0.1", int(gate.url.rpartition(":")[2]))
    asked = {"client_name": name, "redirect_uris": ["http://localhost/callback"]}
    try:
        connection.request("POST", "/register", json.dumps(asked), {"Content-Type": "application/json"})
        return connection.getresponse().status
    finally:
        connection.close()
