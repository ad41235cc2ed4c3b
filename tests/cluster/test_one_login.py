"""A login that was begun on one gateway ends on another, and counts on both: links, sessions, and people of a provider."""

from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
from tests import postgres
from tests.cluster.several import several
from tests.gateway import OTHER_TOKEN, Api
from tests.oidc.provider_house import PersonAtProvider, ProviderProcess, oidc, said_on
from tests.surfaces.admin.admin_gate import Browser, link
from tests.waiting import wait_until

OUTSIDE = "http://127.0.0.1:9"
RULES = "rules: [{pattern: write, groups: [sre], action: allow}]"


class BrowserBehindProxy(Browser):
    """A browser that knows one address, behind which `gateway` answers at the moment."""

    def __init__(self, gateway, outside=OUTSIDE):
        super().__init__(outside)
        self.gateway = gateway

    def connection(self):
        return Browser(self.gateway.announced["admin"]).connection()

    def lets_in(self, gateway):
        self.gateway = gateway
        return self.send("GET", "/api/me").status == 200


@pytest.fixture(scope="module")
def provider():
    with ProviderProcess() as started:
        yield started


@pytest.fixture(scope="module")
def gates(provider, tmp_path_factory):
    """Two gateways with ports of their own, known to people and to the provider by one address."""
    client = provider.register(f"{OUTSIDE}/oidc/callback", base=OUTSIDE)
    more = oidc(provider.issuer, client)
    folder, admin = tmp_path_factory.mktemp("logins"), f', public_url: "{OUTSIDE}"'
    database = postgres.server().new_database()
    given = {"more": more, "rules": RULES, "person": "dora@example.test"}
    with Api() as api, several(folder, database, api, admin=admin, **given) as gateways:
        yield gateways.start("one"), gateways.start("two")


def test_a_link_of_one_gateway_opens_a_session_on_the_other_that_counts_on_both_until_it_is_left(gates):
    one, two = gates
    person = BrowserBehindProxy(two)
    assert person.follow(link(one)).status == 200
    assert person.lets_in(two)
    assert person.lets_in(one)
    assert person.send("DELETE", "/api/session").status == 200
    assert not person.lets_in(one)
    wait_until(lambda: not person.lets_in(two))


def test_a_link_that_is_followed_on_both_gateways_at_once_opens_one_session(gates):
    for _ in range(5):
        secret = link(gates[0])
        with ThreadPoolExecutor(2) as pool:
            tries = [pool.submit(BrowserBehindProxy(gate).follow, secret) for gate in gates]
        assert sorted(one.result().status for one in tries) == [200, 401]


class PersonBehindProxy(PersonAtProvider):
    """Somebody whose requests go to one gateway and the other in turn."""

    def __init__(self, gates, provider, name):
        super().__init__(gates[0], provider, name)
        self.gates, self.page = gates, BrowserBehindProxy(gates[0])

    def come_back(self, url):
        self.page.gateway = self.gates[1]
        try:
            return super().come_back(url)
        finally:
            self.page.gateway = self.gates[0]


def test_a_login_at_a_provider_goes_on_and_ends_on_either_gateway(gates, provider):
    one, two = gates
    provider.tell_of("carla", groups="staff")
    person = PersonBehindProxy(gates, provider, "carla")
    reply = person.log_in()
    assert reply.status == 303, said_on(reply)
    assert person.page.get("/api/me")["person"] == "carla@example.test"
    assert person.page.lets_in(two)
    # The other gateway never saw the tokens that this one was given, and logs the browser out at the provider.
    left = person.page.send("DELETE", "/api/session").json
    assert urlsplit(left["log_out_at"]).query
    assert "id_token_hint" in left["log_out_at"]
    wait_until(lambda: not person.page.lets_in(one))


def test_the_groups_of_a_login_count_for_the_persons_agents_on_the_other_gateway_too(gates, provider):
    one, _ = gates
    person = PersonBehindProxy(gates, provider, "dora")

    def in_groups(groups):
        provider.tell_of("dora", groups=groups)
        assert person.log_in().status == 303

    def may_write():
        return one.call("write", {"n": 1}, token=OTHER_TOKEN, wait=0).status == 200

    assert not may_write()
    in_groups("staff,sre")
    wait_until(may_write)
    in_groups("staff")
    wait_until(lambda: not may_write())
