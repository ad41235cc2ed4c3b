"""The clients themselves sign in: no token anywhere, a browser, a person's yes. Installed and run by `make clients` alone.

Each runs in a room with no network but its own, so nothing of it leaves the machine. None has a model behind it: what
is seen is what its own commands say of the gateway.
"""

import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright
from tests import room
from tests.clients.terminal import MARKS, Doorbell, Terminal
from tests.clients.test_client_programs import program
from tests.conformance.node_packages import installed, node
from tests.gateway import Api, running
from tests.sign_in.conftest import files
from tests.ui import chromium
from tests.waiting import PATIENCE

from agent_gate.net.tls.certificates import ensure_certificate

pytestmark = pytest.mark.skipif(
    not os.environ.get("AGENT_GATE_CLIENTS"), reason="make clients installs the clients and runs this"
)
PORT = 8441
SCRIPTS = Path(__file__).resolve().parents[1] / "sign_in"
QUIET = {
    "TERM": "xterm-256color",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "GEMINI_CLI_TRUST_WORKSPACE": "true",
    "GEMINI_TELEMETRY_ENABLED": "false",
    "GEMINI_API_KEY": "none",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "MCP_INSPECTOR_SECRET_STORE": "file",
}
"""Everything by which they are told to reach nobody; the room would not let them."""


class SeatedClient:
    """One client at a person's desk in the room."""

    name, refreshes = "", True
    """`refreshes`: whether it gets a new token without a browser when its own is over."""

    def __init__(self, house, home, bell, url):
        self.house, self.home, self.bell, self.url = house, home, bell, url
        self.project = home / "project"
        self.project.mkdir(parents=True)
        self.env = {"HOME": str(home)} | QUIET | bell.env

    def command(self, *words):
        return [program(self.name), *words]

    def run(self, *words):
        done = self.house.run(self.command(*words), cwd=self.project, env=self.env)
        return MARKS.sub("", done.stdout + done.stderr)

    def terminal(self, *words):
        return Terminal(self.house.popen, self.command(*words), cwd=self.project, env=self.env)

    def forget_time(self):
        """What else tells it that its token is over, beside being refused."""


class ClaudeCode(SeatedClient):
    name = "claude-code"

    def add(self):
        self.run("mcp", "add", "--transport", "http", "gate", self.url)

    @contextmanager
    def signing_in(self):
        with self.terminal("mcp", "login", "gate") as terminal:
            yield self.bell.wait()
            assert terminal.wait() == 0, terminal.said

    def is_in(self):
        said = self.run("mcp", "list")
        assert re.search("Connected|Needs authentication", said), said
        return " Connected" in said


class OpenCode(SeatedClient):
    name = "opencode"

    def add(self):
        server = {"type": "remote", "url": self.url, "enabled": True}
        settings = {"mcp": {"gate": server}, "autoupdate": False, "share": "disabled"}
        (self.project / "opencode.json").write_text(json.dumps(settings))

    @contextmanager
    def signing_in(self):
        with self.terminal("mcp", "auth", "gate") as terminal:
            yield self.bell.wait()
            assert terminal.wait() == 0, terminal.said

    def is_in(self):
        said = self.run("mcp", "list")
        assert re.search("gate.*(connected|needs authentication|failed)", said), said
        return " connected" in said


class GeminiCli(SeatedClient):
    """Its dialogue wants to know of a model before anything; it is told of one that it never asks."""

    name = "gemini"

    def add(self):
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False},
            "mcpServers": {"gate": {"httpUrl": self.url}},
        }
        (self.home / ".gemini").mkdir()
        (self.home / ".gemini" / "settings.json").write_text(json.dumps(settings))

    @contextmanager
    def signing_in(self):
        with self.terminal() as terminal:
            terminal.wait_for("Type your message")
            terminal.type("/mcp auth gate")
            terminal.wait_for(r"/mcp auth gate")
            terminal.type("\r")
            terminal.wait_for("Do you want to continue")
            terminal.type("\r")
            yield self.bell.wait()
            terminal.wait_for("(?i)successfully authenticated|authentication successful")

    def is_in(self):
        said = self.run("mcp", "list")
        assert re.search("Connected|Disconnected", said), said
        return "- Connected" in said

    def forget_time(self):
        """It asks for new tokens when its own clock says so, and not when it is refused."""
        kept = self.home / ".gemini" / "mcp-oauth-tokens.json"
        kept.write_text(re.sub(r'"expiresAt": *[0-9]+', '"expiresAt": 1', kept.read_text()))


