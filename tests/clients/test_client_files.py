"""Files as each client writes them: found, read, extended and put back."""

import json
import resource
import tomllib
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_gate.config.clients.backup import Backups, connect_file, disconnect_file, require
from agent_gate.config.clients.change import connect, disconnect
from agent_gate.config.clients.model import ClientFile, GatewayEntry, Surroundings
from agent_gate.config.clients.registry import CLIENTS, client, find, read, servers, target
from agent_gate.config.files.yamlfile import parse_yaml
from agent_gate.errors import ConfigError

FIXTURES = Path(__file__).parent / "fixtures"
HOME, WORK = Path("/home/ada"), Path("/home/ada/project")
PLACE = Surroundings(HOME, WORK)
GATEWAY = GatewayEntry("http://127.0.0.1:8443")
FILES = {
    "claude-desktop": "claude-desktop.json",
    "claude-code": "claude-code.json",
    "cursor": "cursor.json",
    "vscode": "vscode.json",
    "windsurf": "windsurf.json",
    "codex": "codex.toml",
    "gemini": "gemini.json",
    "goose": "goose.yaml",
    "opencode": "opencode.jsonc",
    "zed": "zed.json",
    "cline": "cline.json",
}
EXPECTED = {
    "claude-desktop": {
        "filesystem": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-filesystem", "/Users/ada/Desktop"],
        },
        "github": {
            "command": "docker",
            "args": [
                "run",
                "-i",
                "--rm",
                "-e",
                "GITHUB_PERSONAL_ACCESS_TOKEN",
                "ghcr.io/github/github-mcp-server",
            ],
            "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_0123456789abcdefghijABCDEFGHIJ012345"},
        },
    },
    "claude-code": {
        "notion": {"type": "http", "url": "https://mcp.notion.com/mcp"},
        "sentry": {
            "type": "sse",
            "url": "https://mcp.sentry.dev/sse",
            "headers": {"X-API-Key": "abc123def456"},
        },
    },
    "cursor": {
        "linear": {"url": "https://mcp.linear.app/sse"},
        "postgres": {
            "command": "npx",
            "args": [
                "-y",
                "@modelcontextprotocol/server-postgres",
                "postgresql://ada:s3cret@localhost:5432/app",
            ],
        },
        "search": {
            "command": "npx",
            "args": ["-y", "tavily-mcp@0.2.3"],
            "env": {"TAVILY_API_KEY": "${env:TAVILY_API_KEY}"},
        },
    },
    "vscode": {
        "github": {"type": "http", "url": "https://api.githubcopilot.com/mcp/"},
        "perplexity": {
            "command": "npx",
            "args": ["-y", "server-perplexity-ask", "--root", "/home/ada/project/src"],
            "env": {"PERPLEXITY_API_KEY": "${PERPLEXITY_KEY}"},
        },
    },
    "windsurf": {
        "remote-http": {
            "url": "https://tools.example.com/mcp",
            "headers": {"API_KEY": "Bearer ${env:AUTH_TOKEN}"},
        },
        "memory": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]},
    },
    "codex": {
        "context7": {
            "command": "npx",
            "args": ["-y", "@upstash/context7-mcp"],
            "env": {"CONTEXT7_API_KEY": "ctx7sk-0a1b2c3d4e5f60718293"},
        },
        "figma": {
            "url": "https://mcp.figma.com/mcp",
            "headers": {"X-Figma-Region": "us-east-1", "Authorization": "Bearer ${FIGMA_OAUTH_TOKEN}"},
        },
        "my server": {"command": "python3", "args": ["-m", "my_server"], "env": {"MY_TOKEN": "${MY_TOKEN}"}},
    },
    "gemini": {
        "httpServer": {
            "type": "http",
            "url": "http://localhost:8082/stream",
            "headers": {"Authorization": "Bearer your-api-token-0123456789"},
            "timeout": 5.0,
        },
        "sseServer": {"type": "sse", "url": "http://localhost:8083/sse"},
        "pythonTools": {
            "command": "python",
            "args": ["-m", "my_mcp_server", "--port", "8080"],
            "env": {"DATABASE_URL": "${DB_CONNECTION_STRING}", "API_KEY": "${EXTERNAL_API_KEY}"},
            "cwd": "./mcp-servers/python",
        },
    },
    "goose": {
        "github": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-github"],
            "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "${GITHUB_PERSONAL_ACCESS_TOKEN}"},
            "timeout": 300,
        },
        "tutor": {
            "type": "http",
            "url": "https://tutor.example.com/mcp",
            "headers": {"Authorization": "Bearer tut_0123456789abcdef"},
            "timeout": 60,
        },
    },
    "opencode": {
        "everything": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-everything"],
            "env": {"MY_ENV_VAR": "plain"},
        },
        "docs": {"url": "https://docs.example.com/mcp", "headers": {"Authorization": "Bearer ${DOCS_TOKEN}"}},
    },
    "zed": {
        "mcp-server-time": {"command": "uvx", "args": ["mcp-server-time"]},
        "older": {"command": "node", "args": ["/opt/older/server.js", "--token=abcdef0123456789"]},
    },
    "cline": {
        "weather": {
            "command": "node",
            "args": ["/home/ada/weather/build/index.js"],
            "env": {"OPENWEATHER_API_KEY": "0123456789abcdef0123456789abcdef"},
        },
        "hosted": {"type": "http", "url": "https://hosted.example.com/mcp?api_key=hunter2hunter2"},
    },
}
OFF = {
    "windsurf": {"memory"},
    "codex": {"figma"},
    "goose": {"tutor"},
    "opencode": {"docs"},
    "cline": {"hosted"},
}
EVERY = pytest.mark.parametrize("name", list(CLIENTS))


