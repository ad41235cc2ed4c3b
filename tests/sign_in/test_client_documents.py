"""Clients whose id is the address of a document, as connectors have: read under bounds, matched as they are written."""

import msgspec
import pytest
from tests.calls.small_calls import Clock

from agent_gate.access.sign_in.clients import SignInClients
from agent_gate.access.sign_in.documents import MOST_BYTES, MOST_KEPT, ClientDocuments
from agent_gate.access.sign_in.faults import SignInFault
from agent_gate.access.sign_in.request import Audience, read_request, redirect_of
from agent_gate.core.ports import SystemClock
from agent_gate.vault.oauth.reach import Web, WebAnswer

CODE = "https://claude.ai/oauth/claude-code-client-metadata"
WEB = "https://claude.ai/oauth/mcp-oauth-client-metadata"
ASKED = {
    "response_type": "code",
    "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    "code_challenge_method": "S256",
}


class OneDocument:
    """Stands where the network is."""

    def __init__(self, body, status=200, headers=()):
        self.body, self.status, self.headers, self.asked = body, status, headers, 0

    async def get(self, _url, _reach, _what):
        self.asked += 1
        body = self.body if isinstance(self.body, bytes) else msgspec.json.encode(self.body)
        return WebAnswer(self.status, tuple(self.headers), body)


def clients(web, clock=None):
    clock = clock or SystemClock()
    return SignInClients(None, clock, ClientDocuments(web, clock))


async def test_a_program_is_known_by_its_document_and_takes_any_port_of_its_computer():
    web = OneDocument(
        {
            "client_id": CODE,
            "client_name": "Claude Code",
            "redirect_uris": ["http://localhost/callback", "http://127.0.0.1/callback"],
            "token_endpoint_auth_method": "none",
        }
    )
    client = await clients(web).find(CODE)
    uri = redirect_of(client, {"redirect_uri": "http://localhost:54545/callback"})
    asked = read_request(client, uri, ASKED, Audience("https://gate.example"))
    assert (asked.client, asked.resource) == ("claude-code", "https://gate.example/mcp")
    for other in ("http://localhost:1/other", "http://[::1]:1/callback", "https://localhost:1/callback"):
        with pytest.raises(SignInFault):
            redirect_of(client, {"redirect_uri": other})


@pytest.mark.parametrize(
    ("client_id", "callback", "name"),
    [
        (WEB, "https://claude.ai/api/mcp/auth_callback", "claude"),
        (
            "https://chatgpt.com/oauth/client.json",
            "https://chatgpt.com/connector_platform_oauth_redirect",
            "chatgpt",
        ),
        ("https://vscode.dev/oauth/client-metadata.json", "https://vscode.dev/redirect", "vscode"),
    ],
)
async def test_the_connectors_of_vendors_are_named_by_where_their_answers_go(client_id, callback, name):
    web = OneDocument({"client_id": client_id, "client_name": "Anything", "redirect_uris": [callback]})
    client = await clients(web).find(client_id)
    asked = read_request(
        client, redirect_of(client, {"redirect_uri": callback}), ASKED, Audience("https://g.example")
    )
    assert asked.client == name


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        (
            {"client_id": "https://other.example/c", "redirect_uris": ["https://a.example/cb"]},
            200,
            "another client_id",
        ),
        (
            {"client_id": WEB, "redirect_uris": ["https://a.example/cb"], "client_secret": "x"},
            200,
            "shared secret",
        ),
        ({"client_id": WEB, "redirect_uris": []}, 200, "lists 1 to 20"),
        ({"client_id": WEB, "redirect_uris": ["http://a.example/cb"]}, 200, "plain HTTP"),
        (b"[]", 200, "no JSON object"),
        (b" " * (MOST_BYTES + 1), 200, "larger than 5 KiB"),
        (b"{}", 302, "answered with 302"),
    ],
    ids=["another", "secret", "nowhere", "plain", "list", "large", "redirect"],
)
async def test_a_document_that_does_not_hold_is_refused_and_not_remembered(body, status, why):
    web = OneDocument(body, status)
    found = clients(web)
    for _ in range(2):
        with pytest.raises(SignInFault, match=why):
            await found.find(WEB)
    if status != 200:
        assert web.asked == 2


@pytest.mark.parametrize(
    "client_id",
    [
        "https://127.0.0.1/client.json",
        "https://10.0.0.1/client.json",
        "https://[::1]/client.json",
        "https://localhost/client.json",
        "https://user@claude.ai/c",
        "https://claude.ai/a/../c",
        "https://claude.ai/c#x",
        "https://claude.ai",
    ],
)
async def test_no_document_is_read_inside_the_network_or_at_an_address_that_reads_two_ways(client_id):
    web = Web(SystemClock())
    try:
        with pytest.raises(SignInFault):
            await clients(web).find(client_id)
    finally:
        await web.aclose()


async def test_what_was_read_counts_for_as_long_as_its_headers_say_within_bounds():
    body = {"client_id": WEB, "redirect_uris": ["https://claude.ai/cb"]}
    web = OneDocument(body, headers=[(b"cache-control", b"max-age=99999999")])
    found = clients(web)
    assert await found.find(WEB) == await found.find(WEB)
    assert web.asked == 1


@pytest.mark.parametrize("status", [429, 503])
async def test_while_the_host_of_a_document_is_away_a_client_that_is_known_loses_nothing(status):
    """To a client `invalid_client` means: forget everything, and sign in anew."""
    clock, web = Clock(), OneDocument({"client_id": WEB, "redirect_uris": ["https://claude.ai/cb"]})
    found = clients(web, clock)
    before = await found.find(WEB)
    web.status = status
    clock.time += 3600
    assert (await found.find(WEB), web.asked) == (before, 2)
    clock.time += MOST_KEPT
    with pytest.raises(SignInFault) as later:
        await found.find(WEB)
    assert (later.value.error, later.value.answers) == ("temporarily_unavailable", 503)
    web.status = 404
    with pytest.raises(SignInFault) as gone:
        await found.find(WEB)
    assert (gone.value.error, gone.value.answers) == ("invalid_client", 401)


@pytest.mark.parametrize(
    ("callback", "name"),
    [
        ("https://203.0.113.7/cb", "203-0-113-7"),
        ("https://[2001:db8::7]/cb", "2001-db8-7"),
        ("https://claude.evil.example/cb", "evil"),
        ("https://evil.example:8443/cb", "evil"),
    ],
)
async def test_a_client_is_named_by_the_host_that_gets_its_answers_in_letters_and_digits(callback, name):
    web = OneDocument({"client_id": WEB, "redirect_uris": [callback]})
    assert (await clients(web).find(WEB)).slug(callback) == name