class Codex(SeatedClient):
    """Its server for editors says what it found at an MCP server."""

    name = "codex"
    asks = (
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "mcpServerStatus/list", "params": {}},
    )

    def add(self):
        (self.home / ".codex").mkdir()
        (self.home / ".codex" / "config.toml").write_text(f'[mcp_servers.gate]\nurl = "{self.url}"\n')

    @contextmanager
    def signing_in(self):
        with self.terminal("mcp", "login", "gate") as terminal:
            yield self.bell.wait()
            assert terminal.wait() == 0, terminal.said

    def is_in(self):
        pipes = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.DEVNULL,
            "text": True,
        }
        with self.house.popen(self.command("app-server"), cwd=self.project, env=self.env, **pipes) as process:
            process.stdin.write("".join(json.dumps(one) + "\n" for one in self.asks))
            process.stdin.flush()
            said = (json.loads(line) for line in process.stdout)
            [server] = next(one for one in said if one.get("id") == 2)["result"]["data"]
            process.kill()
        return "home_act" in server["tools"]


class McPorter(SeatedClient):
    name = "mcporter"

    def command(self, *words):
        return [node(), installed("clients") / "mcporter" / "dist" / "cli.js", *words]

    def add(self):
        (self.project / "config").mkdir()
        servers = {"mcpServers": {"gate": {"url": self.url, "auth": "oauth"}}, "imports": []}
        (self.project / "config" / "mcporter.json").write_text(json.dumps(servers))

    @contextmanager
    def signing_in(self):
        with self.terminal("auth", "gate") as terminal:
            yield self.bell.wait()
            assert terminal.wait() == 0, terminal.said

    def is_in(self):
        return "home_act" in self.run("list", "gate", "--no-oauth")

    def forget_time(self):
        """It asks for new tokens when its own clock says so, and not when it is refused."""
        kept = self.home / ".mcporter" / "credentials.json"
        kept.write_text(re.sub(r'"expires_at": *[0-9]+', '"expires_at": 1', kept.read_text()))


class InspectorCli(SeatedClient):
    """It shows the address and leaves the browser to the person. With its tokens in hand it waits until every
    connection to its own listener has ended, also a spare one that the browser opened and never used: Node ends those
    after a minute and a half."""

    name, closes = "inspector", 120.0

    def command(self, *words):
        folder = installed("clients") / "@modelcontextprotocol" / "inspector"
        script = folder / "clients" / "cli" / "build" / "index.js"
        return [
            node(),
            script,
            "--transport",
            "http",
            "--server-url",
            self.url,
            "--method",
            "tools/list",
            *words,
        ]

    def add(self):
        """It is told of the server each time."""

    @contextmanager
    def signing_in(self):
        with self.terminal() as terminal:
            yield terminal.wait_for(r"Please navigate to: (\S+)\s")[1]
            terminal.wait_for("home_act", self.closes)

    def is_in(self):
        return "home_act" in self.run("--stored-auth-only")


class SmallProgram(SeatedClient):
    """One that is started for each use: it shows an address where it needs a browser, and goes on from there."""

    asks, done = r"OPEN (\S+)\s", "TOOLS"

    def add(self):
        """It is told of the server each time."""

    @contextmanager
    def signing_in(self):
        with self.terminal() as terminal:
            yield terminal.wait_for(self.asks)[1]
            terminal.wait_for(self.done)

    def is_in(self):
        with self.terminal() as terminal:
            return terminal.wait_for(f"{self.asks}|{self.done}")[0] == self.done


class PythonSdk(SmallProgram):
    """After a restart it knows no end of its token, and signs in anew where it is refused."""

    name, refreshes = "python-sdk", False

    def command(self, *words):
        return [sys.executable, SCRIPTS / "python_client.py", self.url, self.home / "kept.json", "3999"]


class TypeScriptSdk(SmallProgram):
    name = "typescript-sdk"

    def command(self, *words):
        script, packages = SCRIPTS / "typescript_client.mjs", installed("clients").parent
        return [node(), script, packages, self.url, self.home / "kept.json", "3999"]


class McpRemote(SmallProgram):
    name = "mcp-remote"
    asks, done = r"(http://127\.0\.0\.1:\d+/authorize\?\S+)\s", "Connected successfully!"

    def command(self, *words):
        script = installed("remote") / "mcp-remote" / "dist" / "client.js"
        return [node(), script, self.url, "3999", "--transport", "http-only"]


KINDS = [
    ClaudeCode,
    Codex,
    GeminiCli,
    InspectorCli,
    McPorter,
    McpRemote,
    OpenCode,
    PythonSdk,
    TypeScriptSdk,
]


@pytest.fixture(scope="module")
def house(chrome_of, tmp_path_factory):
    with room.room(tmp_path_factory.mktemp("house")) as made:
        yield made


