"""The listener of paired components: events by policy, leases, a CLI that operates and never pairs."""

import json
import os
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.client import IncompleteRead
from pathlib import Path
from typing import Any

import pytest
from tests import nursery
from tests.gateway import COMMAND, Gateway
from tests.remote.components import Joined, joined
from tests.remote.paired import command, gating
from tests.waiting import PATIENCE, wait_until

from agent_gate.errors import Forbidden, GatewayError, InvalidArgs, PairingRequired, Unreachable

MORE = """
peers:
  port: 0
  policy:
    desk: {allow: ['events.subscribe:tool.call.*', 'events.subscribe:pairing.*', 'events.subscribe:approval.*']}
    ear: {deny: ['events.publish:channel.message.deleted']}
services: {home: {url: 'http://127.0.0.1:9', tools: {say: {request: {method: GET, path: /}}}}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("components")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with gating(tmp_path_factory.mktemp("gate"), more=MORE) as running:
        yield running


@pytest.fixture(scope="module")
def desk(gateway: Gateway, folder: Path) -> Joined:
    return joined(gateway, folder, "subscriber", "desk")


@pytest.fixture(scope="module")
def ear(gateway: Gateway, folder: Path) -> Joined:
    return joined(gateway, folder, "listener", "ear")


@pytest.fixture(scope="module")
def laptop(gateway: Gateway, folder: Path) -> Joined:
    return joined(gateway, folder, "cli", "gin-laptop")


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["event_type"] for event in events]


def test_what_a_listener_publishes_reaches_a_subscriber_in_its_order(desk: Joined, ear: Joined) -> None:
    sent = [ear.event("channel.message.received", payload={"text": str(number)}) for number in range(5)]
    for event in sent:
        assert ear.publish(event) == {"accepted": True, "event_id": event["event_id"], "duplicate": False}
    assert ear.publish(sent[2])["duplicate"] is True
    heard = [event for event in desk.hears() if event["event_type"] == "channel.message.received"]
    assert [event["payload"]["text"] for event in heard][-5:] == ["0", "1", "2", "3", "4"]
    assert heard[-1]["source"]["peer_id"] == "ear"
    assert heard[-1]["source"]["mtls_cert_fingerprint"].startswith("sha256:")


def test_p26_whoever_may_not_publish_is_forbidden(desk: Joined, ear: Joined) -> None:
    with pytest.raises(Forbidden, match="subscriber"):
        desk.publish(desk.event("tool.call.completed"))
    with pytest.raises(Forbidden, match="denied"):
        ear.publish(ear.event("channel.message.deleted"))
    with pytest.raises(Forbidden, match="as itself"):
        ear.publish(
            ear.event(
                "channel.message.received", source={"component_type": "listener", "component_id": "desk"}
            )
        )
    with pytest.raises(Forbidden, match="tenant"):
        ear.publish(ear.event("channel.message.received", tenant_id="somebody else"))
    with pytest.raises(InvalidArgs):
        ear.publish(ear.event("channel.message.received", note="unknown"))


def test_calls_of_tools_and_pairings_are_told_where_the_policy_names_them(
    gateway: Gateway, desk: Joined, laptop: Joined
) -> None:
    gateway.call("say", {})
    wait_until(lambda: "tool.call.failed" in kinds(desk.hears()))
    heard = desk.hears()
    mine = [event for event in heard if event["event_type"].startswith("tool.call.")]
    assert kinds(mine)[-2:] == ["tool.call.requested", "tool.call.failed"]
    assert mine[-2]["payload"]["tool_name"] == "say"
    assert mine[-1]["payload"]["error"]["code"]
    assert mine[-2]["routing"] == mine[-1]["routing"]
    assert {"pairing.started", "pairing.completed"} <= set(kinds(heard))
    assert laptop.name in json.dumps([event for event in heard if event["event_type"] == "pairing.completed"])


def test_a_subscriber_goes_on_after_the_last_event_it_heard(desk: Joined, ear: Joined) -> None:
    connection = desk.client.connection(10)
    connection.request("GET", "/v1/events?once=1&after=0.0")
    text = connection.getresponse().read().decode()
    connection.close()
    cursors = [line[4:] for line in text.splitlines() if line.startswith("id: ")]
    ear.publish(ear.event("channel.message.received", payload={"text": "while it was away"}))
    heard = desk.hears(after=cursors[-1])
    assert [event["payload"]["text"] for event in heard] == ["while it was away"]
    half = desk.hears(after=cursors[len(cursors) // 2])
    assert half == desk.hears()[-len(half) :]
    with pytest.raises(InvalidArgs):
        desk.hears(after="nonsense")


def test_events_can_be_followed_on_the_terminal(gateway: Gateway, ear: Joined) -> None:
    socket = gateway.announced["socket"]
    following = nursery.ForkedCommand(
        [COMMAND, "events", "--follow", "--json", "--admin-socket", socket],
        stdout=subprocess.PIPE,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": "/tmp"},
    )
    assert following.stdout is not None
    try:
        heard: list[str] = []
        thread = threading.Thread(target=lambda: heard.append(following.stdout.readline()), daemon=True)  # type: ignore[union-attr]
        thread.start()

        def publish_until_heard() -> bool:
            ear.publish(ear.event("channel.message.edited"))
            thread.join(0.3)
            return bool(heard)

        wait_until(publish_until_heard)
    finally:
        following.kill()
        following.wait()
        following.stdout.close()
    so_far = command(gateway, "events")
    assert "channel.message.edited" in so_far.stdout
    assert "pairing.completed" in so_far.stdout


def test_a_lease_reduces_what_a_subscriber_hears(desk: Joined, ear: Joined) -> None:
    ear.publish(ear.event("channel.message.received", routing={"agent_id": "a", "session_id": "one"}))
    ear.publish(ear.event("channel.message.received", routing={"agent_id": "a", "session_id": "two"}))
    wish = {"capabilities": ["events.subscribe:channel.*"], "session_id": "two", "disconnect_bound": True}
    lease = desk.client.request("POST", "/v1/leases", wish)
    heard = desk.hears(more=f"&lease={lease['lease_id']}")
    assert {event["routing"]["session_id"] for event in heard} == {"two"}
    with pytest.raises(Forbidden, match="ended"):
        desk.hears(more=f"&lease={lease['lease_id']}")
    other = desk.client.request("POST", "/v1/leases", {"capabilities": ["events.subscribe:cron.*"]})
    with pytest.raises(Forbidden):
        ear.client.request("DELETE", f"/v1/leases/{other['lease_id']}")
    desk.client.request("DELETE", f"/v1/leases/{other['lease_id']}")
    with pytest.raises(Forbidden, match="only reduce"):
        desk.client.request("POST", "/v1/leases", {"capabilities": ["events.publish:cron.*"]})


def test_p27_a_paired_cli_operates_the_gateway_and_can_never_pair(gateway: Gateway, laptop: Joined) -> None:
    shown = nursery.run(
        [COMMAND, "peers", "list", "--json", "--remote", str(laptop.state)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": "/tmp"},
    )
    assert shown.returncode == 0, shown.stderr
    assert {"gin-laptop"} <= {peer["name"] for peer in json.loads(shown.stdout)}
    assert laptop.client.request("POST", "/api/reload", {}) is not None
    wish = {"component_type": "tool_host", "component_id": "x", "endpoint": "wss://127.0.0.1:1"}
    for path in ("/v1/pairings", "/v1/pairings/ws", "/v1/identity", "/v1/peers/desk/rotate"):
        with pytest.raises(GatewayError, match="nothing here"):
            laptop.client.request("POST", path, wish)
    refused = gateway.admin.get("/api/calls?tool=peers:pair&caller=gin-laptop&by=call")["calls"]
    assert refused[0]["state"] == "refused"


def test_others_cannot_operate_the_gateway(desk: Joined, ear: Joined) -> None:
    for component in (desk, ear):
        with pytest.raises(Forbidden, match=r"control\."):
            component.client.get("/api/status")


def test_a_component_renews_its_certificate_by_dialling(gateway: Gateway, desk: Joined) -> None:
    from agent_gate.cli.remote import component_in, renew

    before = gateway.admin.get("/api/peers/desk")["certificate"]
    old = desk.client
    renew(component_in(desk.state))
    wait_until(lambda: gateway.admin.get("/api/peers/desk")["certificate"] != before)
    with pytest.raises((PairingRequired, Unreachable)):
        old.get("/v1/events?once=1")
    desk.client = type(desk.client)(desk.state)
    assert desk.hears() is not None


def test_p25_a_revocation_ends_a_stream_within_a_second(gateway: Gateway, folder: Path, ear: Joined) -> None:
    short = joined(gateway, folder, "subscriber", "short")
    connection = short.client.connection(10)
    connection.request("GET", "/v1/events")
    response = connection.getresponse()
    assert response.readline().startswith(b"id: ")
    gateway.admin.request("DELETE", "/api/peers/short")
    connection.sock.settimeout(1.0)
    with suppress(ConnectionError, ssl.SSLError, IncompleteRead):
        while response.readline():
            pass
    connection.close()
    with pytest.raises((PairingRequired, Unreachable)):
        short.hears()


def test_the_listener_speaks_tls_1_3_with_peers_alone(gateway: Gateway) -> None:
    import ssl

    port = int(gateway.announced["peers"].rpartition(":")[2])
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = context.maximum_version = version
        assert answer_of(port, context) == b""


def answer_of(port: int, context: ssl.SSLContext) -> bytes:
    """What somebody without a certificate is told."""
    with (
        suppress(ssl.SSLError, ConnectionError),
        socket.create_connection(("127.0.0.1", port), PATIENCE) as raw,
        context.wrap_socket(raw) as secured,
    ):
        secured.sendall(b"GET /v1/events HTTP/1.1\r\nhost: x\r\n\r\n")
        return secured.recv(100)
    return b""
