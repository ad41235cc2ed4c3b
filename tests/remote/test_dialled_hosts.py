"""Hosts that can only dial out, and several hosts that share a namespace."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests import nursery
from tests.gateway import COMMAND, Gateway
from tests.remote.paired import HostProcess, Relay, command, gating
from tests.waiting import PATIENCE, wait_until

HOST = """
import os
from agent_gate.hosts import Host
host = Host("clock")

@host.tool("who", idempotent=True, side_effects=False)
def who() -> str:
    return os.environ["WHO"]
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with gating(tmp_path_factory.mktemp("gate"), more="peers: {port: 0}\n") as running:
        yield running


@contextmanager
def host(gateway: Gateway, folder: Path, name: str, *words: str) -> Iterator[HostProcess]:
    folder.mkdir(exist_ok=True)
    (folder / "clock.py").write_text(HOST)
    key = command(gateway, "identity").stdout.strip()
    given = ("clock.py:host", "--name", name, "--gateway-key", key, "--state", "state", *words)
    process = HostProcess(folder, *given, WHO=name)
    try:
        yield process
    finally:
        process.stop()


def dialled(gateway: Gateway, folder: Path, name: str, url: str = "") -> "contextmanager[HostProcess]":  # type: ignore[type-arg]
    return host(gateway, folder, name, "--dial", "--gateway", url or gateway.announced["peers"])  # type: ignore[return-value]


def waiting_for(gateway: Gateway, host: HostProcess, name: str) -> "subprocess.Popen[str]":
    socket = ["--admin-socket", gateway.announced["socket"]]
    words = ["pair", "tool", "--listen", name, "--remote-fingerprint", host.announced["fingerprint"]]
    return nursery.ForkedCommand(
        [COMMAND, *words, *socket],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": "/tmp"},
    )


def who(gateway: Gateway, namespace: str) -> str:
    answer = gateway.call(f"{namespace}__who", {}).json
    return str(answer["data"]["result"]) if answer.get("success", True) and "data" in answer else ""


def available(gateway: Gateway, source: str) -> str:
    return next(one["status"] for one in gateway.admin.get("/api/sources") if one["key"] == source)


def test_a_host_that_only_dials_out_is_paired_called_lost_and_found_again(
    gateway: Gateway, tmp_path: Path
) -> None:
    with dialled(gateway, tmp_path, "lab") as running:
        pairing = waiting_for(gateway, running, "lab")
        said, wrong = pairing.communicate(timeout=PATIENCE)
        assert pairing.returncode == 0, wrong
        assert "7/7" in said
        wait_until(lambda: who(gateway, "lab") == "lab")
        assert gateway.admin.get("/api/peers/lab")["dials_in"] is True
    wait_until(lambda: available(gateway, "lab") != "ready")
    assert "lab__who" in json.dumps(gateway.request("GET", "/api/tools").json)
    assert who(gateway, "lab") == ""
    with dialled(gateway, tmp_path, "lab"):
        wait_until(lambda: who(gateway, "lab") == "lab")
        assert gateway.admin.get("/api/peers/lab")["last_seen"]
        gateway.admin.request("DELETE", "/api/peers/lab")
        assert gateway.call("lab__who", {}).json["error"]["code"] == "TOOL_NOT_FOUND"


def test_somebody_between_a_dialling_host_and_its_gateway_is_found_out(
    gateway: Gateway, tmp_path: Path
) -> None:
    port = int(gateway.announced["peers"].rpartition(":")[2])
    with (
        Relay(tmp_path, port) as relay,
        dialled(gateway, tmp_path / "far", "far", f"wss://127.0.0.1:{relay.port}") as running,
    ):
        pairing = waiting_for(gateway, running, "far")
        _said, wrong = pairing.communicate(timeout=PATIENCE)
    assert relay.passed > 0
    assert pairing.returncode == 5
    assert "somebody stands between" in wrong
    assert "far" not in {peer["name"] for peer in gateway.admin.get("/api/peers")}


def test_without_a_window_nobody_is_paired_by_dialling(gateway: Gateway, tmp_path: Path) -> None:
    before = gateway.admin.get("/api/peers")
    with dialled(gateway, tmp_path, "uninvited") as running:
        wait_until(lambda: "tried again" in (tmp_path / "stderr.txt").read_text())
        assert running.process.poll() is None
    assert gateway.admin.get("/api/peers") == before


def test_the_hosts_of_a_pool_take_turns_and_stand_in_for_each_other(gateway: Gateway, tmp_path: Path) -> None:
    def pair(running: HostProcess, name: str) -> None:
        words = ("--remote-fingerprint", running.announced["fingerprint"], "--pool", "clocks")
        done = command(gateway, "pair", "tool", running.announced["url"], name, *words)
        assert done.returncode == 0, done.stderr

    with host(gateway, tmp_path / "east", "east", "--listen", "127.0.0.1:0") as east:
        pair(east, "east")
        with host(gateway, tmp_path / "west", "west", "--listen", "127.0.0.1:0") as west:
            pair(west, "west")
            wait_until(lambda: {who(gateway, "clocks") for _ in range(4)} == {"east", "west"})
        assert {who(gateway, "clocks") for _ in range(6)} == {"east"}
        assert available(gateway, "clocks") == "degraded"
        alone = command(gateway, "pair", "tool", east.announced["url"], "clocks")
        assert "--pool" in alone.stderr
        gateway.admin.request("DELETE", "/api/peers/west")
        wait_until(lambda: available(gateway, "clocks") == "ready")
        assert who(gateway, "clocks") == "east"
        gateway.admin.request("DELETE", "/api/peers/east")
        assert gateway.call("clocks__who", {}).json["error"]["code"] == "TOOL_NOT_FOUND"
