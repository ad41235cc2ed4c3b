"""A command, a column of the store, a signal and an HTTP auth type are each added where ARCHITECTURE.md says, and nowhere else."""

import sqlite3
import subprocess
import sys

import pytest
from tests.gateway import COMMAND, TOKEN, Api, running
from tests.shape.program_copy import ProgramCopy, named_in_architecture

CONFIG = "gateway: {port: 0}\nadmin: {port: 0, socket: ./data/admin.sock}\n"
COMMAND_FILE = """
import click


@click.command()
def command() -> None:
    \"\"\"Make tea.\"\"\"
    click.echo("tea is ready")
"""
SIGNAL_FILE = """
from agent_gate.discovery.signals.signal import RankedRequest, Signal


def rate(asked: RankedRequest) -> dict[int, float]:
    return {place: 1.0 for place, one in enumerate(asked.documents) if one.tool.name == "make_tea"}


TEA = Signal("tea", 9.0, rate)
"""
COOKIE = """

def cookie(who: Identity) -> Proof:
    return Proof(((b"cookie", f"tea={who.token}".encode()),), secrets=frozenset({who.token}))
"""
SERVICE = """
services:
  tea:
    url: {url}
    auth: {{type: cookie, token: green-tea-token}}
    tools: {{make_tea: {{description: Tea, request: {{method: GET, path: /tea}}}}}}
"""
SEARCH = """
from agent_gate.core.tool import Definition
from agent_gate.discovery.rank import Index
from tests.discovery.tools import catalog
tools = catalog({"lab": [Definition(name="list_orders", description="List orders"), Definition(name="make_tea")]}).tools
print(Index(tools, {}).search("list orders", 1)[0].tool.name)
"""


@pytest.fixture
def program(tmp_path):
    return ProgramCopy(tmp_path / "program")


def paths(kind, name="tea"):
    return [f"src/agent_gate/{path}".replace("*", name) for path in named_in_architecture(kind)]


def told(program, *command):
    env = {"PATH": "/usr/bin", **program.env}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout


def test_a_command_is_a_file_and_a_line(program):
    program.write("src/agent_gate/cli/commands/tea.py", COMMAND_FILE)
    program.insert("src/agent_gate/cli/main.py", '    "To set up": {\n', '        "tea": "Make tea.",\n')
    assert program.touched == paths("a command")
    assert told(program, COMMAND, "tea") == "tea is ready\n"
    assert "Make tea." in told(program, COMMAND, "--help")


def test_a_column_of_the_store_is_a_file_and_a_store_of_before_gets_it(program, tmp_path):
    program.write(
        "src/agent_gate/store/migrations/9001_tea.sql", "ALTER TABLE approvals ADD COLUMN tea TEXT;\n"
    )
    assert program.touched == paths("a column of the store", "9001_tea")
    files = {"config.yaml": CONFIG}
    with running(tmp_path, files, "--insecure"):
        pass
    with running(tmp_path, files, "--insecure", env=program.env) as gateway:
        assert gateway.admin.get("/api/approvals") == []
    [store] = (tmp_path / "data").glob("*.db")
    with sqlite3.connect(store) as database:
        assert "tea" in [row[1] for row in database.execute("PRAGMA table_info(approvals)")]


def test_a_signal_is_a_file_and_a_line(program):
    program.write("src/agent_gate/discovery/signals/tea.py", SIGNAL_FILE)
    listed = "src/agent_gate/discovery/signals/__init__.py"
    program.insert(listed, "SIGNALS: Sequence[Signal] = (", "TEA, ")
    program.insert(
        listed,
        "from collections.abc import Sequence\n",
        "from agent_gate.discovery.signals.tea import TEA\n",
    )
    assert program.touched == paths("a signal of discovery")
    program.env["PYTHONPATH"] += ":."
    assert told(program, sys.executable, "-c", SEARCH) == "make_tea\n"


def test_a_way_to_authenticate_a_request_is_a_function_and_a_line(program, tmp_path):
    registry = "src/agent_gate/net/auth.py"
    program.insert(registry, "    return Proof()\n", COOKIE)
    program.insert(
        registry,
        "AUTH_TYPES: Mapping[str, AuthType] = {\n",
        '    "cookie": AuthType(cookie, ("token",)),\n',
    )
    assert program.touched == paths("an HTTP auth type")
    with Api() as api:
        config = (
            CONFIG
            + f"agent: {{token: {TOKEN}}}\npermissions: permissions.yaml\n"
            + SERVICE.format(url=api.url)
        )
        files = {"config.yaml": config, "permissions.yaml": "rules: [{pattern: make_tea, action: allow}]\n"}
        with running(tmp_path, files, "--insecure", env=program.env) as gateway:
            assert gateway.call("make_tea").status == 200
        [asked] = [request for request in api.requests if request["path"] == "/tea"]
    assert asked["headers"]["cookie"] == "tea=green-tea-token"
    (tmp_path / "config.yaml").write_text(config.replace("green-tea-token", '""'))
    checked = subprocess.run(
        [COMMAND, "check"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin", **program.env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert 'type: cookie needs "token"' in checked.stdout + checked.stderr
