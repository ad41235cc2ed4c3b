"""The push channel, through a push service over real HTTP, read by a browser's half of the protocol."""

import re
import subprocess
import time

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st
from tests.approval.conftest import close_all, files, light, outcome
from tests.approval.push_service import Subscription, sender_of, unb64
from tests.gateway import Api, running
from tests.waiting import wait_until

from agent_gate.approval.channels.push import PushMessage, PushSettings, fit
from agent_gate.errors import GatewayError, InvalidArgs
from agent_gate.net.webpush import MOST_PLAIN, seal_message, text_of

PUSH = 'channels: [{{type: push, contact: "mailto:ann@home.example", services: ["{url}"]}}]'
ASK_ANN = "rules: [{pattern: 'mail_send(*)', action: ask, approvers: [ann]}]\ndefaults: [{pattern: '*', action: ask}]\n"


@pytest.fixture(scope="module")
def shared(tmp_path_factory, api):
    service = Api()
    service.url = service.url.lower()
    folder = tmp_path_factory.mktemp("push")
    with running(folder, files(api, PUSH.format(url=service.url), ASK_ANN), "--insecure") as gate:
        yield gate, service
    service.close()


@pytest.fixture
def pushed(shared, api):
    gate, service = shared
    api.reset()
    service.replies["*"] = (201, {}, b"")
    yield gate, service
    close_all(gate)
    for device in gate.admin.get("/api/devices")["devices"]:
        gate.admin.request("DELETE", f"/api/devices/{device['id']}")
    service.reset()


def subscribe(gate, service, name="phone"):
    made = Subscription(service.url, name)
    device = gate.admin.request("POST", "/api/devices", made.body)
    return made, device


def test_a_message_is_sealed_as_in_the_example_of_the_standard():
    private = int.from_bytes(unb64("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"), "big")
    sealed = seal_message(
        b"When I grow up, I want to be a watermelon",
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "BTBZMqHH6r4Tts7J_aSIgg",
        sender=ec.derive_private_key(private, ec.SECP256R1()),
        salt=unb64("DGv6ra1nlYgDCS1FRnbzlw"),
    )
    assert text_of(sealed) == (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBr"
        "u3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )


def test_a_question_and_its_end_reach_a_device_and_nobody_in_between_can_read_them(pushed):
    gate, service = pushed
    browser, _ = subscribe(gate, service)
    call = light(gate).json["call"]
    asked = wait_until(lambda: browser.messages(service))[0]
    approval = gate.admin.get("/api/approvals")[0]["id"]
    assert asked["title"] == "pi asks: Call light.turn_on on light.bedroom?"
    assert asked["tag"] == approval
    assert asked["open"] == f"/#/approvals/{approval}"
    assert not any(b"bedroom" in request["body"] for request in service.requests)
    gate.admin.request("POST", f"/api/approvals/{approval}", {"verdict": "approve"})
    ended = wait_until(lambda: browser.messages(service)[1:])[0]
    assert ended["title"].startswith("Approved once by operator")
    assert (ended["tag"], ended["quiet"]) == (approval, True)
    assert outcome(gate, call).status == 200


def test_a_push_service_sees_who_sends_how_long_it_lasts_and_how_urgent_it_is(pushed):
    gate, service = pushed
    subscribe(gate, service)
    public = gate.admin.get("/api/devices")["key"]
    light(gate)
    request = wait_until(lambda: service.requests)[0]
    claims = sender_of(request, public)
    assert claims["aud"] == service.url
    assert claims["sub"] == "mailto:ann@home.example"
    assert time.time() < claims["exp"] <= time.time() + 86_400
    assert request["headers"]["content-encoding"] == "aes128gcm"
    assert 500 < int(request["headers"]["ttl"]) <= 600
    assert request["headers"]["urgency"] == "high"


def test_a_service_that_fails_is_tried_again_without_telling_the_others_twice(pushed):
    gate, service = pushed
    well, _ = subscribe(gate, service, "tablet")
    ill, _ = subscribe(gate, service, "phone")
    failing = [(503, {"retry-after": "0"}, b""), (201, {}, b"")]
    service.replies[ill.path] = lambda *_: failing.pop(0)
    light(gate)
    wait_until(lambda: len(ill.messages(service)) == 2)
    assert len(well.messages(service)) == 1


def test_a_device_whose_subscription_is_gone_is_forgotten(pushed):
    gate, service = pushed
    gone, _ = subscribe(gate, service)
    service.replies[gone.path] = (410, {}, b"")
    light(gate)
    assert wait_until(lambda: gate.admin.get("/api/devices")["devices"] == [])


def test_only_the_devices_of_those_who_may_answer_are_told(pushed):
    gate, service = pushed
    operators, _ = subscribe(gate, service)
    gate.call("mail_send", {"to": "bob", "text": "for ann alone"}, wait=0)
    light(gate)
    wait_until(lambda: operators.messages(service))
    assert ["mail" in message["title"] for message in operators.messages(service)] == [False]


def test_a_device_is_sent_a_trial_message_and_told_no_more_when_it_is_taken_away(pushed):
    gate, service = pushed
    browser, device = subscribe(gate, service)
    assert gate.admin.request("POST", f"/api/devices/{device['id']}/try") == {"taken": True}
    assert browser.messages(service)[0]["title"] == "agent-gate reaches you here"
    gate.admin.request("DELETE", f"/api/devices/{device['id']}")
    with pytest.raises(GatewayError, match="taken away"):
        gate.admin.request("POST", f"/api/devices/{device['id']}/try")


def test_the_same_browser_again_is_one_device(pushed):
    gate, service = pushed
    browser, device = subscribe(gate, service)
    again = gate.admin.request("POST", "/api/devices", browser.body)
    assert again["id"] == device["id"]
    assert len(gate.admin.get("/api/devices")["devices"]) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"address": "https://push.evil.example/x"}, "not among the push services"),
        ({"address": "https://127.0.0.1/admin"}, "not among the push services"),
        ({"address": ""}, "Send the browser's subscription"),
        ({"p256dh": "AAAA"}, "p256dh must be 65 bytes"),
        ({"p256dh": text_of(b"\4" + b"\1" * 64)}, "no point of the curve"),
        ({"auth": "x"}, "auth must be 16 bytes"),
        ({"auth": 7}, "each a text"),
    ],
    ids=["stranger", "private", "empty", "short-key", "no-point", "short-secret", "number"],
)
def test_a_subscription_that_cannot_be_is_refused(pushed, change, said):
    gate, service = pushed
    with pytest.raises(GatewayError, match=said):
        gate.admin.request("POST", "/api/devices", Subscription(service.url, "phone").body | change)


