"""The address to which browsers come back: its host is answered there alone, and servers read there who we are."""

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from ruamel.yaml import YAML
from tests.gateway import TOKEN, Gateway, running
from tests.oauth.authority import answer_in, authorization_server
from tests.oauth.protected import protected_server
from tests.oauth.test_signing_in import ALLOW, needs_auth, start
from tests.waiting import PATIENCE, wait_until

CALLBACK = "https://gate.example/auth/callback"
CONFIG = """
gateway: {{port: 0}}
admin: {{port: 0}}
agents: {{tester: {{token: {token}}}}}
servers:
  notes: {{url: "{url}"}}
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory) -> Iterator[Gateway]:
    with authorization_server() as authority, protected_server(authority.issuer) as server:
        files = {"config.yaml": CONFIG.format(token=TOKEN, url=server.url), "permissions.yaml": ALLOW}
        env = {"TOOL_GATEWAY_CALLBACK_URL": CALLBACK}
        with running(tmp_path_factory.mktemp("host"), files, "--insecure", env=env) as made:
            wait_until(lambda: needs_auth(made))
            yield made


def asked(gateway: Gateway, path: str, host: str) -> tuple[int, bytes]:
    parts = urlsplit(gateway.announced["admin"])
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)
    connection.request("GET", path, headers={"Host": host})
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    return reply.status, body


def test_the_host_of_the_callback_is_answered_there_and_nowhere_else(gateway):
    assert answer_in(start(gateway))["redirect_uri"] == CALLBACK
    status, page = asked(gateway, "/auth/callback", "gate.example")
    assert (status, b"end of a sign-in" in page) == (400, True)
    for path in ("/", "/api/sources", "/servers", "/login", "/auth/other"):
        assert asked(gateway, path, "gate.example")[0] in (403, 421), path
    assert asked(gateway, "/auth/callback", "other.example")[0] in (403, 421)


def test_authorization_servers_read_at_a_public_address_who_the_gateway_is(gateway):
    status, body = asked(gateway, "/auth/client.json", "gate.example")
    found = json.loads(body)
    assert (status, found["client_id"]) == (200, "https://gate.example/auth/client.json")
    assert (found["redirect_uris"], found["token_endpoint_auth_method"]) == ([CALLBACK], "none")


@pytest.mark.parametrize("name", ["compose.yaml", "examples/cagent/compose.yaml"])
def test_a_container_answers_the_callback_in_the_browser_of_its_host(name):
    services = YAML(typ="safe").load(Path(__file__).parents[2].joinpath(name).read_text())["services"]
    [one] = [one for one in services.values() if "127.0.0.1:3100:3100" in one.get("ports", ())]
    words = one["command"]
    assert words[words.index("--admin-tls") + 1] == "off"
    assert words[words.index("--admin-host") + 1] == "0.0.0.0"
    assert all(port.startswith("127.0.0.1:") for port in one["ports"])


def test_a_page_that_listens_everywhere_without_tls_is_come_back_to_by_plain_http(tmp_path):
    config = "gateway: {port: 0}\nadmin: {port: 0}\nagents: {a: {token: " + TOKEN + "}}\n"
    options = ("--insecure", "--admin-host", "0.0.0.0", "--admin-tls", "off")
    with running(tmp_path, {"config.yaml": config}, *options) as gateway:
        port = urlsplit(gateway.announced["admin"]).port
        assert gateway.announced["admin"].startswith("http://")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        connection.request("GET", "/auth/callback", headers={"Host": f"localhost:{port}"})
        assert connection.getresponse().status == 400
        connection.close()
