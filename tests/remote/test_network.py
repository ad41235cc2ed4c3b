"""Between two machines: paired by a fingerprint, used under policy, cut off and found again, revoked."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from tests.gateway import COMMAND
from tests.remote.elsewhere import Elsewhere
from tests.remote.paired import command, gating, hosting, pair
from tests.remote.test_paired_host import ready
from tests.waiting import PATIENCE, wait_until

HOST = """
from agent_gate.hosts.memory import host

@host.tool("quick", timeout_ms=1500, timeout_ms_max=1500, idempotent=True, side_effects=False)
def quick() -> str:
    return "here"
"""
DENIED = "rules:\n- {pattern: 'memory_east__memory_delete*', action: deny}\n- {pattern: '*', action: allow}\n"


def test_a_newcomer_uses_memory_on_another_machine_through_a_cut_and_revokes_it(tmp_path: Path) -> None:
    (tmp_path / "memory.py").write_text(HOST)
    with Elsewhere() as elsewhere, gating(tmp_path / "gate", DENIED) as gateway:
        key = command(gateway, "identity").stdout.strip()
        words = (COMMAND, "host", "run", "memory.py:host", "--name", "memory-east", "--gateway-key", key)
        host = subprocess.Popen(
            elsewhere.words(*words, "--listen", f"{elsewhere.there}:5225"),
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert host.stdout is not None
            told = json.loads(host.stdout.readline())
            pin = ("--remote-fingerprint", told["fingerprint"])
            done = command(gateway, "pair", "tool", told["url"], "memory-east", *pin)
            assert done.returncode == 0, done.stderr
            wait_until(lambda: ready(gateway))
            assert (
                gateway.call("memory_east__memory_append", {"text": "the key is under the pot"}).status == 200
            )
            found = gateway.call("memory_east__memory_query", {"words": "key"}).json["data"]["entries"]
            assert len(found) == 1
            refused = gateway.call("memory_east__memory_delete", {"ids": [found[0]["id"]]}).json["error"]
            assert refused["code"] in ("FORBIDDEN", "TOOL_NOT_FOUND")
            elsewhere.cut()
            began = time.monotonic()
            lost = gateway.call("memory_east__quick", {}).json["error"]
            assert lost["code"] in ("TIMEOUT", "DEPENDENCY_UNAVAILABLE", "OUTCOME_UNKNOWN"), lost
            assert time.monotonic() - began < 30
            elsewhere.mend()
            wait_until(lambda: gateway.call("memory_east__quick", {}).status == 200)
            assert command(gateway, "peers", "revoke", "memory-east").returncode == 0
            gone = gateway.call("memory_east__memory_query", {"words": "key"}).json["error"]
            assert gone["code"] == "TOOL_NOT_FOUND"
        finally:
            host.terminate()
            host.wait(PATIENCE)
            host.stdout.close()  # type: ignore[union-attr]


def test_sslscan_finds_tls_1_3_and_nothing_older(tmp_path: Path) -> None:
    if shutil.which("sslscan") is None:
        pytest.skip(
            "sslscan is not installed; test_the_listener_speaks_tls_1_3_with_peers_alone asks by hand"
        )
    with (
        gating(tmp_path / "gate", more="peers: {port: 0}\n") as gateway,
        hosting(gateway, tmp_path / "host") as host,
    ):
        assert pair(gateway, host).returncode == 0
        for url in (host.announced["url"], gateway.announced["peers"]):
            scanned = subprocess.run(
                ["sslscan", "--no-colour", "--no-ciphersuites", url.removeprefix("wss://")],
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE,
            ).stdout
            found = [line.split() for line in scanned.splitlines() if line.startswith(("SSLv", "TLSv"))]
            states = {words[0]: words[1] for words in found if words[1] in ("enabled", "disabled")}
            assert states == {
                "SSLv2": "disabled",
                "SSLv3": "disabled",
                "TLSv1.0": "disabled",
                "TLSv1.1": "disabled",
                "TLSv1.2": "disabled",
                "TLSv1.3": "enabled",
            }
