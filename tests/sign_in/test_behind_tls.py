"""A gateway whose address is HTTPS, as it is behind a proxy: what its browsers carry through a sign-in."""

import http.client

import pytest
from tests.gateway import running
from tests.sign_in.conftest import files
from tests.sign_in.small_client import SmallBrowser, SmallClient, begin, follow, say_yes
from tests.waiting import PATIENCE

ISSUER = "https://gate.example"


class ProxiedBrowser(SmallBrowser):
    """One that comes by the public address."""

    def __init__(self, gate):
        super().__init__(ISSUER)
        self._port = int(gate.url.rpartition(":")[2])
        self.set = []

    def connect(self, _host, _port):
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)

    def request(self, method, path, form=None, headers=None):
        reply = super().request(method, path, form, {"Host": "gate.example"} | (headers or {}))
        if "set-cookie" in reply.headers:
            self.set.append(reply.headers["set-cookie"])
        return reply


@pytest.fixture(scope="module")
def gate(tmp_path_factory, api):
    found = files(api)
    config = found["config.yaml"].replace("sign_in: true", f"sign_in: true, public_url: {ISSUER}")
    with running(tmp_path_factory.mktemp("tls"), found | {"config.yaml": config}, "--insecure") as gateway:
        yield gateway


@pytest.fixture
def client(gate):
    made = SmallClient(gate, issuer=ISSUER)
    assert made.register().status == 201
    return made


def test_a_browser_signs_in_with_a_cookie_that_only_this_host_gives(gate, client):
    browser, place = begin(client, ProxiedBrowser(gate))
    say_yes(gate, browser.get(place).number)
    assert client.redeem(follow(browser, place).answer()["code"]).status == 200
    for said in browser.set:
        assert said.startswith("__Host-")
        assert {"Path=/", "Secure", "HttpOnly", "SameSite=Lax"} <= set(said.split("; "))


def test_a_cookie_that_a_neighbour_of_the_host_set_begins_and_finishes_nothing(gate, client):
    """Whoever could choose a browser's cookie would finish what somebody else said yes to, or logged in for."""
    browser, place = begin(client, ProxiedBrowser(gate))
    known = browser.cookies["__Host-agent_gate_sign_in"]
    tossed = {"Cookie": f"agent_gate_sign_in={known}"}
    assert ProxiedBrowser(gate).request("GET", place, headers=tossed).status == 404
    victim = ProxiedBrowser(gate)
    shown = victim.request("GET", client.authorize_url().removeprefix(ISSUER), headers=tossed)
    assert victim.cookies["__Host-agent_gate_sign_in"] != known
    sent = victim.request("POST", "/authorize", shown.fields(), tossed)
    assert sent.status == 403
