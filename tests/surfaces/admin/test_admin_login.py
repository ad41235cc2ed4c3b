import http.client
import json
import re
from contextlib import closing

import pytest
from tests import nursery
from tests.gateway import COMMAND, TOKEN, Gateway
from tests.surfaces.admin.admin_gate import PEOPLE, Browser, browser, gate, link
from tests.waiting import PATIENCE, wait_until

APPROVE = {"verdict": "approve"}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with gate(tmp_path_factory.mktemp("gate"), PEOPLE) as gateway:
        yield gateway


def bearer(gateway, method, path, token, body=None):
    program = Browser(gateway.announced["admin"])
    return program.send(method, path, body, Authorization=f"Bearer {token}", Origin=None)


def test_the_start_prints_a_link_on_stderr_only_and_it_opens_one_session(tmp_path):
    with gate(tmp_path) as gateway:
        [printed] = wait_until(lambda: re.findall(r"http://\S+/login#(\S+)\n", gateway.stderr))
        assert printed not in json.dumps(gateway.announced)
        person = Browser(gateway.announced["admin"])
        opened = person.follow(f"/login#{printed}")
        assert opened.json["person"] == "operator"
        me = {"person": "operator", "channel": "page", "passphrase": False}
        everything = {"may": ["view", "answer", "operate"], "namespaces": None}
        assert person.get("/api/me") == me | everything
        again = Browser(gateway.announced["admin"]).follow(f"/login#{printed}")
        assert again.status == 401
        assert "agent-gate login" in again.json["error"]["message"]


def test_the_cookie_is_strict_and_is_no_use_without_the_key(gateway):
    person = Browser(gateway.announced["admin"])
    set_cookie = person.follow(link(gateway)).headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(set_cookie.split("; "))
    assert person.key not in set_cookie
    assert person.send("GET", "/api/approvals", **{"Agent-Gate-Key": None}).status == 401
    assert person.send("GET", "/api/approvals", **{"Agent-Gate-Key": "wrong"}).status == 401
    assert person.send("GET", "/api/approvals", Cookie=None).status == 401
    assert person.send("GET", "/api/approvals").status == 200


def test_the_cookie_of_one_gateway_is_not_overwritten_by_that_of_another_because_ports_share_cookies(
    gateway, tmp_path
):
    def name(person):
        return person.cookie.partition("=")[0]

    with gate(tmp_path) as other:
        assert name(browser(gateway)) == name(browser(gateway)) != name(browser(other))


def test_a_cookie_for_tls_counts_before_one_that_anybody_on_the_way_could_have_set(gateway):
    person = browser(gateway)
    name, _, value = person.cookie.partition("=")
    assert person.send("GET", "/api/approvals", Cookie=f"{name}=x; __Host-{name}={value}").status == 200
    assert person.send("GET", "/api/approvals", Cookie=f"{name}={value}; __Host-{name}=x").status == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": None},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "http://localhost"},
        {"Sec-Fetch-Site": "same-site"},
        {"Host": "evil.example"},
    ],
)
def test_what_another_page_makes_a_browser_send_is_refused(gateway, headers):
    person = browser(gateway)
    assert person.send("POST", "/api/reload", {}, **headers).status == 403
    assert person.send("POST", "/api/session", {"link": "x"}, **headers).status == 403
    assert person.send("POST", "/api/reload", {}).status == 200


def test_logging_out_ends_the_session(gateway):
    person = browser(gateway)
    assert person.send("DELETE", "/api/session").status == 200
    refused = person.send("GET", "/api/approvals")
    assert (refused.status, "www-authenticate" in refused.headers) == (401, True)


def test_an_agents_token_opens_nothing_on_the_admin_listener(gateway):
    for path in ("/api/approvals", "/api/status", "/metrics", "/openapi.json", "/api/events", "/servers"):
        assert bearer(gateway, "GET", path, TOKEN).status in (401, 429), path
    assert bearer(gateway, "POST", "/api/approvals/x", TOKEN, APPROVE).status in (401, 429)


def test_an_agents_token_reaches_no_approval_route_on_the_public_listener(gateway):
    waiting = gateway.call("light_set", {"room": "attic"}, wait=0)
    [approval] = gateway.admin.get("/api/approvals")
    for path in (
        f"/api/approvals/{approval['id']}",
        "/api/approvals",
        "/api/grants",
        "/api/logins",
        "/api/agents",
    ):
        for method in ("GET", "POST", "DELETE"):
            assert gateway.request(method, path, APPROVE).status in (404, 405), (method, path)
    [still] = gateway.admin.get("/api/approvals")
    assert still["state"] == "pending"
    gateway.request("DELETE", f"/api/calls/{waiting.json['call']}")


def test_an_operator_token_serves_programs_until_it_is_revoked(gateway):
    made = gateway.admin.request("POST", "/api/operators", {"name": "backup"})
    gateway.call("light_set", {"room": "bath"}, wait=0)
    assert bearer(gateway, "GET", "/metrics", made["token"]).status == 200
    [approval] = bearer(gateway, "GET", "/api/approvals", made["token"]).json
    answered = bearer(gateway, "POST", f"/api/approvals/{approval['id']}", made["token"], {"verdict": "deny"})
    assert (answered.json["answered_by"], answered.json["answered_on"]) == ("operator", "api")
    assert [one["name"] for one in gateway.admin.get("/api/operators")] == ["backup"]
    assert "token" not in json.dumps(gateway.admin.get("/api/operators"))
    gateway.admin.request("DELETE", "/api/operators/backup")
    assert bearer(gateway, "GET", "/api/approvals", made["token"]).status == 401


