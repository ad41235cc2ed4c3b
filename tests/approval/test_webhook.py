"""The webhook channel and its answer links, over real HTTP on both sides."""

import base64
import hmac
import http.client
import json
import re
import time
from urllib.parse import urlencode, urlsplit

import pytest
from tests.approval.conftest import close_all, files, light, outcome, reached
from tests.gateway import TOKEN, Api, running
from tests.waiting import PATIENCE, wait_until

SECRET = "whsec_" + base64.b64encode(b"webhook-secret-canary-0123456789").decode()
HOOK = 'channels: [{{type: webhook, url: "{url}/hook?room=1", secret: "{secret}"{more}}}]'


def hook(receiver, more="", secret=SECRET):
    return HOOK.format(url=receiver.url, secret=secret, more=more)


@pytest.fixture(scope="module")
def shared(tmp_path_factory, api):
    """One gateway and one receiver for all tests that need no start of their own."""
    receiver = Api()
    with running(
        tmp_path_factory.mktemp("gate"), files(api, hook(receiver, ", person: ann")), "--insecure"
    ) as gate:
        yield gate, receiver
    receiver.close()


@pytest.fixture
def hooked(shared, api):
    gate, receiver = shared
    api.reset()
    yield gate, receiver
    close_all(gate)
    wait_until(lambda: len(receiver.requests) % 2 == 0)
    receiver.reset()


def posted(receiver, event="asked"):
    """The first message of that kind, verified as a receiver would."""

    def found():
        for request in list(receiver.requests):
            if request["headers"]["webhook-id"].endswith(event):
                return request
        return None

    request = wait_until(found)
    head = request["headers"]
    assert request["path"] == "/hook?room=1"
    signed = f"{head['webhook-id']}.{head['webhook-timestamp']}.".encode() + request["body"]
    wanted = base64.b64encode(hmac.digest(base64.b64decode(SECRET[6:]), signed, "sha256")).decode()
    assert head["webhook-signature"] == f"v1,{wanted}"
    assert abs(int(head["webhook-timestamp"]) - time.time()) < 60
    return json.loads(request["body"])


def visit(url, method="GET", form=None, **headers):
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE)
    body = urlencode(form or {}) if method == "POST" else None
    connection.request(
        method, parts.path, body, {"Content-Type": "application/x-www-form-urlencoded"} | headers
    )
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response, text


def test_a_question_is_posted_signed_and_its_end_too(hooked, api):
    gate, receiver = hooked
    light(gate)
    asked = posted(receiver)
    assert asked["event"] == "asked"
    assert asked["signature"] == "ha_call_service(light.turn_on, light.bedroom)"
    assert asked["arguments"] == {"domain": "light", "service": "turn_on", "entity_id": "light.bedroom"}
    assert asked["where"].startswith("permissions.yaml:1")
    gate.answer("deny", reason="no")
    ended = posted(receiver, "resolved")
    assert (ended["state"], ended["answered_by"], ended["answer_reason"]) == ("denied", "operator", "no")
    assert ended["answer"] == {}


def test_looking_at_a_link_changes_nothing_and_confirming_it_answers_once(hooked, api):
    gate, receiver = hooked
    call = light(gate).json["call"]
    links = posted(receiver)["answer"]
    for method in ("GET", "GET", "HEAD"):
        response, text = visit(links["hour"], method)
        assert response.status == 200
    assert "form-action 'self'" in response.headers["content-security-policy"]
    assert gate.story(call) == ["pending"]
    response, text = visit(links["hour"], "POST", {"choice": "always"})
    assert (response.status, gate.story(call)) == (400, ["pending"])
    response, text = visit(links["hour"], "POST", {"reason": "fine"})
    assert response.status == 200
    assert "Approved for one hour by ann on webhook" in text
    assert "<p>It ran.</p>" in text
    assert outcome(gate, call).status == 200
    for link in links.values():
        response, text = visit(link, "POST", {"choice": "once"})
        assert response.status == 400
        assert "Nothing was changed" in text
    assert len(reached(api)) == 1
    [grant] = gate.admin.get("/api/grants")
    assert grant["expires_at"] is not None


def test_a_made_up_link_is_refused(hooked, api):
    gate, receiver = hooked
    call = light(gate).json["call"]
    link = posted(receiver)["answer"]["once"]
    base, _, token = link.rpartition("/")
    other = ("A" if token[5] != "A" else "B").join([token[:5], token[6:]])
    for bad in (other, token[:-1], "x", token + "A", "..%2f" + token):
        response, _ = visit(f"{base}/{bad}", "POST")
        assert response.status == 400
    assert gate.story(call) == ["pending"]


