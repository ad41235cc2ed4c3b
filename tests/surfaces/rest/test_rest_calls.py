"""One complete way through the gate: an agent over REST, a YAML tool, policy, a person, an HTTP API, the record."""

import json
import socket
import threading
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from tests.gateway import OTHER_TOKEN, TOKEN, Api, in_front_of
from tests.waiting import PATIENCE, wait_until

from agent_gate.errors import GatewayError, InvalidArgs

CONFIG = """
gateway: {{id: t, port: 0}}
admin: {{port: 0, socket: ./data/admin.sock}}
agents:
  first: {{token: {token}, rate_limit: {{max_requests_per_minute: 0}}}}
  other: {{token: {other}, rate_limit: {{max_requests_per_minute: 0}}}}
  narrow: {{token: token-of-the-narrow-agent-in-tests, namespaces: [elsewhere]}}
  slow: {{token: token-of-the-slow-agent-in-tests, rate_limit: {{max_requests_per_minute: 2}}}}
services:
  home:
    url: "{url}/base"
    auth: {{type: bearer, token: "secret-credential-of-the-service"}}
    tools: tools.yaml
    errors:
      - {{status: 404, message: "Entity not found"}}
      - {{status: 418, message: "Teapot {{status}}: {{body}}"}}
  2nd Home: {{url: "{url}", tools: {{second: {{request: {{method: GET, path: /second}}}}}}}}
  elsewhere: {{url: "http://127.0.0.1:9", tools: {{unreachable: {{request: {{method: POST, path: /x}}}}}}}}
permissions: permissions.yaml
approval_timeout: 900
limits: {{max_request_bytes: 1000000}}
"""
TOOLS = """
tools:
  get_state: {args: {entity_id: {required: true, validate: "^[a-z_][a-z0-9_.]*$"}}, signature: "{entity_id}", request: {method: GET, path: "/states/{entity_id}"}, read_only: true}
  find: {args: {q: {required: true, text: true}, limit: {type: integer, default: 5}}, request: {method: GET, path: /find}}
  act: {args: {what: {required: true}, pin: {secret: true}}, signature: "{what}", request: {method: POST, path: "/act/{what}", body_exclude: [what]}, response: {wrap: done}, ask: "Do {what}?"}
  sign_in: {args: {account: {type: object, required: true, properties: {user: {}, codes: {type: array, items: {secret: true}}}}}, request: {method: POST, path: /sign-in}}
  never: {args: {what: {required: true}}, signature: "{what}", request: {method: POST, path: /never}}
  own_words: {args: {id: {required: true}, b: {}}, request: {method: PATCH, path: "/own?kind=x&id={id}", query: {b: "{b}"}, headers: {Accept: application/vnd.api+json, Content-Type: application/merge-patch+json}}}
  form: {args: {a: {}, n: {type: integer}, many: {type: array}}, request: {method: POST, path: /sent, body_type: form}}
  shaped_form: {args: {a: {}, b: {}}, request: {method: PUT, path: /sent, body_type: form, body: {x: "{a}", y: "{b}", z: 1}}}
  note: {args: {words: {text: true}, n: {type: integer, default: 0}}, request: {method: POST, path: /sent, body_type: text, body: "{words} {n}"}}
  page: {request: {method: GET, path: /page}, response: {type: text, wrap: said}}
  picture: {request: {method: GET, path: /picture}, response: {type: file}}
  forget: {args: {id: {required: true}, all: {type: boolean}}, request: {method: DELETE, path: "/forget/{id}"}}
  dim: {args: {level: {type: integer, default: 100}}, request: {method: POST, path: /dim}}
  open_path: {args: {id: {required: true}}, request: {method: GET, path: "/open/{id}"}}
"""
FORM = "application/x-www-form-urlencoded"
PERMISSIONS = """
rules:
  - {pattern: "get_state(*)", action: allow}
  - {pattern: "find", action: allow}
  - {pattern: "open_path", action: allow}
  - {pattern: "forget", action: allow}
  - {pattern: "dim", action: deny, when: {level: 100}}
  - {pattern: "dim", action: allow}
  - {pattern: "own_words", action: allow}
  - {pattern: "*form", action: allow}
  - {pattern: "note", action: allow}
  - {pattern: "p[ai]*", action: allow}
  - {pattern: "unreachable", action: allow}
  - {pattern: "second", action: allow}
  - {pattern: "never(*)", action: deny, description: not this one}
"""