def fixture(name: str) -> str:
    return (FIXTURES / FILES[name]).read_bytes().decode()


def file(name: str) -> ClientFile:
    return CLIENTS[name].files(PLACE)[0]


def plain(name: str, text: str) -> object:
    """What a reader that is not ours finds in the text."""
    if name == "codex":
        return tomllib.loads(text)
    if name == "goose":
        return parse_yaml(text, name).plain()
    return CLIENTS[name].syntax.read(text, name)


@EVERY
def test_the_servers_of_each_client_are_read(name):
    found = servers(file(name), fixture(name), PLACE)
    assert {one.name: one.entry for one in found} == EXPECTED[name]
    assert {one.name for one in found if not one.enabled} == OFF.get(name, set())


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "codex",
            '[mcp_servers.s]\ncommand = "s"\nenabled_tools = []\ndisabled_tools = ["wipe"]\ntool_timeout_sec = 7\n',
            {"include": [], "exclude": ["wipe"], "timeout": 7},
        ),
        (
            "gemini",
            '{"mcpServers": {"s": {"command": "s", "includeTools": ["get"], "excludeTools": ["wipe"], "timeout": 500}}}',
            {"include": ["get"], "exclude": ["wipe"], "timeout": 0.5},
        ),
        (
            "windsurf",
            '{"mcpServers": {"s": {"command": "s", "disabledTools": ["wipe"]}}}',
            {"exclude": ["wipe"]},
        ),
        (
            "goose",
            "extensions: {s: {type: stdio, cmd: s, available_tools: [get], timeout: 9}}",
            {"include": ["get"], "timeout": 9},
        ),
        ("goose", "extensions: {s: {type: stdio, cmd: s, available_tools: []}}", {}),
    ],
)
def test_what_a_client_was_told_of_a_servers_tools_comes_along(name, text, expected):
    [found] = servers(file(name), text, PLACE)
    assert found.entry == {"command": "s", **expected}


