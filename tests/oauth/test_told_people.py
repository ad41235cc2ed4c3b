"""People hear of accounts where they answer agents: codes and links come to them, and one notice of a lost sign-in."""

import http.client
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from tests.approval.bot_api import CHAT, BotApi
from tests.approval.bot_api import TOKEN as BOT_TOKEN
from tests.gateway import TOKEN, Api, Gateway, running
from tests.oauth.authority import AuthorizationProcess, Person, authorization_server
from tests.oauth.protected import ProtectedServer, protected_server
from tests.oauth.test_signing_in import came_back, fetched, state, traces
from tests.waiting import PATIENCE, wait_until

ANN = 11
CONFIG = """
gateway: {{port: 0}}
admin: {{port: 0}}
agents: {{tester: {{token: {token}}}}}
servers:
  notes: {{url: "{url}", auth: {{type: oauth2-pkce}}}}
  television: {{url: "{url}", auth: {{type: device-code, client_id: device}}}}
services:
  shelf:
    url: "{shelf}"
    auth:
      type: device-code
      client_id: device
      scopes: [openid]
      token_url: "{issuer}/token"
      device_url: "{issuer}/device/auth"
    tools: shelf.yaml
people: {{ann: {{telegram: 11}}}}
channels: [{{type: telegram, token: "{bot}", chat_id: {chat}, allowed_users: [11], base_url: "{telegram}"}}]
"""
RULES = "rules: [{pattern: 'notes__*', action: allow}, {pattern: list_books, action: allow}]"
BOOKS = "tools: {list_books: {request: {method: GET, path: /books}}}"


@pytest.fixture(scope="module")
def authority() -> Iterator[AuthorizationProcess]:
    with authorization_server(seconds=1) as made:
        yield made


@pytest.fixture(scope="module")
def server(authority: AuthorizationProcess) -> Iterator[ProtectedServer]:
    with protected_server(authority.issuer) as made:
        yield made


@pytest.fixture(scope="module")
def bot() -> Iterator[BotApi]:
    made = BotApi()
    yield made
    made.stop()
    assert made.faults == []


@pytest.fixture(scope="module")
def shelf() -> Iterator[Api]:
    """An HTTP API that says nothing about who gives accounts of it."""
    with Api() as made:
        yield made


@pytest.fixture(scope="module")
def gateway(
    tmp_path_factory, authority: AuthorizationProcess, server: ProtectedServer, bot: BotApi, shelf: Api
) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("told")
    config = CONFIG.format(
        token=TOKEN,
        url=server.url,
        bot=BOT_TOKEN,
        chat=CHAT,
        telegram=bot.url,
        shelf=shelf.url,
        issuer=authority.issuer,
    )
    files = {"config.yaml": config, "permissions.yaml": RULES, "shelf.yaml": BOOKS}
    with running(folder, files, "--insecure") as made:
        wait_until(lambda: state(made)["status"] == "needs_auth")
        yield made
    assert traces(folder, *server.tokens) == []


def link_in(bot: BotApi, number: int, issuer: str) -> str:
    return next(word for word in bot.messages[number]["text"].split() if word.startswith(issuer))


def test_a_lost_sign_in_is_told_once_and_a_press_brings_a_new_link(gateway, authority, server, bot):
    link = gateway.admin.request("POST", "/servers/notes/auth/start")["auth_url"]
    came_back(gateway, Person(authority.issuer).consent(link))
    wait_until(lambda: state(gateway)["status"] == "ready")
    forget_grants(authority)
    wait_until(lambda: not server.is_good(server.tokens[-1]))
    before = authority.count("/token")
    for _ in range(5):
        assert gateway.call("notes__read_note").json["error"]["code"] == "DEPENDENCY_UNAVAILABLE"
    wait_until(lambda: state(gateway)["status"] == "needs_auth")
    number = bot.question("The sign-in of notes has ended")
    authority.has_served("/token", before + 1)
    assert sum("has ended" in one["text"] for one in bot.messages.values()) == 1
    bot.press(number, "Once", ANN)
    invited = bot.question("ann wants you to sign in to notes")
    came_back(gateway, Person(authority.issuer).consent(link_in(bot, invited, authority.issuer)))
    bot.press(bot.question("Somebody signed in to notes"), "Once", ANN)
    wait_until(lambda: state(gateway)["status"] == "ready")
    assert gateway.call("notes__read_note").status == 200


