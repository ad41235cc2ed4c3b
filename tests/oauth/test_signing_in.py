"""A server behind a sign-in, through the whole gateway: link, consent, tools, refresh, end; and nothing left behind."""

import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from tests import nursery
from tests.gateway import COMMAND, TOKEN, Gateway, running
from tests.oauth.authority import AuthorizationProcess, Person, answer_in, authorization_server
from tests.oauth.protected import ProtectedServer, protected_server
from tests.waiting import PATIENCE, wait_until

from agent_gate.errors import GatewayError
from agent_gate.net.tls.certificates import ensure_certificate

CONFIG = """
gateway: {{port: 0}}
admin: {{port: 0}}
agents: {{tester: {{token: {token}}}}}
servers:
  notes: {{url: "{url}"{more}}}
"""
ALLOW = "rules: [{pattern: 'notes__*', action: allow}]"


@pytest.fixture(scope="module")
def authority() -> Iterator[AuthorizationProcess]:
    with authorization_server() as made:
        yield made


@pytest.fixture
def server(authority: AuthorizationProcess) -> Iterator[ProtectedServer]:
    with protected_server(authority.issuer) as made:
        yield made


def files(url: str, more: str = "") -> dict[str, str]:
    return {"config.yaml": CONFIG.format(token=TOKEN, url=url, more=more), "permissions.yaml": ALLOW}


def state(gateway: Gateway) -> dict[str, object]:
    return next(one for one in gateway.admin.get("/api/sources") if one["key"] == "notes")


def needs_auth(gateway: Gateway) -> bool:
    return state(gateway)["status"] == "needs_auth"


def start(gateway: Gateway) -> str:
    return str(gateway.admin.request("POST", "/servers/notes/auth/start")["auth_url"])


def sign_in(gateway: Gateway, authority: AuthorizationProcess, link: str) -> str:
    """Consent as a person does, and let the browser come back to the gateway; the page it ends at."""
    return came_back(gateway, Person(authority.issuer).consent(link))


def came_back(gateway: Gateway, ended: str, status: int = 200) -> str:
    """The page that a browser shows which was sent back to the gateway."""
    port = urlsplit(gateway.announced["admin"]).port
    parts = urlsplit(ended)
    assert (parts.hostname, parts.port, parts.path) == ("localhost", port, "/auth/callback")
    found, _, page = fetched(urlunsplit(parts._replace(netloc=f"127.0.0.1:{port}")))
    assert found == status
    return page.decode()


def traces(folder: Path, *secrets: str) -> list[str]:
    """The files in which one of these stands in plain."""
    return [
        str(file)
        for file in folder.rglob("*")
        if file.is_file() and any(secret.encode() in file.read_bytes() for secret in secrets)
    ]


def test_an_address_is_all_the_configuration_that_a_protected_server_needs(tmp_path, authority, server):
    with running(tmp_path, files(server.url), "--insecure") as gateway:
        wait_until(lambda: needs_auth(gateway))
        assert "agent-gate auth start notes" in str(state(gateway)["reason"])
        page = sign_in(gateway, authority, start(gateway))
        assert "Signed in" in page
        wait_until(lambda: state(gateway)["status"] == "ready")
        assert state(gateway)["tools"] == 3
        reply = gateway.call("notes__read_note")
        assert (reply.status, "did read_note" in reply.body.decode()) == (200, True)
        [account] = gateway.admin.get("/api/connections")
        assert (account["connected"], account["account"]) == (True, "alice@example.test")
        told = [row["tool"] for row in gateway.admin.get("/api/calls?limit=50")["rows"]]
        assert any(tool.startswith("connections:start") for tool in told)
        before = authority.count("/token/revocation")
        ended = gateway.admin.request("POST", "/servers/notes/auth/end")
        assert (ended["connected"], ended["status"]) == (False, "needs_auth")
        wait_until(lambda: authority.count("/token/revocation") == before + 1)
        refused = gateway.call("notes__read_note")
        assert (refused.json["error"]["code"], refused.json["error"]["retryable"]) == (
            "DEPENDENCY_UNAVAILABLE",
            False,
        )
    assert server.tokens
    assert TOKEN not in server.tokens
    assert traces(tmp_path, *server.tokens) == []


