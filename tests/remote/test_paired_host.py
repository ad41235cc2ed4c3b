"""From a fresh host to a revoked one: pairing by the command line, calls under policy, and every way it fails closed."""

import json
import os
import pty
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import nursery
from tests.gateway import COMMAND, Gateway
from tests.remote.paired import HostProcess, Relay, command, gating, hosting, pair
from tests.waiting import PATIENCE, wait_until

APPEND, QUERY, DELETE = (f"memory_east__memory_{verb}" for verb in ("append", "query", "delete"))


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    denied = (
        "rules:\n- {pattern: 'memory_east__memory_delete*', action: deny}\n- {pattern: '*', action: allow}\n"
    )
    with gating(tmp_path_factory.mktemp("gate"), denied) as running:
        yield running


@pytest.fixture
def host(gateway: Gateway, tmp_path: Path) -> Iterator[HostProcess]:
    with hosting(gateway, tmp_path / "host") as running:
        yield running
        if any(p["status"] == "active" for p in gateway.admin.get("/api/peers")):
            gateway.admin.request("DELETE", "/api/peers/memory-east")


def ready(gateway: Gateway) -> bool:
    return any(
        one["key"] == "memory-east" and one["status"] == "ready" for one in gateway.admin.get("/api/sources")
    )


def test_memory_on_another_machine_is_paired_used_and_revoked(gateway: Gateway, host: HostProcess) -> None:
    done = pair(gateway, host)
    assert done.returncode == 0, done.stderr
    assert [line[:3] for line in done.stdout.splitlines()[:7]] == [f"{phase}/7" for phase in range(1, 8)]
    wait_until(lambda: ready(gateway))
    appended = gateway.call(APPEND, {"text": "The spare key is under the blue pot"})
    assert appended.status == 200, appended.body
    found = gateway.call(QUERY, {"words": "spare key"}).json["data"]["entries"]
    assert [one["text"] for one in found] == ["The spare key is under the blue pot"]
    assert gateway.call(DELETE, {"ids": ["x"]}).json["error"]["code"] in ("FORBIDDEN", "TOOL_NOT_FOUND")
    peer = json.loads(command(gateway, "peers", "show", "memory-east", "--json").stdout)
    assert (peer["status"], peer["fingerprint"]) == ("active", host.announced["fingerprint"])
    assert command(gateway, "peers", "revoke", "memory-east").returncode == 0
    refused = gateway.call(QUERY, {"words": "spare key"})
    assert refused.json["error"]["code"] == "TOOL_NOT_FOUND"
    assert QUERY not in json.dumps(gateway.request("GET", "/api/tools").json)
    attempts = gateway.admin.get("/api/calls?tool=peers:pair&by=call")["calls"]
    assert [attempt["state"] for attempt in attempts] == ["completed"]
    assert gateway.story(attempts[0]["call"]) == ["dispatching", "completed"]
    assert pair(gateway, host).returncode == 0
    wait_until(lambda: gateway.call(QUERY, {"words": "spare"}).status == 200)


def test_entries_belong_to_an_isolation_key_that_the_agent_may_name(
    gateway: Gateway, host: HostProcess
) -> None:
    assert pair(gateway, host).returncode == 0
    wait_until(lambda: ready(gateway))

    def ask(tool: str, args: dict[str, Any], key: str | None) -> Any:
        body: dict[str, Any] = {"tool": tool, "arguments": args}
        if key is not None:
            body["context"] = {"isolation_key": key, "actor_id": "not allowed to say"}
        return gateway.request("POST", "/api/call", body).json["data"]

    ask(APPEND, {"text": "mine alone"}, "anna")
    assert [one["text"] for one in ask(QUERY, {"words": "alone"}, "anna")["entries"]] == ["mine alone"]
    assert ask(QUERY, {"words": "alone"}, "ben")["entries"] == []
    assert ask(QUERY, {"words": "alone"}, None)["entries"] == []


def test_p5_somebody_in_the_middle_is_found_out_in_phase_two(
    gateway: Gateway, host: HostProcess, tmp_path: Path
) -> None:
    port = int(host.announced["url"].rpartition(":")[2])
    with Relay(tmp_path, port) as relay:
        done = pair(gateway, host, f"wss://127.0.0.1:{relay.port}")
    assert relay.passed > 0
    assert done.returncode == 5
    assert "phase 2" in done.stderr
    assert "somebody stands between" in done.stderr
    assert all(one["status"] == "revoked" for one in gateway.admin.get("/api/peers"))


def test_p6_without_a_pin_and_a_terminal_nothing_is_paired(gateway: Gateway, host: HostProcess) -> None:
    done = command(gateway, "pair", "tool", host.announced["url"], "memory-east")
    assert done.returncode == 5
    assert "--remote-fingerprint" in done.stderr
    wanted = {"component_type": "tool", "component_id": "memory-east", "endpoint": host.announced["url"]}
    with pytest.raises(Exception, match="nobody confirmed"):
        gateway.admin.request("POST", "/v1/pairings", wanted)