@pytest.fixture(scope="module")
def api():
    with Api() as made:
        yield made


@pytest.fixture(scope="module")
def gateway(tmp_path_factory, api):
    folder = tmp_path_factory.mktemp("rest")
    with in_front_of(api, folder, CONFIG, TOOLS, PERMISSIONS, other=OTHER_TOKEN) as started:
        yield started


@pytest.fixture(autouse=True)
def fresh(api, gateway):
    api.reset()
    yield
    for approval in gateway.admin.get("/api/approvals"):
        gateway.admin.request("POST", f"/api/approvals/{approval['id']}", {"verdict": "deny"})


def in_background(function, *args, **options):
    """Run a call that is going to wait; the result is read with `.get()`."""
    box = []
    thread = threading.Thread(target=lambda: box.append(function(*args, **options)))
    thread.start()

    def get():
        thread.join(PATIENCE)
        return box[0]

    return get


def test_an_allowed_call_reaches_the_api_once_with_the_credential_the_agent_never_sees(gateway, api):
    reply = gateway.call("get_state", {"entity_id": "sensor.once"})
    assert reply.status == 200
    assert reply.json["status"] == "executed"
    # Calls of other tests may still be on their way; none of them asks for this.
    [request] = [request for request in api.requests if request["path"].endswith("sensor.once")]
    assert (request["method"], request["path"]) == ("GET", "/base/states/sensor.once")
    assert request["headers"]["authorization"] == "Bearer secret-credential-of-the-service"
    assert b"secret-credential" not in reply.body
    assert TOKEN not in str(request)
    assert gateway.story(reply.json["call"]) == ["dispatching", "completed"]


def test_headers_of_a_tool_take_the_place_of_the_usual_ones_and_a_query_in_its_path_goes_on(gateway, api):
    names = []
    api.replies["/base/own"] = lambda handler, _body: names.extend(map(str.lower, handler.headers.keys()))
    assert gateway.call("own_words", {"id": "a&b", "b": "2"}).status == 200
    [request] = api.requests
    assert request["path"] == "/base/own?kind=x&id=a%26b&b=2"
    assert request["headers"]["accept"] == "application/vnd.api+json"
    assert request["headers"]["content-type"] == "application/merge-patch+json"
    assert (names.count("accept"), names.count("content-type")) == (1, 1)


@pytest.mark.parametrize("fault", [502, 503, 504, "lost"])
def test_only_the_file_says_what_may_be_sent_again_and_no_key_of_a_caller(gateway, api, fault, monkeypatch):
    def lose(handler, _body):
        handler.close_connection = True
        handler.connection.close()
        raise ConnectionAbortedError

    monkeypatch.setattr(api.server, "handle_error", lambda *_: None)
    api.replies["*"] = lose if fault == "lost" else (fault, {}, b"")
    once = gateway.call("own_words", {"id": "a"}, headers={"Idempotency-Key": f"key-{fault}"})
    assert once.json["error"]["code"] == ("OUTCOME_UNKNOWN" if fault == "lost" else "UPSTREAM_ERROR")
    assert [request["headers"]["idempotency-key"] for request in api.requests] == [f"key-{fault}"]
    api.requests.clear()
    assert gateway.call("get_state", {"entity_id": "sensor.x"}).status == 502
    assert len(api.requests) in ((3, 4) if fault == "lost" else (3,))