def typed(gateway, *words):
    done = nursery.run(
        [COMMAND, *words], cwd=gateway.folder, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_link_and_an_operator_token_are_printed_by_their_commands(gateway):
    person = Browser(gateway.announced["admin"])
    assert person.follow(typed(gateway, "login", "--as", "anna@home")).json["person"] == "anna"
    token = typed(gateway, "operators", "make", "nightly")
    assert bearer(gateway, "GET", "/api/status", token).status == 200
    typed(gateway, "operators", "revoke", "nightly")
    assert bearer(gateway, "GET", "/api/status", token).status == 401


@pytest.mark.parametrize("who", ["page", "program"])
def test_an_open_event_stream_tells_nothing_once_its_login_is_gone(gateway, who):
    person = browser(gateway)
    if who == "page":
        headers = {"Cookie": person.cookie, "Agent-Gate-Key": person.key}
    else:
        made = gateway.admin.request("POST", "/api/operators", {"name": "listener"})
        headers = {"Authorization": f"Bearer {made['token']}"}
    with closing(http.client.HTTPConnection(person.host, timeout=PATIENCE)) as connection:
        connection.request("GET", "/api/events", headers=headers)
        stream = connection.getresponse()
        assert stream.readline() == b": connected\n"
        if who == "page":
            person.send("DELETE", "/api/session")
        else:
            gateway.admin.request("DELETE", "/api/operators/listener")
        waiting = gateway.call("light_set", {"room": f"cellar {who}"}, wait=0)
        assert next((line for line in iter(stream.readline, b"") if b"approval" in line), None) is None
    gateway.request("DELETE", f"/api/calls/{waiting.json['call']}")


def test_an_operator_token_is_no_agent_token(gateway):
    made = gateway.admin.request("POST", "/api/operators", {"name": "no-agent"})
    assert gateway.call("light_get", {"room": "hall"}, token=made["token"]).status == 401


def test_answers_carry_the_name_of_the_person_who_logged_in(gateway):
    gateway.call("light_set", {"room": "nursery"}, wait=0)
    anna = browser(gateway, "anna@home")
    [approval] = anna.get("/api/approvals")
    answered = anna.post(f"/api/approvals/{approval['id']}", APPROVE)
    assert (answered["answered_by"], answered["answered_on"]) == ("anna", "page")


def test_a_person_can_make_links_only_for_themselves(gateway):
    anna = browser(gateway, "anna@home")
    assert anna.post("/api/logins")["person"] == "anna"
    assert anna.send("POST", "/api/logins", {"login": "ben@home"}).status == 403
    assert anna.send("POST", "/api/operators", {"name": "x", "login": "ben@home"}).status == 403
    unknown = browser(gateway).send("POST", "/api/logins", {"login": "nobody"})
    assert "people" in unknown.json["error"]["message"]


def test_a_person_with_a_passphrase_gives_it_with_every_answer(gateway):
    gateway.call("light_set", {"room": "study"}, wait=0)
    ben = browser(gateway, "ben@home")
    assert ben.get("/api/me")["passphrase"] is True
    [approval] = ben.get("/api/approvals")
    path = f"/api/approvals/{approval['id']}"
    refused = ben.send("POST", path, APPROVE)
    assert (refused.status, "www-authenticate" in refused.headers) == (401, False)
    assert ben.send("POST", path, APPROVE | {"passphrase": "wrong"}).status == 401
    assert ben.send("POST", "/api/approvals", APPROVE | {"ids": [approval["id"]]}).status == 401
    assert ben.post(path, APPROVE | {"passphrase": "open-sesame-ben"})["answered_by"] == "ben"


def test_guessing_a_passphrase_gets_slow_and_the_right_one_has_to_wait_too(tmp_path):
    with gate(tmp_path, "approvers: {passphrase: open-sesame-all}") as gateway:
        person = browser(gateway)
        gateway.call("light_set", {"room": "study"}, wait=0)
        [approval] = person.get("/api/approvals")
        path = f"/api/approvals/{approval['id']}"
        guesses = [person.send("POST", path, APPROVE | {"passphrase": f"guess{n}"}).status for n in range(6)]
        assert guesses == [401] * 5 + [429]
        assert person.send("POST", path, APPROVE | {"passphrase": "open-sesame-all"}).status == 429
        assert person.get("/api/approvals")[0]["state"] == "pending"


def test_guessing_gets_slow(tmp_path):
    with gate(tmp_path) as gateway:
        guesses = [bearer(gateway, "GET", "/api/status", f"guess-{n}").status for n in range(12)]
        assert guesses[:10] == [401] * 10
        assert guesses[-1] == 429


def test_a_session_and_its_limits_survive_a_restart_and_only_hashes_are_kept(tmp_path):
    with gate(tmp_path, PEOPLE) as gateway:
        anna = browser(gateway, "anna@home")
        token = gateway.admin.request("POST", "/api/operators", {"name": "script"})["token"]
        port = gateway.announced["admin"].rpartition(":")[2]
        gateway.kill()
        config = tmp_path / "config.yaml"
        config.write_text(config.read_text().replace("admin: {port: 0", f"admin: {{port: {port}"))
        stored = b"".join(file.read_bytes() for file in (tmp_path / "data").glob("gate.db*"))
        for secret in (anna.cookie.partition("=")[2], anna.key, token):
            assert secret.encode() not in stored
        again = Gateway(tmp_path, "--insecure").start()
        try:
            assert anna.get("/api/me")["person"] == "anna"
            assert bearer(again, "GET", "/api/status", token).status == 200
            config.write_text(config.read_text().replace("  anna: {login: anna@home}\n", ""))
            again.admin.request("POST", "/api/reload")
            assert anna.send("GET", "/api/me").status == 401
        finally:
            again.stop()
