"""Jobs of the cron host fire events into the gateway: from a paired host over mTLS, from a local one over its socket."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.gateway import Gateway
from tests.remote.components import Joined
from tests.remote.paired import HostProcess, command, gating
from tests.waiting import wait_until

from agent_gate.cli.operator import AdminClient
from agent_gate.cli.remote import MutualConnection
from agent_gate.errors import Forbidden
from agent_gate.hosts.kept import HostFolder
from agent_gate.peers.belonging import Belonging

SPEC = "agent_gate.hosts.cron:host"


class PairedClient(AdminClient):
    """What a host could send beside what its SDK does."""

    def __init__(self, belonging: Belonging, url: str) -> None:
        super().__init__(Path())
        self._belonging, self._url = belonging, url

    def connection(self, timeout: float | None = 60) -> MutualConnection:
        return MutualConnection(self._belonging, self._url, timeout)


def heard(gateway: Gateway) -> list[dict[str, Any]]:
    events = gateway.admin.events("/api/events/published?once=1&after=0.0", endless=False)
    return [event for _kind, event in events if event["event_type"] in ("cron.triggered", "heartbeat.tick")]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("gate")
    more = f"peers: {{port: 0}}\nhosts: {{near: {{socket: {folder}/run/near.sock, publish: ['heartbeat.tick']}}}}\n"
    near = HostProcess(folder / "near", SPEC, "--socket", f"{folder}/run/near.sock")
    try:
        with gating(folder / "data", more=more) as running:
            yield running
    finally:
        near.stop()


def create(gateway: Gateway, namespace: str, **more: str) -> None:
    args = {"name": "beat", "schedule": "@every 1s", **more}
    wait_until(lambda: gateway.call(f"{namespace}__cron_create", args).status == 200)


def speaks_of_its_own_calls_only(gateway: Gateway, state: Path) -> None:
    """A tool host hears and tells what became of its calls, and of nobody else's."""
    membership = HostFolder(state).membership()
    assert membership is not None
    client = PairedClient(Belonging(membership), gateway.announced["peers"])
    events = [one for _kind, one in client.events("/v1/events?once=1&after=0.0", endless=False)]
    assert {one["event_type"] for one in events} == {"tool.call.requested"}
    assert {one["routing"]["target"] for one in events} == {"cron"}
    calls = {one["caller"]: one["call"] for one in gateway.admin.get("/api/calls?by=call")["calls"]}
    source = {"component_type": "tool_host", "component_id": "cron"}
    own = Joined.envelope("tool.call.completed", source, {"call_id": events[0]["payload"]["call_id"]})
    assert client.request("POST", "/v1/events", own)["accepted"] is True
    for call in (calls["operator"], "nobody's"):
        foreign = Joined.envelope("tool.call.completed", source, {"call_id": call})
        with pytest.raises(Forbidden, match="own calls"):
            client.request("POST", "/v1/events", foreign)


def test_a_paired_cron_host_fires_into_the_gateway(gateway: Gateway, tmp_path: Path) -> None:
    key = command(gateway, "identity").stdout.strip()
    words = ("--name", "cron", "--listen", "127.0.0.1:0", "--gateway-key", key)
    far = HostProcess(tmp_path, SPEC, *words, "--gateway", gateway.announced["peers"])
    try:
        pin = ("--remote-fingerprint", far.announced["fingerprint"], "--publish", "cron.*,heartbeat.tick")
        done = command(gateway, "pair", "tool", far.announced["url"], "cron", *pin)
        assert done.returncode == 0, done.stderr
        create(gateway, "cron", event_type="cron.triggered", input={"note": "water the plants"})  # type: ignore[arg-type]
        wait_until(lambda: len([e for e in heard(gateway) if e["event_type"] == "cron.triggered"]) >= 2)
        mine = [event for event in heard(gateway) if event["event_type"] == "cron.triggered"]
        assert mine[0]["payload"]["input"] == {"note": "water the plants"}
        assert mine[0]["source"]["component_id"] == "cron"
        assert mine[0]["source"]["transport"] == "mtls_http"
        assert len({event["payload"]["scheduled_at"] for event in mine}) == len(mine)
        speaks_of_its_own_calls_only(gateway, tmp_path / "cron.host")
    finally:
        far.stop()


def test_a_local_cron_host_is_heard_over_its_socket_as_far_as_it_may_publish(gateway: Gateway) -> None:
    create(gateway, "near", event_type="heartbeat.tick")
    wait_until(lambda: any(e["source"]["transport"] == "unix_socket" for e in heard(gateway)))
    event = next(e for e in heard(gateway) if e["source"]["transport"] == "unix_socket")
    assert (event["source"]["component_id"], event["event_type"]) == ("near", "heartbeat.tick")
    create(gateway, "near", name="other", event_type="cron.triggered")
    wait_until(lambda: "hosts.near.publish" in gateway.stderr)
    assert not any(
        e["source"]["component_id"] == "near" and e["event_type"] == "cron.triggered" for e in heard(gateway)
    )