def test_a_secret_deep_inside_an_argument_reaches_the_api_and_nobody_who_looks(gateway, api):
    api.replies["/base/sign-in"] = (418, {}, b"not with deep-secret-77")
    account = {"user": "ann", "codes": ["deep-secret-77"]}
    asked = gateway.call("sign_in", {"account": account}, wait=0.1)
    [question] = gateway.admin.get("/api/approvals")
    assert question["arguments"] == {"account": "•••"}
    assert "deep-secret" not in str(gateway.admin.get(f"/api/approvals/{question['id']}"))
    gateway.answer()
    ended = gateway.request("GET", f"/api/calls/{asked.json['call']}?wait=10")
    assert ended.json["error"]["message"] == "Teapot 418: not with •••"
    assert json.loads(api.requests[0]["body"]) == {"account": account}
    assert "deep-secret" not in str(gateway.admin.get(f"/api/calls/{asked.json['call']}"))


def test_arguments_that_have_no_place_in_the_path_of_a_get_or_delete_go_into_the_query(gateway, api):
    assert gateway.call("find", {"q": "a b&c=d/ä"}).status == 200
    assert gateway.call("forget", {"id": "7", "all": True}).status == 200
    assert [request["path"] for request in api.requests] == [
        "/base/find?limit=5&q=a%20b%26c%3Dd%2F%C3%A4",
        "/base/forget/7?all=true",
    ]


def test_the_default_of_an_argument_that_is_left_out_meets_the_rules(gateway):
    assert gateway.call("dim", {}).status == 403
    assert gateway.call("dim", {"level": 20}).status == 200


def test_an_asked_call_waits_runs_after_a_yes_and_is_found_again(gateway, api):
    asked = gateway.call("act", {"what": "thing", "pin": "1234-secret", "extra": [1]}, wait=0.1)
    assert asked.status == 202
    assert asked.headers["location"] == f"/api/calls/{asked.json['call']}"
    [approval] = gateway.admin.get("/api/approvals")
    assert approval["signature"] == "act(thing)"
    assert approval["sentence"] == "Do thing?"
    assert approval["arguments"]["extra"] == [1]
    assert "1234-secret" not in json.dumps(approval)
    assert api.requests == []
    gateway.answer("approve")
    done = gateway.request("GET", f"/api/calls/{asked.json['call']}?wait=10")
    assert done.json["data"]["done"]["path"] == "/base/act/thing"
    assert json.loads(api.requests[0]["body"]) == {"pin": "1234-secret", "extra": [1]}
    assert gateway.story(asked.json["call"]) == ["pending", "approved", "dispatching", "completed"]
    assert "1234-secret" not in json.dumps(gateway.admin.get(f"/api/calls/{asked.json['call']}"))


def test_a_held_call_is_answered_as_soon_as_the_person_answers(gateway):
    waiting = in_background(gateway.call, "act", {"what": "held"}, wait=20)
    wait_until(lambda: gateway.admin.get("/api/approvals"))
    gateway.answer("approve")
    assert waiting().status == 200


def test_a_denial_reaches_the_agent_with_its_reason_and_nothing_runs(gateway, api):
    waiting = in_background(gateway.call, "act", {"what": "denied"}, wait=20)
    wait_until(lambda: gateway.admin.get("/api/approvals"))
    gateway.answer("deny", reason="not today")
    reply = waiting()
    assert (reply.status, reply.json["error"]["code"]) == (403, "APPROVAL_DENIED")
    assert reply.json["error"]["message"].splitlines() == ["Denied by user", "Reason: not today"]
    assert api.requests == []


def test_a_denied_tool_answers_denied_by_policy_and_is_recorded(gateway, api):
    reply = gateway.call("never", {"what": "x"})
    assert (reply.status, reply.json["error"]["code"], reply.json["error"]["message"]) == (
        403,
        "FORBIDDEN",
        "Denied by policy",
    )
    assert api.requests == []
    assert gateway.story(reply.headers["agent-gate-call"]) == ["refused"]


