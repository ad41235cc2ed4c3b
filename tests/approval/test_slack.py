"""Slack: the sentence first, and buttons that answer without a browser, signed by Slack."""

import hmac
import http.client
import json
import sqlite3
import time
from contextlib import closing
from urllib.parse import urlencode

import pytest
from tests.approval.conftest import light
from tests.waiting import PATIENCE, wait_until

from agent_gate.cli.commands.check import check

SECRET = "slack-signing-secret-canary"


@pytest.fixture
def slack(start, receiver):
    """A gateway with Slack's buttons, and what it posts to Slack."""

    def begin(more=""):
        gate = start(
            f'channels: [{{type: webhook, name: team, url: "{receiver.url}/services/T1", format: slack, person: ann,'
            f" signing_secret: {SECRET}}}]{more}"
        )
        call = light(gate).json["call"]
        message = json.loads(wait_until(lambda: list(receiver.requests))[0]["body"]) | {"call": call}
        receiver.requests.clear()
        return gate, message

    return begin


def press(gate, value, *, secret=SECRET, at=None, name="team", url="", body=None, **headers):
    payload = {"type": "block_actions", "user": {"id": "U1", "username": "anna"}, "response_url": url}
    payload["actions"] = [{"action_id": "once", "value": value}]
    data = body if body is not None else urlencode({"payload": json.dumps(payload)})
    stamp = str(int(time.time()) if at is None else at)
    made = hmac.new(secret.encode(), f"v0:{stamp}:{data}".encode(), "sha256").hexdigest()
    sent = {
        "Content-Type": "application/x-www-form-urlencoded",
        "X-Slack-Request-Timestamp": stamp,
        "X-Slack-Signature": f"v0={made}",
    }
    connection = http.client.HTTPConnection(gate.announced["admin"].removeprefix("http://"), timeout=PATIENCE)
    connection.request("POST", f"/slack/{name}", data, sent | headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status


def deliveries(gate):
    """How the messages stand, as the gateway wrote it down."""
    with closing(sqlite3.connect(gate.folder / "data" / "gate.db")) as store:
        return [state for (state,) in store.execute("SELECT state FROM deliveries")]


def buttons(message):
    return {element["action_id"]: element for element in message["blocks"][1]["elements"]}


def test_the_first_line_is_the_sentence_and_nothing_in_it_is_markup(slack):
    _, message = slack()
    assert message["text"].startswith("pi asks: ")
    assert message["mrkdwn"] is False
    assert message["blocks"][0]["text"]["text"].splitlines()[0].startswith("pi asks: ")
    assert [element["text"]["text"] for element in message["blocks"][1]["elements"]] == [
        "Once", "One hour", "Always for this", "Deny",
    ]  # fmt: skip
    assert all("url" not in element for element in buttons(message).values())


@pytest.mark.parametrize(
    ("action", "state", "became"),
    [("once", "completed", "It ran."), ("deny", "denied", "It does not run.")],
)
def test_a_button_answers_without_a_browser_and_the_message_says_what_became_of_it(
    slack, receiver, action, state, became
):
    gate, message = slack()
    assert press(gate, buttons(message)[action]["value"], url=f"{receiver.url}/actions/1") == 200
    told = json.loads(
        wait_until(lambda: [r for r in receiver.requests if r["path"] == "/actions/1"])[0]["body"]
    )
    assert told["replace_original"] is True
    assert "by ann on team" in told["text"]
    assert "pressed in Slack by anna" in told["text"]
    assert told["text"].splitlines()[-1] == became
    assert gate.admin.get("/api/approvals") == []
    wait_until(lambda: gate.story(message["call"])[-1] == state)


def test_a_question_answered_in_slack_ends_in_its_own_message_alone(slack, receiver):
    gate, message = slack()
    press(gate, buttons(message)["deny"]["value"], url=f"{receiver.url}/actions/1")
    wait_until(lambda: deliveries(gate) == ["closed"])
    assert [request["path"] for request in receiver.requests] == ["/actions/1"]


def test_a_question_answered_elsewhere_ends_in_slack_too(slack, receiver):
    gate, _ = slack()
    gate.admin.request(
        "POST", f"/api/approvals/{gate.admin.get('/api/approvals')[0]['id']}", {"verdict": "deny"}
    )
    wait_until(lambda: deliveries(gate) == ["closed"])
    assert [request["path"] for request in receiver.requests] == ["/services/T1"]


def test_a_person_with_a_passphrase_answers_on_the_page_and_not_in_slack(slack, receiver):
    gate, message = slack("\napprovers: {passphrase: correct-horse-battery}")
    assert press(gate, buttons(message)["once"]["value"], url=f"{receiver.url}/actions/1") == 200
    told = json.loads(wait_until(lambda: list(receiver.requests))[0]["body"])
    assert (told["replace_original"], "Answer on the operator's page" in told["text"]) == (False, True)
    assert len(gate.admin.get("/api/approvals")) == 1


def test_a_button_pressed_for_somebody_who_may_only_look_answers_nothing(slack, receiver):
    gate, message = slack()
    config = gate.folder / "config.yaml"
    config.write_text(config.read_text().replace("ann: {telegram: 11}", "ann: {telegram: 11, role: viewer}"))
    gate.admin.request("POST", "/api/reload", {})
    for action in ("once", "deny"):
        receiver.requests.clear()
        assert press(gate, buttons(message)[action]["value"], url=f"{receiver.url}/actions/1") == 200
        told = json.loads(wait_until(lambda: list(receiver.requests))[0]["body"])
        assert (told["replace_original"], "ann may not answer questions" in told["text"]) == (False, True)
    assert len(gate.admin.get("/api/approvals")) == 1


def test_what_slack_did_not_sign_just_now_answers_nothing(slack):
    gate, message = slack()
    value = buttons(message)["once"]["value"]
    assert press(gate, value, secret="another") == 401
    assert press(gate, value, at=int(time.time()) - 3600) == 401
    assert press(gate, value, at="x" * 9) == 401
    assert press(gate, value, name="elsewhere") == 401
    assert press(gate, value, **{"X-Slack-Signature": "v0=é"}) == 401
    assert press(gate, value, **{"Content-Type": "application/json"}) == 415
    assert press(gate, value, body="payload=nonsense") == 400
    assert len(gate.admin.get("/api/approvals")) == 1


def test_a_value_that_this_gateway_did_not_seal_answers_nothing(slack, receiver):
    gate, message = slack()
    value = buttons(message)["once"]["value"]
    forged = value[:-1] + ("A" if value[-1] != "A" else "B")
    assert press(gate, forged, url=f"{receiver.url}/actions/1") == 200
    told = json.loads(wait_until(lambda: list(receiver.requests))[0]["body"])
    assert (told["replace_original"], "not made by this gateway" in told["text"]) == (False, True)
    assert len(gate.admin.get("/api/approvals")) == 1


def test_a_reply_goes_nowhere_but_to_where_the_channel_posts(slack, api):
    gate, message = slack()
    assert press(gate, buttons(message)["deny"]["value"], url=f"{api.url}/stolen") == 200
    assert gate.admin.get("/api/approvals") == []
    assert [request["path"] for request in api.requests if "stolen" in request["path"]] == []
    assert "not where the channel posts" in gate.stderr


def test_without_an_address_for_other_devices_a_message_says_what_to_set(start, receiver):
    gate = start(
        f'channels: [{{type: webhook, name: n, url: "{receiver.url}/topic", format: ntfy}},'
        f' {{type: webhook, name: s, url: "{receiver.url}/slack", format: slack}},'
        f' {{type: webhook, name: p, url: "{receiver.url}/pressed", format: slack, signing_secret: abc}}]'
    )
    light(gate)
    wait_until(lambda: len(receiver.requests) == 3)
    by_path = {r["path"]: json.loads(r["body"]) for r in receiver.requests}
    assert by_path["/"]["actions"] == []
    assert "set admin.public_url" in by_path["/"]["message"]
    assert len(by_path["/slack"]["blocks"]) == 1
    warnings = gate.admin.get("/api/status")["warnings"]
    assert [text for text in warnings if "sends no links" in text and "admin.public_url" in text]
    _, said = check(gate.folder / "config.yaml", None)
    assert [text for text in said if "pressed in p to /slack/p" in text and "admin.public_url" in text]
    assert [text for text in said if "sends no links" in text and "admin.public_url" in text]
    assert "channels[0]: n sends no links" in gate.stderr
    made = gate.admin.request("POST", "/api/logins", {})
    assert "admin.public_url" in made["advice"]


def test_with_an_address_for_other_devices_every_link_carries_it(start, receiver):
    gate = start(
        f'channels: [{{type: webhook, name: n, url: "{receiver.url}/topic", format: ntfy}}]',
        admin="public_url: https://gate.example.ts.net/",
    )
    light(gate)
    [message] = wait_until(lambda: list(receiver.requests))
    links = [action["url"] for action in json.loads(message["body"])["actions"]]
    assert len(links) == 3
    assert all(link.startswith("https://gate.example.ts.net/answer/") for link in links)
    made = gate.admin.request("POST", "/api/logins", {})
    assert (made["url"].startswith("https://gate.example.ts.net/login#"), "advice" in made) == (True, False)
    assert gate.admin.get("/api/status")["warnings"] == []
    connection = http.client.HTTPConnection(gate.announced["admin"].removeprefix("http://"), timeout=PATIENCE)
    connection.request(
        "GET", links[0].removeprefix("https://gate.example.ts.net"), headers={"Host": "gate.example.ts.net"}
    )
    assert connection.getresponse().status == 200
    connection.close()