def forget_grants(authority: AuthorizationProcess) -> None:
    """The person took the gateway's rights back at the other side."""
    parts = urlsplit(authority.issuer)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)
    connection.request("GET", "/test/forget")
    assert connection.getresponse().status == 200
    connection.close()


def test_t45_a_device_code_that_an_agent_asked_for_comes_to_the_person_who_let_it(gateway, authority, bot):
    asked = gateway.call("connections_start", {"source": "television"}, wait=0)
    bot.press(bot.question("Begin a sign-in for television"), "Once", ANN)
    found = gateway.request("GET", f"/api/calls/{asked.json['call']}?wait=20").json["data"]
    number = bot.question("agent tester wants you to sign in to television")
    text = bot.messages[number]["text"]
    assert f"enter the code {found['user_code']}" in text
    assert "until 20" in text
    Person(authority.issuer).enter_device_code(link_in(bot, number, authority.issuer))
    bot.press(bot.question("Somebody signed in to television"), "Once", ANN)
    wait_until(lambda: account(gateway, "television")["connected"])
    rows = gateway.admin.get("/api/calls?limit=100")["rows"]
    assert ("connections:finish", "ann", "completed") in {
        (row["tool"].partition("#")[0], row["caller"], row["state"]) for row in rows
    }


def test_an_http_service_is_signed_in_to_by_a_device_code_at_the_addresses_that_were_configured(
    gateway, authority, shelf
):
    begun = gateway.admin.request("POST", "/servers/shelf/auth/start")
    assert begun["user_code"]
    Person(authority.issuer).enter_device_code(begun["auth_url"])
    wait_until(lambda: account(gateway, "shelf")["connected"])
    shelf.replies["/books"] = lambda *_: (200, {}, b"[]")
    wait_until(lambda: gateway.call("list_books", {}).status == 200)
    assert shelf.requests[-1]["headers"]["authorization"].startswith("Bearer ")


def account(gateway: Gateway, source: str) -> dict[str, object]:
    return gateway.admin.get(f"/servers/{source}/auth/status")


def test_what_a_browser_brought_back_is_on_record_as_a_call_of_the_person(gateway, authority):
    link = gateway.admin.request("POST", "/servers/notes/auth/start")["auth_url"]
    ended = Person(authority.issuer).consent(link)
    came_back(gateway, ended)
    code = urlsplit(ended).query.partition("code=")[2].partition("&")[0]
    rows = [
        row
        for row in gateway.admin.get("/api/calls?limit=100")["rows"]
        if row["tool"].startswith("connections:finish")
    ]
    assert {row["state"] for row in rows} >= {"completed"}
    assert "operator" in {row["caller"] for row in rows} <= {"operator", "ann"}
    assert traces(gateway.folder, code) == []


def test_a_code_that_this_gateway_cannot_use_is_shown_with_what_to_do(gateway):
    admin = gateway.announced["admin"]
    status, _, page = fetched(f"{admin}/auth/callback?code=SplxlOBeZQQYbYS6&state=of-another-gateway")
    assert status == 400
    assert b"<code>SplxlOBeZQQYbYS6</code>" in page
    assert b"agent-gate auth code" in page
    status, _, page = fetched(f"{admin}/auth/callback?code=%3Cb%3Ex&state=of-another-gateway")
    assert b"<b>" not in page
    assert b"the whole address of this page" in page