def test_a_tool_that_is_denied_altogether_is_not_listed(gateway):
    names = [tool["name"] for tool in gateway.request("GET", "/api/tools").json["tools"]]
    assert "get_state" in names
    assert "never" not in names
    assert "/api/tools/never" not in gateway.request("GET", "/openapi.json").json["paths"]


def test_one_tool_is_shown_with_its_schema_and_its_traits(gateway):
    found = gateway.request("GET", "/api/tools/get_state").json
    assert found["input_schema"]["required"] == ["entity_id"]
    assert found["traits"]["read_only"] is True
    assert gateway.request("GET", "/api/tools/act").json["traits"]["read_only"] is False


def test_the_record_names_the_arguments_of_an_unknown_tool_and_none_of_their_values(gateway):
    reply = gateway.call("open_the_gate", {"when": "s3cret", "a, b": 1})
    told = gateway.admin.get(f"/api/calls/{reply.headers['agent-gate-call']}/timeline")
    assert told["signature"] == "open_the_gate(a%2C b, when)"
    assert "s3cret" not in str(told)


def test_unknown_and_out_of_sight_answer_the_same(gateway):
    narrow = "token-of-the-narrow-agent-in-tests"
    hidden = gateway.call("get_state", {"entity_id": "a"}, token=narrow)
    unknown = gateway.call("get_stata", {"entity_id": "a"}, token=narrow)
    assert hidden.status == unknown.status == 404
    assert hidden.body.replace(b"get_state", b"X") == unknown.body.replace(b"get_stata", b"X")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "Missing required argument: entity_id"),
        ({"entity_id": "UPPER"}, "Invalid value for entity_id"),
        ({"entity_id": "light.a\n"}, "Argument 'entity_id' contains forbidden characters"),
        ({"entity_id": "a,b"}, "Argument 'entity_id' contains forbidden characters"),
        ({"entity_id": ["light.x", "switch.boiler"]}, "Invalid value for entity_id"),
        ({"entity_id": {"k": "v"}}, "Invalid value for entity_id"),
        ({"entity_id": "a", "area_id": "everything"}, "Unknown argument: area_id"),
    ],
)
def test_bad_arguments_get_a_clear_error_and_reach_nothing(gateway, api, arguments, message):
    reply = gateway.call("get_state", arguments)
    assert (reply.status, reply.json["error"]["message"].partition("\n")[0]) == (400, message)
    assert api.requests == []
    assert gateway.story(reply.headers["agent-gate-call"]) == ["refused"]


@pytest.mark.parametrize(
    "body",
    [
        b"[1]",
        b'"x"',
        b"{",
        b"[" * 100_000,
        b'{"entity_id":"a","entity_id":"b"}',
        b'{"entity_id":NaN}',
        b'{"entity_id":"\\ud800"}',
        b"\xff\xfe",
        b"null",
    ],
)
def test_hostile_json_gets_an_error_and_the_next_call_is_served(gateway, api, body):
    reply = gateway.request("POST", "/api/tools/get_state", body)
    assert reply.status == 400
    assert api.requests == []
    assert gateway.call("get_state", {"entity_id": "a"}).status == 200


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("../../admin", None),
        ("..", None),
        (".", None),
        ("", None),
        ("a/../b", None),
        ("a\\..", None),
        ("./a", None),
        ("a/b", "/base/open/a%2Fb"),
        ("..a/b..", "/base/open/..a%2Fb.."),
        ("a?x=1#f", None),
        ("%2e%2e", None),
        ("%41", "/base/open/%2541"),
        ("ä ö", "/base/open/%C3%A4%20%C3%B6"),
    ],
)
def test_a_path_argument_cannot_leave_its_segment(gateway, api, value, sent):
    reply = gateway.call("open_path", {"id": value})
    assert reply.status == (200 if sent else 400)
    assert [request["path"] for request in api.requests] == ([sent] if sent else [])