@pytest.mark.parametrize("typed", ["yes", "y"])
def test_somebody_at_a_terminal_compares_the_whole_fingerprint_and_says_yes(
    gateway: Gateway, host: HostProcess, typed: str
) -> None:
    near, far = pty.openpty()
    words = [COMMAND, "pair", "tool", host.announced["url"], "memory-east"]
    pairing = nursery.ForkedCommand(
        [*words, "--admin-socket", gateway.announced["socket"]],
        stdin=far,
        stdout=far,
        stderr=far,
        env={"PATH": os.environ["PATH"], "HOME": "/tmp"},
    )
    os.close(far)
    shown = b""
    while b"Type yes" not in shown:
        shown += os.read(near, 4096)
    assert host.announced["fingerprint"].encode() in shown
    os.write(near, f"{typed}\n".encode())
    assert (pairing.wait(PATIENCE) == 0) is (typed == "yes")
    os.close(near)


def test_p24_p25_an_older_certificate_counts_no_more_after_a_rotation(
    gateway: Gateway, host: HostProcess
) -> None:
    assert pair(gateway, host).returncode == 0
    wait_until(lambda: ready(gateway))
    before = gateway.admin.get("/api/peers/memory-east")["certificate"]
    done = command(gateway, "peers", "rotate", "memory-east")
    assert done.returncode == 0, done.stderr
    assert gateway.admin.get("/api/peers/memory-east")["certificate"] != before
    wait_until(lambda: gateway.call(QUERY, {}).status == 200)


def test_a_host_that_was_replaced_by_another_is_sent_nothing(gateway: Gateway, tmp_path: Path) -> None:
    with hosting(gateway, tmp_path / "host") as host:
        assert pair(gateway, host).returncode == 0
        wait_until(lambda: ready(gateway))
        port = host.announced["url"].rpartition(":")[2]
    with hosting(gateway, tmp_path / "other", listen=f"127.0.0.1:{port}"):
        refused = gateway.call(APPEND, {"text": "a secret"})
        assert refused.json["error"]["code"] in ("PAIRING_FAILED", "DEPENDENCY_UNAVAILABLE")
        assert b"a secret" not in (tmp_path / "other" / "stderr.txt").read_bytes()
        assert not (tmp_path / "other" / "memory.db").exists()
    gateway.admin.request("DELETE", "/api/peers/memory-east")


def test_what_a_host_says_of_itself_counts_once_it_is_trusted(gateway: Gateway, host: HostProcess) -> None:
    assert pair(gateway, host).returncode == 0
    wait_until(lambda: ready(gateway))

    def believed() -> bool:
        return bool(gateway.admin.get(f"/api/tools/{QUERY}")["traits"]["trusted"])

    assert not believed()
    assert command(gateway, "peers", "trust", "memory-east").returncode == 0
    wait_until(lambda: believed())
    assert command(gateway, "peers", "trust", "memory-east", "--no").returncode == 0
    wait_until(lambda: not believed())


def test_p27_pairing_starts_on_the_admin_socket_and_nowhere_else(gateway: Gateway) -> None:
    for path in ("/v1/pairings", "/v1/identity", "/v1/pairings/ws"):
        assert gateway.request("POST", path, {}).status in (404, 405)
    document = json.dumps(gateway.admin.get("/openapi.json"))
    assert "/v1/pairings" not in document
    assert "/api/peers" in document


def test_pairing_can_be_tried_and_leaves_no_peer(gateway: Gateway) -> None:
    before = gateway.admin.get("/api/peers")
    done = command(gateway, "pair", "test")
    assert done.returncode == 0, done.stderr
    assert "7/7" in done.stdout
    assert gateway.admin.get("/api/peers") == before


@pytest.mark.parametrize("url", ["ws://10.0.0.1:5225", "wss://127.0.0.1:1"])
def test_p29_a_pairing_that_cannot_begin_says_why(gateway: Gateway, url: str) -> None:
    done = command(gateway, "pair", "tool", url, "memory-east", "--remote-fingerprint", "sha256:" + "0" * 64)
    assert done.returncode != 0
    assert "wss://" in done.stderr


def test_a_peer_is_served_again_after_a_restart(tmp_path: Path) -> None:
    with gating(tmp_path / "gate") as gateway, hosting(gateway, tmp_path / "host") as host:
        assert pair(gateway, host).returncode == 0
        wait_until(lambda: ready(gateway))
        gateway.stop()
        gateway.start()
        wait_until(lambda: ready(gateway))
        assert gateway.call(QUERY, {}).status == 200


def test_a_host_on_this_machine_is_called_over_its_socket(tmp_path: Path) -> None:
    run = tmp_path / "run"
    local = HostProcess(
        tmp_path / "host", "agent_gate.hosts.memory:host", "--socket", str(run / "memory.sock")
    )
    try:
        with gating(tmp_path / "gate", more=f"hosts: {{notes: {{socket: {run}/memory.sock}}}}\n") as gateway:
            wait_until(lambda: gateway.call("notes__memory_append", {"text": "local"}).status == 200)
            found = gateway.call("notes__memory_query", {"words": "local"}).json["data"]["entries"]
            assert len(found) == 1
    finally:
        assert local.stop() == 0