def test_a_project_of_claude_code_has_servers_in_the_users_own_file():
    _, inside, own = CLIENTS["claude-code"].files(PLACE)
    found = servers(inside, fixture("claude-code"), PLACE)
    assert [one.name for one in found] == ["local-db"]
    text = (FIXTURES / "claude-code-project.json").read_text()
    assert servers(own, text, PLACE)[0].entry["url"] == "${API_BASE_URL:-https://api.example.com}/mcp"


@EVERY
def test_connecting_adds_the_gateway_and_changes_no_other_line(name):
    before = fixture(name)
    after = connect(file(name), before, CLIENTS[name].write(GATEWAY))
    entry = servers_block(name, after)["agent-gate"]
    assert "8443" in json.dumps(entry)
    kept = iter(after.splitlines())
    missing = [
        line for line in before.splitlines() if line.rstrip(",") not in (other.rstrip(",") for other in kept)
    ]
    assert missing == []


def servers_block(name: str, text: str) -> dict:
    here = plain(name, text)
    for key in file(name).block:
        here = here[key]
    return here


def test_a_client_that_withholds_secrets_from_its_servers_names_the_bridges_token():
    bridged = CLIENTS["gemini"].write(GatewayEntry("http://127.0.0.1:8443", stdio=True))
    assert bridged["env"] == {"AGENT_TOKEN": "${AGENT_TOKEN}"}
    kept = CLIENTS["gemini"].write(GatewayEntry("http://127.0.0.1:8443", stdio=True, token_file="/t"))
    assert "env" not in kept


@EVERY
def test_connecting_can_replace_the_servers_that_were_there(name):
    after = connect(file(name), fixture(name), CLIENTS[name].write(GATEWAY), list(EXPECTED[name]))
    assert servers(file(name), after, PLACE) == []
    assert "agent-gate" in servers_block(name, after)
    for remark in ("comfortable", "Trusted folders", "keep this last", "Asked for once", "// servers"):
        assert (remark in fixture(name)) == (remark in after)


@EVERY
def test_connecting_twice_changes_only_our_entry(name):
    once = connect(file(name), fixture(name), CLIENTS[name].write(GATEWAY))
    again = connect(file(name), once, CLIENTS[name].write(GatewayEntry("http://127.0.0.1:9999")))
    assert again.count("agent-gate") == once.count("agent-gate")
    assert "9999" in again
    assert "8443" not in again


@EVERY
def test_a_file_that_does_not_exist_yet_is_made(name):
    text = connect(file(name), "", CLIENTS[name].write(GATEWAY))
    assert list(servers_block(name, text)) == ["agent-gate"]