def test_a_step_up_in_the_query_of_a_path_is_only_a_value(gateway, api):
    assert gateway.call("own_words", {"id": "a/../b"}).status == 200
    assert api.requests[0]["path"] == "/base/own?kind=x&id=a%2F..%2Fb"


def test_the_services_mapped_error_reaches_the_agent(gateway, api):
    api.replies["/base/states/gone"] = (404, {}, b'{"message":"x"}')
    reply = gateway.call("get_state", {"entity_id": "gone"})
    assert (reply.status, reply.json["error"]["message"]) == (502, "Entity not found")
    api.replies["/base/states/tea"] = (418, {}, b"short \x1b[31mand stout secret-credential-of-the-service")
    message = gateway.call("get_state", {"entity_id": "tea"}).json["error"]["message"]
    assert message == "Teapot 418: short [31mand stout •••"


@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "body"),
    [
        ("form", {"a": "x &=ü", "many": ["p", 2]}, FORM, b"a=x%20%26%3D%C3%BC&many=p&many=2"),
        ("shaped_form", {"a": "x"}, FORM, b"x=x&z=1"),
        ("note", {"words": "a, (b)\nü"}, "text/plain; charset=utf-8", "a, (b)\nü 0".encode()),
        ("note", {}, "text/plain; charset=utf-8", b""),
    ],
)
def test_a_body_is_sent_as_what_its_file_says_it_is(gateway, api, tool, arguments, kind, body):
    assert gateway.call(tool, arguments).status == 200
    [request] = api.requests
    assert (request["headers"]["content-type"], request["body"]) == (kind, body)


@pytest.mark.parametrize(
    ("headers", "body", "text"),
    [
        ({"Content-Type": "text/html"}, "<p>grün</p>".encode(), "<p>grün</p>"),
        ({"Content-Type": 'text/plain; charset="ISO-8859-1"'}, "grün".encode("latin-1"), "grün"),
        ({"Content-Type": "text/plain; charset=base64"}, b"plain", "plain"),
        ({"Content-Type": "text/plain; charset=undefined"}, b"\xff plain", "\ufffd plain"),
        ({}, b"", ""),
    ],
)
def test_an_answer_that_is_said_to_be_text_is_taken_as_it_is(gateway, api, headers, body, text):
    api.replies["/base/page"] = (200, headers, body)
    assert gateway.call("page").json["data"] == {"said": text}
    assert api.requests[0]["headers"]["accept"] == "*/*"


@pytest.mark.parametrize(
    ("said", "part"),
    [
        ("image/png", {"type": "image", "data": "/wA=", "mimeType": "image/png"}),
        ("audio/ogg", {"type": "audio", "data": "/wA=", "mimeType": "audio/ogg"}),
        (
            "application/pdf; x=y",
            {
                "type": "resource",
                "resource": {"uri": "file:///picture", "mimeType": "application/pdf", "blob": "/wA="},
            },
        ),
    ],
)
def test_a_file_comes_as_content_that_clients_show(gateway, api, said, part):
    api.replies["/base/picture"] = (200, {"Content-Type": said}, b"\xff\x00")
    answer = gateway.call("picture").json
    assert answer["data"] == f"{part.get('mimeType', 'application/pdf')}, 2 bytes"
    assert answer["content"][1] == part


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (
            (400, {}, b'{"message": "no such room"}'),
            'home answered with HTTP 400: {"message": "no such room"}',
        ),
        ((409, {"Content-Type": "text/plain"}, b"busy\x1b\n"), "home answered with HTTP 409: busy"),
        ((422, {}, b"secret-credential-of-the-service" * 2), "home answered with HTTP 422: ••••••"),
        ((400, {"Content-Type": "text/html"}, b"<html>"), "home answered with HTTP 400"),
        ((404, {}, b"{}\n"), "Entity not found"),
        ((410, {}, b"{}\n"), "home answered with HTTP 410"),
        ((500, {}, b'{"trace": "..."}'), "home answered with HTTP 500"),
    ],
)
def test_what_a_service_says_is_wrong_with_a_request_reaches_its_agent(gateway, api, reply, message):
    api.replies["/base/page"] = reply
    assert gateway.call("page").json["error"]["message"] == message


