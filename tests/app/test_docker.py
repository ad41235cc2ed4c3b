"""The image, where a Docker engine runs: it starts as nobody on a read-only root and answers on both ports."""

import json
import shutil
import ssl
import subprocess
import urllib.request
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]


def engine():
    docker = shutil.which("docker")
    return docker and subprocess.run([docker, "info"], capture_output=True, timeout=20).returncode == 0


def test_a_composed_gateway_reads_its_folder_and_keeps_its_data_in_a_volume():
    [one] = YAML(typ="safe").load((ROOT / "compose.yaml").read_text())["services"].values()
    assert (one["build"], one["read_only"]) == (".", True)
    assert one["volumes"] == ["./home:/config:ro", "agent-gate:/data"]
    words = one["command"]
    assert words[words.index("--config") + 1] == "/config/config.yaml"
    assert words[words.index("--data") + 1] == "/data"
    assert all(port.startswith("127.0.0.1:") for port in one["ports"])


@pytest.mark.skipif(not engine(), reason="no Docker engine runs here")
def test_the_image_serves_as_another_user_on_a_read_only_root(tmp_path):
    (tmp_path / "config.yaml").write_text("admin: {host: 0.0.0.0}\n")
    subprocess.run(["docker", "build", "-q", "-t", "agent-gate-test", str(ROOT)], check=True, timeout=600)
    options = ["--read-only", "--tmpfs", "/tmp", "-v", f"{tmp_path}:/config:ro", "-p", "127.0.0.1::8443"]
    started = subprocess.run(
        ["docker", "run", "-d", "--rm", *options, "agent-gate-test"],
        check=True,
        capture_output=True,
        text=True,
    )
    container = started.stdout.strip()
    try:
        where = subprocess.run(
            ["docker", "port", container, "8443"], check=True, capture_output=True, text=True
        ).stdout.split()[0]
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

        def health():
            try:
                with urllib.request.urlopen(f"https://{where}/health", context=context, timeout=2) as reply:
                    return json.load(reply)
            except OSError:
                return None

        assert wait_until(health)["status"] == "ok"
        user = subprocess.run(
            ["docker", "exec", container, "id", "-u"], check=True, capture_output=True, text=True
        ).stdout
        assert user.strip() == "10001"
    finally:
        subprocess.run(["docker", "kill", container], capture_output=True)
