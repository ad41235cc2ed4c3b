"""The clients themselves, installed from their makers: what we write into their files, they find and reach.

They are more than a gigabyte, so they are installed and run by `make clients` alone.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.gateway import COMMAND, TOKEN, Gateway, running
from tests.servers import CACHE, locked, run

PACKAGES = {
    "claude-code": ("@anthropic-ai/claude-code@2.1.197", ".bin/claude"),
    "codex": ("@openai/codex@0.166.0", ".bin/codex"),
    "gemini": ("@google/gemini-cli@0.61.0", ".bin/gemini"),
    "opencode": ("opencode-ai@1.18.33", "opencode-*-*/bin/opencode"),
}
WELL = {"claude-code": " Connected", "codex": "enabled", "gemini": "- Connected", "opencode": " connected"}
"""What each says of a server that it reached; Codex only says that it would."""
ZOO = Path(__file__).resolve().parent.parent / "sources" / "mcp" / "zoo.py"
FILES = {
    "config.yaml": f"""
gateway: {{id: t, port: 0}}
admin: {{socket: ./data/admin.sock, port: 0}}
agents: {{home: {{token: "{TOKEN}"}}}}
servers: {{zoo: {{command: "{sys.executable}", args: ["{ZOO}"]}}}}
""",
}
pytestmark = pytest.mark.skipif(
    not os.environ.get("AGENT_GATE_CLIENTS"), reason="make clients installs the clients and runs this"
)


def program(name: str) -> str:
    """The client's own command, installed if it was not yet."""
    package, command = PACKAGES[name]
    folder = CACHE.parent / "clients" / name
    with locked(folder):
        ready = folder / ".ready"
        if not ready.exists() or ready.read_text() != package:
            (folder / "package.json").write_text("{}")
            scripts = ["--ignore-scripts"] if name == "opencode" else []
            run(
                "npm", "install", *scripts, "--no-audit", "--no-fund", "--loglevel=error", package, cwd=folder
            )
            ready.write_text(package)
    return str(min((folder / "node_modules").glob(command)))


@dataclass
class Desk:
    """A person's home with a project in it, where both the client's commands and ours are run."""

    home: Path
    client: str

    @property
    def project(self) -> Path:
        return self.home / "project"

    def run(self, *argv: str) -> str:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "AGENT_TOKEN": TOKEN, "FAR_TOKEN": "x"}
        quiet = {"GEMINI_CLI_TRUST_WORKSPACE": "true", "DISABLE_TELEMETRY": "1", "NO_COLOR": "1"}
        done = subprocess.run(
            argv, cwd=self.project, env=env | quiet, capture_output=True, text=True, timeout=90, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)

    def ours(self, *argv: str) -> str:
        return self.run(COMMAND, *argv)

    def theirs(self, *argv: str) -> str:
        return self.run(program(self.client), "mcp", *argv)

    def line(self, listed: str, server: str) -> str:
        """What the client says of one server."""
        words = ((line, line.replace(":", " ").split()) for line in listed.splitlines())
        return next(line for line, found in words if server in found[:3])


@pytest.fixture(params=sorted(PACKAGES))
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    desk = Desk(tmp_path / "home", request.param)
    desk.project.mkdir(parents=True)
    return desk


@pytest.fixture(params=["plain", "tls"])
def gateway(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Gateway]:
    options = ("--insecure",) if request.param == "plain" else ()
    with running(tmp_path / "gateway", FILES, *options) as gateway:
        yield gateway


def address(gateway: Gateway) -> list[str]:
    """Where the gateway is, for `connect`."""
    certificate = gateway.announced["fingerprint"]
    return ["--url", gateway.url, *(["--fingerprint", certificate] if certificate else [])]


def test_a_client_reaches_the_gateway_that_was_written_into_its_file(desk: Desk, gateway: Gateway) -> None:
    desk.ours("connect", desk.client, *address(gateway))
    assert WELL[desk.client] in desk.line(desk.theirs("list"), "agent-gate")
    desk.ours("disconnect", desk.client)
    assert "agent-gate" not in desk.theirs("list")


def test_a_client_reaches_the_gateway_over_the_bridge(desk: Desk, gateway: Gateway) -> None:
    desk.ours("connect", desk.client, "--stdio", *address(gateway))
    listed = desk.theirs("list")
    assert "bridge" in listed
    assert WELL[desk.client] in desk.line(listed, "agent-gate")


def test_servers_that_a_client_was_given_are_imported_and_their_secrets_moved_out(desk: Desk) -> None:
    far, secret = "https://example.com/mcp", "abcdef0123456789"
    if desk.client == "opencode":
        pytest.skip("it takes servers in a dialogue only")
    if desk.client == "claude-code":
        desk.theirs("add", "time", "-e", "ZONE=UTC", "--", "uvx", "mcp-server-time")
        header = f"Authorization: Bearer {secret}"
        desk.theirs("add", "--transport", "http", "--scope", "user", "far", far, "--header", header)
    elif desk.client == "gemini":
        desk.theirs("add", "--scope", "user", "-e", "ZONE=UTC", "time", "uvx", "mcp-server-time")
        desk.theirs("add", "--scope", "user", "--transport", "http", "-H", f"X-Api-Key: {secret}", "far", far)
    else:
        desk.theirs("add", "time", "--env", "ZONE=UTC", "--", "uvx", "mcp-server-time")
        desk.theirs("add", "far", "--url", far, "--bearer-token-env-var", "FAR_TOKEN")
    desk.ours("import", desk.client, "--all")
    config = (desk.project / "config.yaml").read_text()
    assert "mcp-server-time" in config
    assert far in config
    assert secret not in config
    assert "No faults" in desk.ours("check")