@pytest.mark.parametrize(
    ("reply", "status", "expected"),
    [
        ((200, {}, b"<html>"), 502, "Expected JSON response"),
        ((204, {}, b""), 200, None),
        ((302, {"Location": "http://127.0.0.1:1/"}, b""), 502, "redirect"),
        ((500, {}, b"stack trace of the service"), 502, "home answered with HTTP 500"),
    ],
)
def test_answers_that_are_not_json_are_errors_and_no_content_is_an_empty_result(
    gateway, api, reply, status, expected
):
    api.replies["/base/states/odd"] = reply
    said = gateway.call("get_state", {"entity_id": "odd"})
    assert said.status == status
    if expected is None:
        assert said.json["data"] is None
    else:
        assert expected in said.json["error"]["message"]
        assert "stack trace" not in said.json["error"]["message"]


def test_a_service_that_cannot_be_reached_says_so_and_that_nothing_was_sent(gateway):
    reply = gateway.call("unreachable")
    assert (reply.status, reply.json["error"]["code"], reply.json["error"]["retryable"]) == (
        503,
        "DEPENDENCY_UNAVAILABLE",
        True,
    )
    assert "Nothing was sent" in reply.json["error"]["message"]


def test_identical_pending_asks_are_one_question_and_one_execution(gateway, api):
    answers = [in_background(gateway.call, "act", {"what": "same"}, wait=0) for _ in range(5)]
    [call] = {answer().json["call"] for answer in answers}
    gateway.answer("approve")
    assert gateway.request("GET", f"/api/calls/{call}?wait=10").status == 200
    assert len(api.requests) == 1


def test_one_agent_cannot_read_or_withdraw_anothers_call(gateway):
    call = gateway.call("act", {"what": "mine"}, wait=0).json["call"]
    foreign = gateway.request("GET", f"/api/calls/{call}", token=OTHER_TOKEN)
    unknown = gateway.request("GET", f"/api/calls/{'0' * 32}", token=OTHER_TOKEN)
    assert (foreign.status, foreign.body) == (unknown.status, unknown.body)
    assert gateway.request("DELETE", f"/api/calls/{call}", token=OTHER_TOKEN).status == 404
    assert gateway.request("DELETE", f"/api/calls/{call}").status == 204
    assert gateway.story(call) == ["pending", "withdrawn"]


def test_an_agents_token_opens_no_approval_route(gateway):
    approval = gateway.call("act", {"what": "self"}, wait=0).json
    [waiting] = gateway.admin.get("/api/approvals")
    for path in (
        f"/api/approvals/{waiting['id']}",
        "/api/approvals",
        "/admin/approvals",
        f"/approvals/{waiting['id']}",
    ):
        for method in ("GET", "POST", "PUT"):
            assert gateway.request(method, path, {"verdict": "approve"}).status in (404, 405)
    assert gateway.story(approval["call"]) == ["pending"]


def test_a_second_late_or_wrong_answer_changes_nothing(gateway, api):
    call = gateway.call("act", {"what": "twice"}, wait=0).json["call"]
    first = gateway.answer("approve")
    gateway.request("GET", f"/api/calls/{call}?wait=10")

    with pytest.raises(InvalidArgs, match="already approved by operator"):
        gateway.admin.request("POST", f"/api/approvals/{first['id']}", {"verdict": "deny"})
    with pytest.raises(InvalidArgs):
        gateway.admin.request("POST", f"/api/approvals/{'f' * 32}", {"verdict": "approve"})
    assert len(api.requests) == 1