def test_t48_a_server_that_moves_to_another_authorization_server_is_met_as_a_stranger(
    tmp_path, authority, server
):
    with running(tmp_path, files(server.url), "--insecure") as gateway:
        wait_until(lambda: needs_auth(gateway))
        first = start(gateway)
        sign_in(gateway, authority, first)
        wait_until(lambda: state(gateway)["status"] == "ready")
        known = set(server.tokens)
        with authorization_server() as other:
            server.issuer = other.issuer
            assert gateway.call("notes__read_note").json["error"]["code"] == "DEPENDENCY_UNAVAILABLE"
            wait_until(lambda: needs_auth(gateway))
            link = start(gateway)
            assert link.startswith(other.issuer)
            assert answer_in(link)["client_id"] != answer_in(first)["client_id"]
            sign_in(gateway, other, link)
            wait_until(lambda: state(gateway)["status"] == "ready")
            assert gateway.call("notes__read_note").status == 200
            assert not known & set(server.tokens[-1:])


def test_an_expired_token_is_renewed_silently_after_a_restart(tmp_path):
    with authorization_server(seconds=2) as authority, protected_server(authority.issuer) as server:
        with running(tmp_path, files(server.url, ", auth: {type: oauth2-pkce}"), "--insecure") as gateway:
            sign_in(gateway, authority, start(gateway))
            wait_until(lambda: state(gateway)["status"] == "ready")
            used = set(server.tokens)
        wait_until(lambda: not any(map(server.is_good, used)))
        with running(tmp_path, {}, "--insecure") as gateway:
            wait_until(lambda: state(gateway)["status"] == "ready")
            assert gateway.call("notes__list_notes").status == 200
            [account] = gateway.admin.get("/api/connections")
            assert account["renewed_at"] is not None
        assert traces(tmp_path, *server.tokens) == []


def test_over_tls_a_sign_in_goes_its_whole_way_and_a_strange_certificate_ends_it(tmp_path):
    tls, strange = ensure_certificate(tmp_path / "ours"), ensure_certificate(tmp_path / "theirs")
    trusted = {"SSL_CERT_FILE": str(tmp_path / "ours" / "ca.crt")}
    with (
        authorization_server(tls=tls, seconds=2) as authority,
        authorization_server(tls=strange) as stranger,
        protected_server(authority.issuer, tls) as server,
    ):
        text = files(server.url, ", auth: {type: oauth2-pkce}")
        with running(tmp_path / "gate", text, "--insecure", env=trusted) as gateway:
            link = start(gateway)
            assert link.startswith("https://")
            sign_in(gateway, authority, link)
            wait_until(lambda: state(gateway)["status"] == "ready")
            before = authority.count("/token")
            wait_until(
                lambda: gateway.call("notes__list_notes").status == 200 and authority.count("/token") > before
            )
            gateway.admin.request("POST", "/servers/notes/auth/end")
            authority.has_served("/token/revocation", 1)
            server.issuer = stranger.issuer
            with pytest.raises(GatewayError, match="cannot be reached"):
                start(gateway)
        assert stranger.count("/reg") == 0
        assert traces(tmp_path / "gate", *server.tokens) == []


def test_a_token_that_the_server_refuses_before_its_end_is_renewed_and_the_call_goes_through(
    tmp_path, authority, server
):
    with running(tmp_path, files(server.url, ", auth: {type: oauth2-pkce}"), "--insecure") as gateway:
        sign_in(gateway, authority, start(gateway))
        wait_until(lambda: state(gateway)["status"] == "ready")
        first, known = server.tokens[-1], server.is_good
        server.is_good = lambda token: token != first and known(token)  # type: ignore[method-assign]
        before = authority.count("/token")
        assert gateway.call("notes__list_notes").status == 200
        authority.has_served("/token", before + 1)
        assert server.tokens[-1] != first


