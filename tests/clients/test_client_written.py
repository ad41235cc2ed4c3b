"""Files that the clients' own commands wrote, kept as they were, with the client's version in the name."""

from pathlib import Path

import pytest

from agent_gate.config.clients.backup import Backups, connect_file, disconnect_file, require
from agent_gate.config.clients.model import ClientFile, GatewayEntry, Surroundings
from agent_gate.config.clients.registry import CLIENTS, servers

WRITTEN = Path(__file__).parent / "fixtures" / "written"
PLACE = Surroundings(Path("/home/ada"), Path("/home/ada/project"))
TIME = {"command": "uvx", "args": ["mcp-server-time"], "env": {"TIME_ZONE": "UTC"}}
OLD = {"type": "sse", "url": "https://example.com/sse"}
FOUND = [
    (
        "claude-code-2.1.197.json",
        0,
        {
            "remote": {
                "type": "http",
                "url": "https://example.com/mcp",
                "headers": {"Authorization": "Bearer abcdef0123456789"},
            }
        },
    ),
    (
        "claude-code-2.1.197.json",
        1,
        {"local-only": {"cwd": "/home/ada/project", "command": "npx", "args": ["-y", "thing"]}, "old": OLD},
    ),
    ("claude-code-2.1.197.mcp.json", 2, {"time": TIME}),
    (
        "codex-0.166.0.toml",
        0,
        {
            "time": TIME,
            "far": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${FAR_TOKEN}"}},
        },
    ),
    (
        "gemini-0.61.0.json",
        0,
        {
            "far": {
                "type": "http",
                "url": "https://example.com/mcp",
                "headers": {"X-Api-Key": "topsecretvalue123"},
            },
            "old": OLD,
            "time": {**TIME, "timeout": 5.0},
        },
    ),
]


def place_of(name: str, index: int) -> ClientFile:
    client = next(one for one in CLIENTS if name.startswith(one))
    return CLIENTS[client].files(PLACE)[index]


@pytest.mark.parametrize(("name", "index", "expected"), FOUND)
def test_the_servers_that_a_client_wrote_are_read(name, index, expected):
    found = servers(place_of(name, index), (WRITTEN / name).read_text(), PLACE)
    assert {one.name: one.entry for one in found} == expected


@pytest.mark.parametrize("name", sorted({name for name, _, _ in FOUND}))
def test_a_file_that_a_client_wrote_comes_back_byte_for_byte(name, tmp_path):
    index = next(index for other, index, _ in FOUND if other == name)
    here = place_of(name, index)
    path = tmp_path / name
    before = (WRITTEN / name).read_bytes()
    path.write_bytes(before)
    backups = Backups(tmp_path / "state")
    entry = CLIENTS[here.client].write(GatewayEntry("http://127.0.0.1:8443"))
    connect_file(backups, ClientFile(here.client, path, here.scope, here.block), entry, [])
    assert b"agent-gate" in path.read_bytes()
    [connection] = require(backups, here.client)
    assert disconnect_file(backups, connection) is True
    assert path.read_bytes() == before