def test_what_would_let_others_push_to_a_device_is_sealed_in_the_store(pushed):
    gate, service = pushed
    browser, _ = subscribe(gate, service, "canary-device-address")
    folder = gate.folder / "data"
    found = subprocess.run(
        ["grep", "-rlaE", f"canary-device-address|{browser.body['auth']}", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == ""


def test_without_the_channel_nothing_is_offered_and_the_way_to_switch_it_on_is_said(start):
    gate = start()
    assert gate.admin.get("/api/devices") == {"key": "", "devices": []}
    with pytest.raises(GatewayError, match=re.escape("channels: [{type: push}]")):
        gate.admin.request("POST", "/api/devices", Subscription("https://x.example", "a").body)


@pytest.mark.parametrize(
    ("address", "served"),
    [
        ("https://fcm.googleapis.com/fcm/send/abc", True),
        ("https://updates.push.services.mozilla.com/wpush/v2/x", True),
        ("https://web.push.apple.com/Q", True),
        ("http://fcm.googleapis.com/fcm/send/abc", False),
        ("https://fcm.googleapis.com:8443/x", False),
        ("https://fcm.googleapis.com.evil.example/x", False),
        ("https://evilpush.apple.com/x", False),
        ("https://fcm.googleapis.com@evil.example/x", False),
        ("https://[::1]/x", False),
        ("https://[bad/x", False),
    ],
)
def test_messages_go_to_the_push_services_of_browsers_and_to_no_other_address(address, served):
    assert PushSettings().serves(address) is served


@given(st.text(max_size=4000), st.text(max_size=120))
def test_every_message_fits_into_what_push_services_take(body, title):
    message = PushMessage(title=title, body=body, tag="t", open="/#/now")
    fitted = fit(message)
    assert len(fitted) <= MOST_PLAIN
    assert body.startswith(msgspec.json.decode(fitted)["body"].removesuffix("…")) or body == "…"


def test_a_key_that_is_no_base64_is_refused_with_its_name():
    with pytest.raises(InvalidArgs, match="p256dh must be 65 bytes"):
        seal_message(b"", "ü", "x")