def test_r15_a_kill_between_the_servers_new_tokens_and_their_commit_asks_once_and_never_loops(tmp_path):
    with authorization_server(seconds=2) as authority, protected_server(authority.issuer) as server:
        text = files(server.url, ", auth: {type: oauth2-pkce}")
        with running(tmp_path, text, "--insecure", env={"AGENT_GATE_FAILPOINT": "token_renewed"}) as gateway:
            sign_in(gateway, authority, start(gateway))
            wait_until(lambda: state(gateway)["status"] == "ready")
            used = set(server.tokens)
            wait_until(lambda: not any(map(server.is_good, used)))
            with pytest.raises(OSError):
                gateway.call("notes__list_notes")
            assert gateway.process.wait(PATIENCE) == 137
        asked = authority.count("/token")
        with running(tmp_path, {}, "--insecure") as gateway:
            wait_until(lambda: needs_auth(gateway))
            for _ in range(3):
                assert gateway.call("notes__list_notes").json["error"]["code"] == "DEPENDENCY_UNAVAILABLE"
            [question] = gateway.admin.get("/api/approvals")
            assert "The sign-in of notes has ended" in question["sentence"]
            authority.has_served("/token", asked + 1)
        assert traces(tmp_path, *server.tokens) == []


def test_the_advice_in_the_log_of_a_terminal_can_be_typed_as_it_stands(tmp_path, server):
    written = files(server.url)
    written["config.yaml"] += "\nlog: {format: text}\n"
    with running(tmp_path, written, "--insecure") as gateway:
        wait_until(lambda: needs_auth(gateway))
        said = re.search(r"`agent-gate (auth start notes [^`]+)`", gateway.stderr)
        assert said is not None
        begun = nursery.run([COMMAND, *said[1].split()], cwd=tmp_path, capture_output=True, text=True)
        assert "Open this link and sign in" in begun.stdout


def test_a_pasted_address_finishes_a_sign_in_for_whoever_began_it_and_once(tmp_path, authority, server):
    with running(tmp_path, files(server.url, ", auth: {type: oauth2}"), "--insecure") as gateway:
        wait_until(lambda: needs_auth(gateway))
        ended = Person(authority.issuer).consent(start(gateway))
        said = nursery.run(
            [COMMAND, "auth", "code", "notes", "--admin-socket", gateway.announced["socket"]],
            input=ended,
            capture_output=True,
            text=True,
            check=True,
        )
        assert said.stdout == "notes: connected, I see 3 tools\n"
        with pytest.raises(GatewayError, match="was finished"):
            gateway.admin.request("POST", "/servers/notes/auth/code", {"code": ended})
        address = Person(authority.issuer).consent(start(gateway))
        for pasted, told in (
            (answer_in(address)["code"], "Paste the whole address"),
            ("-hW" + answer_in(address)["code"], "Paste the whole address"),
            ("--" + answer_in(address)["code"], "Paste the whole address"),
            (address, "notes: connected, I see 3 tools\n"),
        ):
            words = [COMMAND, "auth", "code", pasted, "--admin-socket", gateway.announced["socket"]]
            said = nursery.run(words, capture_output=True, text=True)
            assert told in said.stdout + said.stderr


def test_connecting_a_source_that_needs_a_sign_in_says_how_and_calls_with_a_token_run_side_by_side(
    tmp_path, authority, server
):
    together = threading.Barrier(3, timeout=PATIENCE)
    answered = server.answer

    def answer(body, account):
        if body["method"] == "tools/call":
            together.wait()
        return answered(body, account)

    server.answer = answer
    with running(tmp_path, files(server.url), "--insecure") as gateway:
        wait_until(lambda: needs_auth(gateway))
        said = gateway.admin.request("POST", "/servers/notes/connect")
        assert "agent-gate auth start notes" in said["needs_auth"]
        sign_in(gateway, authority, start(gateway))
        wait_until(lambda: state(gateway)["status"] == "ready")
        with ThreadPoolExecutor(3) as pool:
            replies = list(pool.map(lambda _: gateway.call("notes__list_notes").status, range(3)))
    assert replies == [200, 200, 200]