@contextmanager
def no_file_larger_than(size):
    """Writing fails half-way, as it does where the disk is full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@EVERY
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_disconnecting_restores_the_file_byte_for_byte(name, ends, tmp_path):
    path = tmp_path / FILES[name]
    before = fixture(name).replace("\n", ends).encode()
    path.write_bytes(before)
    path.chmod(0o640)
    here = ClientFile(name, path, "user", file(name).block)
    backups = Backups(tmp_path / "state")
    names = [] if name == "goose" and ends == "\r\n" else list(EXPECTED[name])
    connect_file(backups, here, CLIENTS[name].write(GATEWAY), names)
    assert path.read_bytes() != before
    connect_file(backups, here, CLIENTS[name].write(GatewayEntry("http://127.0.0.1:1")), [])
    [connection] = require(backups, name)
    assert disconnect_file(backups, connection) is True
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o640
    assert backups.connections(name) == []


@EVERY
def test_disconnecting_a_file_changed_since_gives_back_the_servers_and_keeps_the_change(name):
    before = fixture(name)
    after = connect(file(name), before, CLIENTS[name].write(GATEWAY), list(EXPECTED[name]))
    mine = CLIENTS[name].syntax.put(
        after, file(name).block, "added-later", {"command": "x", "type": "stdio", "cmd": "x"}
    )
    back = disconnect(file(name), mine, before)
    assert set(servers_block(name, back)) == {*servers_block(name, before), "added-later"}
    assert {
        one.name: one.entry for one in servers(file(name), back, PLACE) if one.name in EXPECTED[name]
    } == EXPECTED[name]


@EVERY
def test_what_a_user_changed_between_two_connects_is_there_after_disconnecting(name, tmp_path):
    path = tmp_path / FILES[name]
    path.write_text(fixture(name))
    here = ClientFile(name, path, "user", file(name).block)
    backups = Backups(tmp_path / "state")
    connect_file(backups, here, CLIENTS[name].write(GATEWAY), list(EXPECTED[name]))
    later = {"command": "x", "type": "stdio", "cmd": "x"}
    path.write_text(CLIENTS[name].syntax.put(path.read_text(), here.block, "added-later", later))
    connect_file(backups, here, CLIENTS[name].write(GatewayEntry("http://127.0.0.1:1")), ["added-later"])
    [connection] = require(backups, name)
    assert disconnect_file(backups, connection) is True
    assert set(servers_block(name, path.read_text())) == {*servers_block(name, fixture(name)), "added-later"}


def test_a_disk_that_is_full_leaves_the_file_and_its_backup_as_they_were(tmp_path):
    path = tmp_path / "client" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {"mine": {"command": "y"}}}')
    here = ClientFile("cursor", path, "user", ("mcpServers",))
    backups = Backups(tmp_path / "state")
    connect_file(backups, here, CLIENTS["cursor"].write(GATEWAY), ["mine"])
    connected = path.read_bytes()
    with (
        no_file_larger_than(1500),
        pytest.raises(ConfigError, match=r"mcp\.json: the file cannot be written"),
    ):
        connect_file(backups, here, CLIENTS["cursor"].write(GatewayEntry(f"http://{'x' * 2000}")), [])
    assert path.read_bytes() == connected
    assert [one.name for one in path.parent.iterdir()] == ["mcp.json"]
    [connection] = require(backups, "cursor")
    assert disconnect_file(backups, connection) is True
    assert path.read_text() == '{"mcpServers": {"mine": {"command": "y"}}}'


def test_a_first_connect_that_cannot_be_written_leaves_nothing_to_put_back(tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text("{}")
    here, backups = ClientFile("cursor", path, "user", ("mcpServers",)), Backups(tmp_path / "state")
    with no_file_larger_than(1500), pytest.raises(ConfigError, match="cannot be written"):
        connect_file(backups, here, CLIENTS["cursor"].write(GatewayEntry(f"http://{'x' * 2000}")), [])
    assert backups.connections("cursor") == []


def test_a_damaged_note_of_a_connection_is_named(tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text("{}")
    here, backups = ClientFile("cursor", path, "user", ("mcpServers",)), Backups(tmp_path / "state")
    connect_file(backups, here, CLIENTS["cursor"].write(GATEWAY), [])
    (backups.place(path) / "connection.json").write_text("")
    with pytest.raises(ConfigError, match=r"connection\.json: is damaged"):
        backups.connections("cursor")


def test_a_file_that_was_made_for_the_gateway_is_removed_again(tmp_path):
    here = ClientFile("cursor", tmp_path / "new" / "mcp.json", "user", ("mcpServers",))
    backups = Backups(tmp_path / "state")
    connect_file(backups, here, CLIENTS["cursor"].write(GATEWAY), [])
    assert here.path.stat().st_mode & 0o777 == 0o600
    [connection] = backups.connections("cursor")
    assert disconnect_file(backups, connection) is True
    assert not here.path.exists()


def test_backups_are_readable_by_their_owner_only(tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {"x": {"command": "y", "env": {"TOKEN": "secret"}}}}')
    backups = Backups(tmp_path / "state")
    connect_file(
        backups, ClientFile("cursor", path, "user", ("mcpServers",)), CLIENTS["cursor"].write(GATEWAY), []
    )
    kept = backups.place(path)
    assert kept.stat().st_mode & 0o777 == 0o700
    assert (kept / "before").stat().st_mode & 0o777 == 0o600


def test_what_was_never_connected_cannot_be_disconnected(tmp_path):
    with pytest.raises(ConfigError, match="not connected"):
        require(Backups(tmp_path), "cursor")


def test_a_layout_that_cannot_be_edited_safely_is_left_alone():
    inline = 'mcp_servers = { a = { command = "x" } }\n'
    with pytest.raises(ConfigError, match="by hand"):
        connect(file("codex"), inline, CLIENTS["codex"].write(GATEWAY))


@pytest.mark.parametrize(
    ("platform", "name", "expected"),
    [
        (
            "darwin",
            "claude-desktop",
            "/home/ada/Library/Application Support/Claude/claude_desktop_config.json",
        ),
        ("linux", "claude-desktop", "/home/ada/.config/Claude/claude_desktop_config.json"),
        ("win32", "claude-desktop", "/roaming/Claude/claude_desktop_config.json"),
        ("linux", "claude-code", "/home/ada/.claude.json"),
        ("linux", "cursor", "/home/ada/.cursor/mcp.json"),
        ("darwin", "vscode", "/home/ada/Library/Application Support/Code/User/mcp.json"),
        ("linux", "vscode", "/home/ada/.config/Code/User/mcp.json"),
        ("linux", "windsurf", "/home/ada/.codeium/windsurf/mcp_config.json"),
        ("linux", "codex", "/home/ada/.codex/config.toml"),
        ("linux", "gemini", "/home/ada/.gemini/settings.json"),
        ("linux", "goose", "/home/ada/.config/goose/config.yaml"),
        ("win32", "goose", "/roaming/Block/goose/config/config.yaml"),
        ("linux", "opencode", "/home/ada/.config/opencode/opencode.json"),
        ("darwin", "zed", "/home/ada/.config/zed/settings.json"),
        ("win32", "zed", "/roaming/Zed/settings.json"),
        (
            "linux",
            "cline",
            "/home/ada/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        ),
    ],
)
def test_each_client_keeps_its_file_where_its_platform_has_it(platform, name, expected):
    place = Surroundings(HOME, WORK, platform, {"APPDATA": "/roaming"})
    assert str(CLIENTS[name].files(place)[0].path) == expected


def test_only_files_that_exist_are_found(tmp_path):
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor" / "mcp.json").write_text("{}")
    place = Surroundings(tmp_path, tmp_path / "project")
    assert [one.path for one in find(place)] == [tmp_path / ".cursor" / "mcp.json"]


def test_the_project_file_is_the_one_inside_the_project(tmp_path):
    place = Surroundings(tmp_path, tmp_path / "project")
    assert target("claude-code", place, project=True).path == tmp_path / "project" / ".mcp.json"
    with pytest.raises(ConfigError, match="no file per project"):
        target("windsurf", place, project=True)


def test_an_unknown_client_is_refused_with_those_there_are():
    with pytest.raises(ConfigError, match="choose one of claude-desktop, claude-code"):
        client("emacs")


def test_a_file_that_is_not_text_is_named(tmp_path):
    path = tmp_path / "mcp.json"
    path.write_bytes(b"\xff\xfe{")
    with pytest.raises(ConfigError, match=r"mcp\.json: is not UTF-8"):
        read(path)


@EVERY
def test_a_bridge_is_written_where_the_address_alone_is_not_enough(name):
    gateway = GatewayEntry("https://gate.home:8443/", token_file="/run/token", fingerprint="ab:cd")
    text = json.dumps(CLIENTS[name].write(gateway))
    assert "bridge" in text
    assert "https://gate.home:8443/mcp" in text
    assert "/run/token" in text
    assert "ab:cd" in text
