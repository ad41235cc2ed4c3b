"""The page behind a real reverse proxy, set up with the words of the documentation."""

import http.client
import json
import re
import socket
import ssl
from pathlib import Path

import pytest
from tests.gateway import Api, in_front_of
from tests.processes import free_port
from tests.proxies.nginx import nginx
from tests.surfaces.admin.admin_gate import CONFIG, PERMISSIONS, TOOLS, Browser
from tests.waiting import PATIENCE

from agent_gate.net.tls.certificates import ensure_certificate

PAGE = Path(__file__).parents[2] / "docs" / "operator.md"
NAME = "gate.example.org"


def recipe(port, upstream, certificate):
    """The server block of the page with this test's ports and certificate in it."""
    block = re.search(r"```nginx\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]
    for old, new in {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        f"/etc/ssl/{NAME}.crt": str(certificate.cert),
        f"/etc/ssl/{NAME}.key": str(certificate.key),
        "http://127.0.0.1:3100": upstream,
    }.items():
        assert old in block
        block = block.replace(old, new)
    return block


class Phone(Browser):
    """A browser that finds the public name at the proxy and trusts its certificate."""

    def __init__(self, port, trust):
        super().__init__(f"http://{NAME}:{port}")
        self.origin, self.port, self.trust = f"https://{NAME}:{port}", port, trust

    def connection(self):
        line = http.client.HTTPSConnection(NAME, self.port, timeout=PATIENCE)
        raw = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        line.sock = self.trust.wrap_socket(raw, server_hostname=NAME)
        return line


@pytest.fixture(scope="module")
def proxied(tmp_path_factory):
    folder, port = tmp_path_factory.mktemp("proxied"), free_port()
    config = CONFIG.replace("admin: {{port: 0,", f"admin: {{{{port: 0, public_url: 'https://{NAME}:{port}',")
    certificate = ensure_certificate(folder / "tls", [NAME])
    trust = ssl.create_default_context(cafile=folder / "tls" / "ca.crt")
    (folder / "gate").mkdir()
    with Api() as api, in_front_of(api, folder / "gate", config, TOOLS, PERMISSIONS, more="") as gate:
        phone = Phone(port, trust)

        def answers():
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=1):
                    return True
            except OSError:
                return False

        with nginx(folder / "nginx", recipe(port, gate.announced["admin"], certificate), answers):
            yield gate, phone


def test_a_login_link_works_through_the_proxy_and_the_cookie_is_for_tls_only(proxied):
    gate, phone = proxied
    link = gate.admin.request("POST", "/api/logins", {})["url"]
    assert link.startswith(f"https://{NAME}:")
    opened = phone.follow(link)
    assert opened.status == 200, opened.body
    assert "; Secure" in opened.headers["set-cookie"]
    assert phone.get("/api/status")["tools"] == 3


def test_a_question_is_seen_as_it_comes_and_answered_through_the_proxy(proxied):
    gate, phone = proxied
    phone.follow(gate.admin.request("POST", "/api/logins", {})["url"])
    line = phone.connection()
    line.request(
        "GET",
        "/api/events",
        headers={"Host": phone.host, "Cookie": phone.cookie, "Agent-Gate-Key": phone.key},
    )
    events = line.getresponse()
    assert events.readline() == b": connected\n"
    call = gate.call("light_set", {"room": "attic"}, wait=0).json["call"]
    while (said := events.readline()) != b"event: approval\n":
        assert said
    asked = json.loads(events.readline().removeprefix(b"data: "))
    phone.post(f"/api/approvals/{asked['id']}", {"verdict": "deny"})
    line.close()
    assert "denied" in gate.story(call)


def test_a_foreign_page_gets_nothing_through_the_proxy(proxied):
    gate, phone = proxied
    phone.follow(gate.admin.request("POST", "/api/logins", {})["url"])
    refused = phone.send("POST", "/api/agents", {"name": "x"}, Origin="https://evil.example")
    assert refused.status == 403
    assert phone.send("GET", "/api/status", Host="evil.example").status == 403