def test_two_people_racing_resolve_once(gateway, api):
    call = gateway.call("act", {"what": "race"}, wait=0).json["call"]
    [approval] = gateway.admin.get("/api/approvals")

    def answer(verdict):
        try:
            return gateway.admin.request("POST", f"/api/approvals/{approval['id']}", {"verdict": verdict})[
                "state"
            ]
        except GatewayError as error:
            return type(error).__name__

    answers = [in_background(answer, verdict) for verdict in ("approve", "deny") * 4]
    said = sorted(get() for get in answers)
    assert said.count("InvalidArgs") == 7
    gateway.request("GET", f"/api/calls/{call}?wait=10")
    assert len(api.requests) == (1 if "approved" in said else 0)


def test_a_grant_for_an_hour_lets_the_next_same_call_through_until_it_is_revoked(gateway, api):
    call = gateway.call("act", {"what": "granted"}, wait=0).json["call"]
    gateway.answer("approve", lifetime="hour")
    gateway.request("GET", f"/api/calls/{call}?wait=10")
    assert gateway.call("act", {"what": "granted"}, wait=0).status == 200
    assert gateway.call("act", {"what": "granted", "more": 1}, wait=0).status == 202
    [grant] = [g for g in gateway.admin.get("/api/grants") if g["signature"] == "act(granted)"]
    gateway.admin.request("DELETE", f"/api/grants/{grant['id']}")
    gateway.answer("deny")
    assert gateway.call("act", {"what": "granted"}, wait=0).status == 202


def test_an_idempotency_key_runs_once_and_other_arguments_are_refused(gateway, api):
    key = {"Idempotency-Key": "k-1"}
    first = gateway.call("get_state", {"entity_id": "idem"}, headers=key)
    again = gateway.call("get_state", {"entity_id": "idem"}, headers=key)
    assert first.json == again.json
    assert len(api.requests) == 1
    other = gateway.call("get_state", {"entity_id": "else"}, headers=key)
    assert (other.status, len(api.requests)) == (400, 1)


@contextmanager
def raw_call(gateway, entity, headers=b""):
    """A connection over which a call of `get_state` was just sent."""
    body = b'{"entity_id":"%b"}' % entity
    head = b"POST /api/tools/get_state HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer %b\r\n%b"
    address = urlsplit(gateway.url)
    with socket.create_connection((address.hostname, address.port), PATIENCE) as raw:
        raw.sendall(head % (TOKEN.encode(), headers) + b"content-length: %d\r\n\r\n%b" % (len(body), body))
        yield raw


def test_two_idempotency_keys_in_one_request_are_refused(gateway, api):
    headers = b"idempotency-key: k-a\r\nidempotency-key: k-b\r\nconnection: close\r\n"
    with raw_call(gateway, b"k", headers) as raw:
        reply = b"".join(iter(lambda: raw.recv(65536), b""))
    assert reply.startswith(b"HTTP/1.1 400 ")
    assert b"idempotency-key is given twice" in reply
    assert not api.requests


def test_the_result_of_a_call_whose_sender_hung_up_is_kept_for_it(gateway, api):
    go = threading.Event()

    def once_told(handler, body):
        assert go.wait(PATIENCE)

    api.replies["/base/states/away"] = once_told
    with raw_call(gateway, b"away"):
        wait_until(lambda: api.requests)
    assert gateway.request("GET", "/api/tools").status == 200
    go.set()
    [row] = gateway.admin.get("/api/calls?state=dispatching&text=away")["rows"]
    wait_until(lambda: gateway.story(row["call"])[-1] == "completed")
    kept = gateway.request("GET", f"/api/calls/{row['call']}").json
    assert kept["data"]["path"] == "/base/states/away"
    here = gateway.call("get_state", {"entity_id": "here"}).json["call"]
    assert gateway.request("GET", f"/api/calls/{here}").json["error"]["code"] == "VIEW_FAILED"