def test_t41_a_denied_or_invented_callback_connects_nothing_and_shows_nothing_of_what_it_brought(
    tmp_path, authority, server
):
    with running(tmp_path, files(server.url, ", auth: {type: oauth2}"), "--insecure") as gateway:
        wait_until(lambda: needs_auth(gateway))
        link = start(gateway)
        known = answer_in(link)["state"]
        admin = gateway.announced["admin"]
        for query, status in (
            ("", 400),
            ("?code=%3Cscript%3Ex&state=invented", 400),
            (f"?error=access_denied&error_description=%3Cscript%3Ex&state={known}", 200),
            (f"?code=x&state={known}", 400),
        ):
            reply = fetched(f"{admin}/auth/callback{query}")
            assert reply[0] == status, query
            assert b"script" not in reply[2]
            assert b"default-src 'none'" in reply[1]
        assert needs_auth(gateway)


@pytest.mark.parametrize(
    ("server", "listed"),
    [
        ('url: "http://127.0.0.1:9/mcp"', True),
        ('url: "http://127.0.0.1:9/mcp", auth: {type: bearer, token: a-fixed-token-of-the-file}', False),
        ('command: "true"', False),
    ],
)
def test_the_tools_that_connect_are_listed_from_the_start_where_a_source_has_no_fixed_credential(
    tmp_path, server, listed
):
    text = CONFIG.format(token=TOKEN, url="", more="").replace('url: ""', server)
    with running(tmp_path, {"config.yaml": text}, "--insecure") as gateway:
        names = {tool["name"] for tool in gateway.request("GET", "/api/tools").json["tools"]}
    wanted = {f"connections_{name}" for name in ("start", "status", "code", "key", "end")}
    assert names == (wanted if listed else set())


def fetched(url: str) -> tuple[int, bytes, bytes]:
    import http.client

    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)
    connection.request("GET", parts.path + (f"?{parts.query}" if parts.query else ""))
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    return reply.status, (reply.getheader("Content-Security-Policy") or "").encode(), body


def test_t40_an_agent_begins_a_flow_with_leave_and_the_account_counts_when_the_person_confirmed_it(
    tmp_path, authority, server
):
    with running(tmp_path, files(server.url, ", auth: {type: oauth2-pkce}"), "--insecure") as gateway:
        wait_until(lambda: needs_auth(gateway))
        asked = gateway.call("connections_start", {"source": "notes"}, wait=0)
        assert asked.status == 202
        gateway.answer()
        found = gateway.request("GET", f"/api/calls/{asked.json['call']}", headers={"Prefer": "wait=20"})
        link = json.loads(found.body)
        link = link["data"]["auth_url"]
        sign_in(gateway, authority, link)
        wait_until(lambda: gateway.admin.get("/api/approvals"))
        [question] = gateway.admin.get("/api/approvals")
        assert "alice@example.test" in json.dumps(question)
        assert needs_auth(gateway)
        gateway.answer()
        wait_until(lambda: state(gateway)["status"] == "ready")
        assert gateway.call("notes__list_notes").status == 200
        assert traces(tmp_path, *server.tokens) == []


def test_a_key_is_checked_at_once_and_a_wrong_one_is_not_kept(tmp_path, authority, server):
    server.is_good = lambda token: token == "the-right-key-of-notes"  # type: ignore[method-assign]
    more = ", auth: {type: api-key}"
    with running(tmp_path, files(server.url, more), "--insecure") as gateway:
        wait_until(lambda: needs_auth(gateway))
        assert "agent-gate auth key notes" in str(state(gateway)["reason"])
        with pytest.raises(GatewayError, match="does not take this key"):
            gateway.admin.request("POST", "/servers/notes/auth/key", {"key": "a-wrong-key-of-notes"})
        assert needs_auth(gateway)
        said = gateway.admin.request("POST", "/servers/notes/auth/key", {"key": "the-right-key-of-notes"})
        assert said["message"] == "notes: connected, I see 3 tools"
    assert traces(tmp_path, "the-right-key-of-notes", "a-wrong-key-of-notes") == []