def test_the_choosing_page_offers_all_answers(hooked, api):
    gate, receiver = hooked
    call = light(gate).json["call"]
    link = posted(receiver)["answer"]["choose"]
    _, text = visit(link)
    assert not re.search("src=|href=", text), "a proxy may pass nothing but /answer/"
    for choice in ("once", "hour", "always", "deny"):
        assert f'value="{choice}"' in text
    assert visit(link, "POST")[0].status == 400
    assert visit(link, "POST", {"choice": "deny", "reason": "busy"})[0].status == 200
    assert outcome(gate, call).json["error"]["message"] == "Denied by user\nReason: busy"


def test_a_passphrase_is_wanted_behind_the_link_too(start, receiver, api):
    gate = start(hook(receiver) + "\napprovers: {passphrase: correct-horse-battery}")
    call = light(gate).json["call"]
    link = posted(receiver)["answer"]["once"]
    _, text = visit(link)
    assert 'name="passphrase"' in text
    assert visit(link, "POST")[0].status == 401
    assert visit(link, "POST", {"passphrase": "wrong"})[0].status == 401
    assert gate.story(call) == ["pending"]
    assert visit(link, "POST", {"passphrase": "correct-horse-battery"})[0].status == 200
    assert outcome(gate, call).status == 200


def test_the_answer_page_shows_hostile_text_as_text(hooked, api):
    gate, receiver = hooked
    text = "</pre><script>x</script>\u202e\x1b" + "y" * 5000
    gate.call("mail_send", {"to": "a@b", "text": text, "code": "secret-code-77"}, wait=0)
    asked = posted(receiver)
    _, page = visit(asked["answer"]["once"])
    assert "<script>" not in page
    assert "&lt;/pre&gt;&lt;script&gt;x&lt;/script&gt;\\u202e\\u001b" + "y" * 5000 in page
    assert "secret-code-77" not in page
    assert asked["arguments"]["code"] == "•••"
    assert "\u202e" not in asked["text"]
    assert "\u202e" in asked["arguments"]["text"]


def test_a_receiver_that_fails_gets_the_same_message_again(start, receiver):
    tries = []

    def flaky(_handler, _body):
        tries.append(1)
        return (503, {"Retry-After": "1"}, b"") if len(tries) < 3 else (204, {}, b"")

    receiver.replies["*"] = flaky
    gate = start(hook(receiver))
    began = time.monotonic()
    light(gate)
    wait_until(lambda: len(tries) == 3)
    assert time.monotonic() - began >= 2
    assert len({r["headers"]["webhook-id"] for r in receiver.requests}) == 1


def test_a_receiver_that_asks_to_wait_for_ever_is_asked_again_all_the_same(start, receiver):
    def endless(_handler, _body):
        first = len(receiver.requests) == 1
        return (429, {"Retry-After": "9" * 400}, b"") if first else (204, {}, b"")

    receiver.replies["*"] = endless
    light(start(hook(receiver)))
    assert wait_until(lambda: len(receiver.requests) == 2)


def test_ntfy_and_slack_get_what_they_take(start, receiver):
    channels = (
        f'channels: [{{type: webhook, name: n, url: "{receiver.url}/my-topic", format: ntfy, answer_url: "http://phone.test"}},'
        f' {{type: webhook, name: s, url: "{receiver.url}/slack", format: slack, answer_url: "http://phone.test", headers: {{X-Key: abc}}}}]'
    )
    gate = start(channels)
    light(gate)
    wait_until(lambda: len(receiver.requests) == 2)
    by_path = {r["path"]: r for r in receiver.requests}
    ntfy, slack = json.loads(by_path["/"]["body"]), json.loads(by_path["/slack"]["body"])
    assert ntfy["topic"] == "my-topic"
    assert [a["label"] for a in ntfy["actions"]] == ["Once", "Deny", "More…"]
    assert by_path["/slack"]["headers"]["x-key"] == "abc"
    assert slack["blocks"][0]["text"]["type"] == "plain_text"
    assert [e["text"]["text"] for e in slack["blocks"][1]["elements"]] == [
        "Once",
        "One hour",
        "Always for this",
        "Deny",
    ]
    link = ntfy["actions"][0]["url"].replace("http://phone.test", gate.announced["admin"])
    assert visit(link, "POST")[0].status == 200
    wait_until(lambda: len(receiver.requests) == 4)