def test_calls_over_the_limit_are_refused_with_when_to_come_back(gateway):
    slow = "token-of-the-slow-agent-in-tests"
    replies = [gateway.call("get_state", {"entity_id": "a"}, token=slow) for _ in range(3)]
    assert [reply.status for reply in replies] == [200, 200, 429]
    assert int(replies[2].headers["retry-after"]) >= 1
    assert replies[2].json["error"]["code"] == "RATE_LIMITED"


def test_looks_at_tools_and_results_have_a_limit_of_their_own(gateway):
    slow = "token-of-the-slow-agent-in-tests"
    looks = [
        ("tool_browse", {"path": "/"}, 200),
        ("tool_hydrate", {"tool_id": "get_state"}, 200),
        ("tool_view", {"handle": "result:" + "0" * 32, "selector": {"type": "head"}}, 404),
    ]
    for name, arguments, status in looks * 6 + looks[:2]:
        assert gateway.call(name, arguments, token=slow).status == status
    for name, arguments, _ in looks:
        reply = gateway.call(name, arguments, token=slow)
        assert (reply.status, reply.json["error"]["code"]) == (429, "RATE_LIMITED")
        assert int(reply.headers["retry-after"]) >= 1
    assert gateway.call("tool_browse", {"path": "/"}).status == 200


def test_at_most_ten_questions_of_one_agent_wait_at_a_time(gateway):
    replies = [
        gateway.call("act", {"what": f"flood{n}"}, wait=0, token=OTHER_TOKEN).status for n in range(12)
    ]
    assert replies.count(202) == 10
    assert replies.count(429) == 2


@pytest.mark.parametrize("token", [None, "wrong", ""])
def test_without_a_right_token_nothing_is_served(gateway, token):
    reply = gateway.request("GET", "/api/tools", token=token)
    assert reply.status in (401, 429)
    assert "www-authenticate" in reply.headers or reply.status == 429


def test_a_foreign_host_or_origin_is_refused_on_every_path(gateway):
    for path in ("/health", "/api/tools", "/mcp", "/runtime/tools.ts"):
        assert gateway.request("GET", path, headers={"Host": "evil.example"}).status == 403
        assert gateway.request("GET", path, headers={"Origin": "https://evil.example"}).status == 403
        assert gateway.request("GET", path, headers={"Origin": "null"}).status == 403


def test_health_and_readiness_need_no_token_and_status_does(gateway):
    assert gateway.request("GET", "/health", token=None).json["status"] == "ok"
    assert gateway.request("GET", "/ready", token=None).status == 200
    assert gateway.request("GET", "/status", token=None).status == 401
    seen = gateway.request("GET", "/status", token="token-of-the-narrow-agent-in-tests").json["sources"]
    assert [source["source"] for source in seen] == ["elsewhere"]


def test_the_record_verifies_after_all_this(gateway):
    report = gateway.admin.get("/api/audit/verify")
    assert report["ok"]
    assert report["rows"] > 30


@pytest.mark.parametrize(
    "body",
    [
        {"tool": "get_state", "arguments": {"entity_id": "sensor.a"}},
        {"server": "home", "tool": "get_state", "args": {"entity_id": "sensor.a"}},
        {"server": "2nd Home", "tool": "second", "args": {}},
        {"server": "n2nd_home", "tool": "second", "args": {}},
    ],
)
def test_a_script_calls_a_tool_by_its_name_or_by_the_key_of_its_server(gateway, body):
    answer = gateway.request("POST", "/api/call", body)
    assert (answer.status, answer.json["status"]) == (200, "executed")


@pytest.mark.parametrize(
    "body", [{}, {"tool": 1}, {"tool": "find", "args": []}, {"server": 1, "tool": "find"}]
)
def test_a_body_that_names_no_tool_is_refused(gateway, body):
    assert gateway.request("POST", "/api/call", body).status == 400


@pytest.mark.parametrize(("size", "status"), [(900_000, 400), (1_100_000, 413)])
def test_a_body_is_as_large_as_the_configuration_says(gateway, size, status):
    assert gateway.call("get_state", {"entity_id": "A" * size}).status == status