@pytest.fixture(scope="module")
def chrome_of():
    """A Chromium in the room that is given."""
    if why := room.missing():
        pytest.skip(why)
    chromium.need()
    with sync_playwright() as playwright:

        @contextmanager
        def launched(place):
            browser = chromium.launch(playwright, place.wrapped(chromium.find()))
            yield browser
            browser.close()

        yield launched


@pytest.fixture(scope="module")
def chrome(chrome_of, house):
    with chrome_of(house) as browser:
        yield browser


@pytest.fixture
def gate(house, tmp_path):
    with (
        Api() as api,
        running(tmp_path / "gate", files(api, PORT), "--insecure", kind=house.gateway()) as made,
    ):
        yield made


@contextmanager
def seated(kind, house, gate, folder):
    bells = folder / "bell"
    bells.mkdir()
    bell = Doorbell(bells)
    client = kind(house, folder / "home", bell, f"{gate.url}/mcp")
    client.add()
    yield client
    bell.close()


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def client(request, house, gate, tmp_path):
    with seated(request.param, house, gate, tmp_path) as made:
        yield made


@contextmanager
def opened(chrome, address):
    """A window in which a person pressed Continue, and the number that it shows."""
    context = chrome.new_context()
    try:
        page = context.new_page()
        page.goto(address)
        assert "(unverified)" in page.inner_text("main")
        page.get_by_role("button", name="Continue").click()
        yield page, page.inner_text(".number")
    finally:
        context.close()


def sign_in(client, gate, chrome):
    with client.signing_in() as address, opened(chrome, address) as (page, number):
        gate.answer(number=number)
        page.wait_for_url(re.compile("code="))


def agents(gate):
    return [one["name"] for one in gate.admin.get("/api/agents") if one["signed_in"]]


def let_the_hour_pass(gate):
    """The access tokens that were given out are over, as they are an hour later."""
    gate.stop()
    with sqlite3.connect(gate.folder / "data" / "gate.db") as store:
        store.execute("UPDATE family_tokens SET expires_at = 1 WHERE kind = 'access'")
    gate.start()


def test_a_client_signs_in_stays_in_and_is_out_when_revoked(client, gate, chrome):
    assert not client.is_in()
    sign_in(client, gate, chrome)
    [agent] = agents(gate)
    assert client.is_in()
    let_the_hour_pass(gate)
    client.forget_time()
    assert client.is_in() is client.refreshes
    assert not client.bell.rung
    gate.admin.request("DELETE", f"/api/agents/{agent.replace('/', '%2F')}")
    assert not client.is_in()


def test_a_client_comes_in_past_a_restart_and_a_kill_in_the_middle(client, gate, chrome):
    with client.signing_in() as address, opened(chrome, address) as (page, number):
        gate.stop()
        gate.env["AGENT_GATE_FAILPOINT"] = "before_sign_in_code"
        gate.start()
        page.reload()
        assert page.inner_text(".number") == number
        gate.answer(number=number)
        gate.process.wait(PATIENCE)
        assert "failpoint before_sign_in_code" in gate.stderr
        gate.stop()
        del gate.env["AGENT_GATE_FAILPOINT"]
        gate.start()
        page.goto(page.url)
        page.wait_for_url(re.compile("code="))
    assert client.is_in()
    assert len(agents(gate)) == 1


def test_claude_code_is_known_by_its_makers_document_whatever_port_it_listens_on(chrome_of, tmp_path):
    """The document stands in the room where Claude Code says that it stands, over TLS and at a public address."""
    certificate, folder = tmp_path / "tls", tmp_path / "house"
    ensure_certificate(certificate, ["claude.ai"])
    folder.mkdir()
    with room.room(folder, {"claude.ai": "93.184.215.1"}) as house, Api() as api, chrome_of(house) as chrome:
        found = files(api, PORT)
        config = found["config.yaml"].replace(", client_documents: false", "")
        env = {"SSL_CERT_FILE": str(certificate / "ca.crt")}
        serving = [sys.executable, SCRIPTS / "connector.py", "claude-code", "", certificate]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with (
            running(
                tmp_path / "gate",
                found | {"config.yaml": config},
                "--insecure",
                kind=house.gateway(),
                env=env,
            ) as gate,
            house.popen(serving, cwd=tmp_path, **pipes) as process,
            seated(ClaudeCode, house, gate, tmp_path) as client,
        ):
            document = process.stdout.readline().split()[1]
            sign_in(client, gate, chrome)
            assert client.is_in()
            assert agents(gate) == ["claude-code/operator"]
            with sqlite3.connect(gate.folder / "data" / "gate.db") as store:
                assert store.execute("SELECT client FROM signed_in_agents").fetchall() == [(document,)]
            process.stdin.close()