@pytest.mark.parametrize("letter", ["x", "話", "\\", "🙂"])
def test_a_long_question_is_cut_to_what_ntfy_and_slack_take_and_says_so(start, receiver, letter):
    gate = start(
        f'channels: [{{type: webhook, name: n, url: "{receiver.url}/my-topic", format: ntfy, answer_url: "http://phone.test"}},'
        f' {{type: webhook, name: s, url: "{receiver.url}/slack", format: slack, answer_url: "http://phone.test"}}]'
    )
    extra = {f"more{number:02}": letter * 390 for number in range(60)}
    light(gate, "light.bedroom")
    gate.call("mail_send", {"to": "a", "text": "hi", **extra, "zz_last": "the one that matters"}, wait=0)
    wait_until(lambda: len(receiver.requests) == 4)
    ntfy = [json.loads(r["body"]) for r in receiver.requests if r["path"] == "/"]
    slack = [json.loads(r["body"]) for r in receiver.requests if r["path"] == "/slack"]
    short, long = sorted((sent["message"] for sent in ntfy), key=len)
    assert "time left" in short
    assert "cut here" in long.splitlines()[-1]
    assert len(long.encode()) <= 4096
    assert all(len(r["body"]) <= 8192 for r in receiver.requests if r["path"] == "/")
    short, long = sorted((sent["blocks"][0]["text"]["text"] for sent in slack), key=len)
    assert "time left" in short
    assert "cut here" in long.splitlines()[-1]
    assert len(long) <= 3000


def test_a_number_that_is_a_known_secret_is_masked_and_the_question_still_posted(start, receiver):
    more = hook(receiver) + '\napprovers: {passphrase: "${PIN}"}'
    gate = start(more, env={"PIN": "90417733"})
    gate.call("mail_send", {"to": "a", "text": "hi", "n": [90417733, 12, True, None]}, wait=0)
    asked = posted(receiver)
    assert asked["arguments"] == {"to": "a", "text": "hi", "n": ["•••", 12, True, None]}
    assert "90417733" not in json.dumps(asked)


def test_a_template_shapes_what_is_posted(start, receiver):
    gate = start(
        hook(
            receiver,
            ', template: {msg: "{agent}: {signature}", data: "{arguments}", n: 3, keep: "{nothing}", link: "{answer_url}"}',
            "",
        )
    )
    light(gate)
    wait_until(lambda: receiver.requests)
    sent = json.loads(receiver.requests[0]["body"])
    assert sent.pop("link").startswith(f"{gate.announced['admin']}/answer/")
    assert sent == {
        "msg": "pi: ha_call_service(light.turn_on, light.bedroom)",
        "data": {"domain": "light", "service": "turn_on", "entity_id": "light.bedroom"},
        "n": 3,
        "keep": "{nothing}",
    }


def test_an_agents_token_reaches_no_approval_route(hooked, api):
    """On the public listener there is none; on the admin listener and its links the token opens nothing."""
    gate, receiver = hooked
    call = light(gate).json["call"]
    link = posted(receiver)["answer"]["once"]
    [approval] = gate.admin.get("/api/approvals")
    token = urlsplit(link).path
    for path in (
        f"/api/approvals/{approval['id']}",
        "/api/approvals",
        "/api/grants",
        token,
        "/api/policy/rules",
    ):
        for method in ("GET", "POST", "DELETE"):
            assert gate.request(method, path, {"verdict": "approve", "ids": [approval["id"]]}).status in (
                404,
                405,
            )
    admin = urlsplit(gate.announced["admin"])
    for path in (f"/api/approvals/{approval['id']}", "/api/approvals", "/api/policy/rules"):
        connection = http.client.HTTPConnection(admin.hostname, admin.port, timeout=PATIENCE)
        body = json.dumps({"verdict": "approve", "ids": [approval["id"]]})
        connection.request("POST", path, body, {"Authorization": f"Bearer {TOKEN}"})
        assert connection.getresponse().status in (401, 429)
        connection.close()
    assert gate.story(call) == ["pending"]
    assert reached(api) == []


def test_several_channels_at_once_are_all_updated_by_the_first_answer(start, receiver, api):
    second = Api()
    try:
        channels = (
            f'channels: [{{type: webhook, name: one, url: "{receiver.url}/a"}},'
            f' {{type: webhook, name: two, url: "{second.url}/b", person: bob}}]'
        )
        gate = start(channels)
        light(gate)
        wait_until(lambda: receiver.requests and second.requests)
        link = json.loads(second.requests[0]["body"])["answer"]["once"]
        assert visit(link, "POST")[0].status == 200
        wait_until(lambda: len(receiver.requests) == 2 and len(second.requests) == 2)
        assert json.loads(receiver.requests[1]["body"])["answered_by"] == "bob"
    finally:
        second.close()
