"""`import`, `connect` and `disconnect` as a person runs them, on files as the clients write them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.gateway import Api, running
from tests.wsgate import files

from agent_gate.cli.commands.connect import command as connect
from agent_gate.cli.commands.disconnect import command as disconnect
from agent_gate.cli.commands.import_ import command as import_
from agent_gate.cli.commands.init import NOTHING, Wanted, write
from agent_gate.config.clients.model import Surroundings
from agent_gate.config.clients.registry import CLIENTS
from agent_gate.config.load import load

FIXTURES = Path(__file__).parent / "fixtures"
SECRETS = [
    "s3cret",
    "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "hunter2hunter2",
    "tut_0123456789abcdef",
    "abc123def456",
]


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home with the files of every client, and a project to work in."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in (
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
        "CODEX_HOME",
        "AGENT_TOKEN",
        "AGENT_GATE_URL",
        "AGENT_GATE_CA",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(project)
    place = Surroundings(tmp_path, project)
    for client in CLIENTS.values():
        file = client.files(place)[0].path
        source = next(FIXTURES.glob(f"{client.name}.*"))
        path = file.with_suffix(source.suffix) if client.name == "opencode" else file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source.read_bytes())
    return tmp_path


def run(command, *args, code=0, **more):
    done = CliRunner().invoke(command, list(args), catch_exceptions=False, **more)
    assert done.exit_code == code, done.output
    return done


def test_a_table_shows_every_server_of_every_client(home):
    out = run(import_).output
    assert "CLIENT" in out
    for expected in (
        "Claude Desktop",
        "~/.cursor/mcp.json",
        "my server",
        "figma (off)",
        "Gemini CLI",
        "perplexity",
    ):
        assert expected in out
    assert "pass --all" in out
    assert not Path("config.yaml").exists()


def test_importing_moves_secrets_out_and_the_result_can_be_loaded(home, monkeypatch):
    out = run(import_, "--all").output
    config, secrets = Path("config.yaml").read_text(), Path(".env").read_text()
    for secret in SECRETS:
        assert secret not in config
        assert secret not in out
        assert secret in secrets
    assert Path(".env").stat().st_mode & 0o777 == 0o600
    variables = dict(line.split("=", 1) for line in secrets.splitlines())
    env = {name: value.strip("'") for name, value in variables.items()}
    asked = (
        "TAVILY_API_KEY",
        "PERPLEXITY_KEY",
        "AUTH_TOKEN",
        "MY_TOKEN",
        "DB_CONNECTION_STRING",
        "EXTERNAL_API_KEY",
    )
    env |= dict.fromkeys((*asked, "GITHUB_PERSONAL_ACCESS_TOKEN", "FIGMA_OAUTH_TOKEN", "DOCS_TOKEN"), "set")
    loaded = load(
        Path("config.yaml"),
        env={**env, "GITHUB_PERSONAL_ACCESS_TOKEN": variables["GITHUB_PERSONAL_ACCESS_TOKEN"].strip("'")},
    )
    servers = loaded.settings.sources["servers"]
    assert len(servers) == 26
    assert servers["postgres"].args[-1] == "postgresql://ada:s3cret@localhost:5432/app"
    assert servers["sentry"].headers == {"X-API-Key": "abc123def456"}
    assert servers["figma"].enabled is False


def test_variables_that_nobody_has_set_are_named_because_the_gateway_will_not_start(home, monkeypatch):
    monkeypatch.setenv("DB_CONNECTION_STRING", "known")
    out = run(import_, "gemini", "vscode", "codex", "--all").output
    assert (
        "Set before the gateway starts, in .env or the environment: EXTERNAL_API_KEY, MY_TOKEN, PERPLEXITY_KEY"
        in out
    )
    assert "FIGMA_OAUTH_TOKEN" not in out, "its server is switched off"


def test_the_variables_of_a_file_that_a_client_names_come_along(home):
    Path("keys").write_text("MAIL_TOKEN=a-token-of-the-mail-server\nREGION=eu\nMODE=file\n")
    entry = {"command": "mail", "envFile": "${workspaceFolder}/keys", "env": {"MODE": "own"}}
    Path(".vscode").mkdir()
    Path(".vscode/mcp.json").write_text(json.dumps({"servers": {"mail": entry}}))
    run(import_, "vscode", "--pick", "mail")
    assert "a-token" not in Path("config.yaml").read_text()
    server = load(Path("config.yaml"), env={}).settings.sources["servers"]["mail"]
    assert server.env == {"MAIL_TOKEN": "a-token-of-the-mail-server", "REGION": "eu", "MODE": "own"}


def test_taking_over_a_clients_servers_names_the_variables_they_need(home):
    done = run(connect, "windsurf", "--replace", "--url", "http://127.0.0.1:1")
    assert "in .env or the environment: AUTH_TOKEN" in done.stderr


def test_importing_again_finds_everything_here_already(home):
    run(import_, "--all")
    before = Path("config.yaml").read_bytes()
    out = run(import_, "--all").output
    assert "yes, as postgres" in out
    assert Path("config.yaml").read_bytes() == before


def test_a_dry_run_shows_the_difference_and_writes_nothing(home):
    out = run(import_, "cursor", "--all", "--dry-run").output
    assert "Would add linear (http, from Cursor)" in out
    assert "+servers:" in out
    assert "s3cret" not in out
    assert not Path("config.yaml").exists()
    assert not Path(".env").exists()


def test_json_names_everything_and_shows_no_secret(home):
    out = run(import_, "--json", "--all").output
    said = json.loads(out)
    assert {
        "client": "windsurf",
        "server": "memory",
        "transport": "stdio",
        "enabled": False,
        "here": None,
    }.items() <= next(one for one in said["servers"] if one["server"] == "memory").items()
    assert "CONTEXT7_API_KEY" in said["variables"]
    assert said["written"] is True
    assert all(secret not in out for secret in SECRETS)


def test_named_servers_are_picked_and_comments_of_our_file_stay(home):
    Path("config.yaml").write_text("# mine\nservers:\n  time: {command: mcp-server-time}  # the clock\n")
    run(import_, "--pick", "linear")
    assert Path("config.yaml").read_text() == (
        "# mine\nservers:\n  time: {command: mcp-server-time}  # the clock\n"
        '  linear: {url: "https://mcp.linear.app/sse"}\n'
    )


def test_servers_taken_into_what_init_wrote_stand_one_per_line(home):
    write(Path(), Wanted(NOTHING, "me"))
    run(import_, "--all")
    lines = Path("config.yaml").read_text().partition("mcpServers:\n")[2].splitlines()
    assert len(lines) == 26
    assert all(line.startswith("  ") for line in lines)


def test_two_servers_of_one_name_are_kept_apart(home):
    run(import_, "--all")
    config = Path("config.yaml").read_text()
    assert "\n  github: " in config
    assert "\n  vscode-github: " in config
    assert "\n  goose-github: " in config


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_imported(home):
    (home / ".cursor" / "mcp.json").write_text("{ broken")
    done = run(import_, "cursor", "windsurf", "--all")
    assert "mcp.json:1" in done.output
    assert "Added memory" in done.output


def test_a_servers_file_of_another_client_is_never_written(home):
    theirs = '{"mcpServers": {"linear": {"command": "theirs"}}}'
    Path("mcp.json").write_text(theirs)
    Path("config.yaml").write_text("servers: ./mcp.json\n")
    run(import_, "cursor", "--pick", "linear")
    assert Path("mcp.json").read_text() == theirs
    assert set(load(Path("config.yaml"), env={}).settings.sources["servers"]) == {"linear", "cursor-linear"}


def test_a_servers_file_in_the_home_folder_is_added_to(home):
    (home / "ours.yaml").write_text("servers: {}\n")
    Path("config.yaml").write_text("servers: ~/ours.yaml\n")
    run(import_, "cursor", "--pick", "linear")
    assert "linear" in (home / "ours.yaml").read_text()
    assert "linear" in load(Path("config.yaml"), env={}).settings.sources["servers"]


def test_imported_servers_get_keys_with_which_the_configuration_loads(home):
    program = home / "My Apps" / "run"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    names = ["homeassistant", "my-server", "my_server", "my_server__more", "notes"]
    servers = {name: {"command": str(program), "args": [name]} for name in names}
    (home / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    Path("config.yaml").write_text(
        "services: {homeassistant: {url: 'http://127.0.0.1'}}\nhosts: {notes: {socket: ./s}}\n"
    )
    run(import_, "cursor", "--all")
    loaded = load(Path("config.yaml"), env={}).settings.sources["servers"]
    assert [server.args for server in loaded.values()] == [(name,) for name in names]


def test_secrets_of_any_text_are_the_same_after_the_import(home):
    values = {"A_TOKEN": "it's", "PRIVATE_KEY": "-----BEGIN\nabc\n-----END\n"}
    entry = {"mcpServers": {"one": {"command": "x", "env": values}}}
    (home / ".cursor" / "mcp.json").write_text(json.dumps(entry))
    run(import_, "cursor", "--all")
    assert load(Path("config.yaml"), env={}).settings.sources["servers"]["one"].env == values


def test_a_clients_file_that_is_not_text_is_named_and_left_alone(home):
    file = home / ".cursor" / "mcp.json"
    file.write_bytes(b'{"a": "\xff"}')
    assert "mcp.json: is not UTF-8" in run(connect, "cursor", "--url", "http://127.0.0.1:5", code=8).output
    assert file.read_bytes() == b'{"a": "\xff"}'


@pytest.mark.parametrize("name", list(CLIENTS))
def test_a_client_is_connected_and_put_back_byte_for_byte(home, name, monkeypatch):
    monkeypatch.setenv("AGENT_TOKEN", "token-of-the-agent")
    place = Surroundings(home, Path.cwd())
    file = next(one.path for one in CLIENTS[name].files(place) if one.path.is_file())
    before = file.read_bytes()
    out = run(connect, name, "--url", "http://127.0.0.1:8443", "--replace").output
    assert str(file) in out
    after = file.read_text()
    assert "http://127.0.0.1:8443/mcp" in after
    assert "token-of-the-agent" not in after
    assert Path("config.yaml").exists()
    out = run(disconnect, name).output
    assert "byte for byte" in out
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    "second",
    [
        {"command": "npx", "args": ["-y", "mail"], "env": {"MAIL_TOKEN": "token-of-the-second-account"}},
        {
            "command": "npx",
            "args": ["-y", "mail"],
            "env": {"MAIL_TOKEN": "token-of-the-first-account", "BOX": "b"},
        },
        {
            "command": "npx",
            "args": ["-y", "mail"],
            "env": {"MAIL_TOKEN": "token-of-the-first-account"},
            "cwd": "/b",
        },
        {"command": "npx", "args": ["-y", "mail", "--token", "token-of-the-second-account"]},
        {"url": "https://mail.example/mcp", "headers": {"Authorization": "Bearer of-the-second-account"}},
        {"url": "https://mail.example/mcp?token=token-of-the-second-account"},
    ],
)
def test_a_second_account_of_a_server_is_taken_over_too(home, second):
    first = json.loads(json.dumps(second).replace("second", "first"))
    if first == second:
        first = {
            "command": "npx",
            "args": ["-y", "mail"],
            "env": {"MAIL_TOKEN": "token-of-the-first-account"},
        }
    file = home / ".cursor" / "mcp.json"
    for name, entry in (("mail", first), ("mine", second)):
        file.write_text(json.dumps({"mcpServers": {name: entry}}))
        run(connect, "cursor", "--url", "http://127.0.0.1:8443", "--replace")
        run(disconnect, "cursor")
    settings = load(Path("config.yaml"), env={}).settings
    assert list(settings.sources["servers"]) == ["mail", "mine"]
    assert settings.sources["servers"]["mail"] != settings.sources["servers"]["mine"]
    before = Path("config.yaml").read_bytes()
    run(connect, "cursor", "--url", "http://127.0.0.1:8443", "--replace")
    assert Path("config.yaml").read_bytes() == before


def test_a_client_that_passes_no_environment_gets_a_token_file_of_its_own(home, monkeypatch):
    done = run(connect, "claude-desktop", "--url", "http://127.0.0.1:8443", code=8)
    assert "--token-file" in done.output
    monkeypatch.setenv("AGENT_TOKEN", "token-of-the-agent")
    entry = json.loads(run(connect, "claude-desktop", "--url", "http://127.0.0.1:8443", "--json").output)[
        "entry"
    ]
    file = Path(entry["args"][entry["args"].index("--token-file") + 1])
    assert file.read_text() == "token-of-the-agent"
    assert file.stat().st_mode & 0o777 == 0o600
    assert Path(entry["command"]).is_absolute()
    run(disconnect, "claude-desktop")
    assert not file.exists()


def test_the_gateways_own_certificate_and_token_are_used_where_they_are(home):
    for path in (Path("data/tls/gateway.crt"), Path("data/agent.token")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    entry = json.loads(run(connect, "cursor", "--json").output)["entry"]
    assert entry["args"] == [
        "bridge",
        "https://127.0.0.1:8443/mcp",
        "--token-file",
        str(Path("data/agent.token").absolute()),
        "--ca",
        str(Path("data/tls/gateway.crt").absolute()),
    ]


@pytest.mark.parametrize(
    ("gateway", "url"),
    [
        ("gateway: {port: 9999}", "https://127.0.0.1:9999/mcp"),
        ("gateway: {host: 0.0.0.0, port: '${PORT:-9998}'}", "https://127.0.0.1:9998/mcp"),
        ("agent: {token: '${NOT_SET}'}", "https://127.0.0.1:8443/mcp"),
    ],
)
def test_the_gateways_address_is_that_of_its_file(home, gateway, url):
    Path("gate").mkdir()
    Path("gate/config.yaml").write_text(gateway)
    found = json.loads(run(connect, "--config", "gate/config.yaml", "--json").output)
    assert found["claude-code"]["entry"]["url"] == url


def test_a_gateway_on_any_free_port_must_run_or_be_named(home):
    Path("config.yaml").write_text("gateway: {port: 0}")
    assert "pass --url" in run(connect, "cursor", code=8).output
    assert run(connect, "cursor", "--url", "http://127.0.0.1:5").exit_code == 0


def test_what_a_client_needs_for_its_token_is_said_and_found_beside_the_configuration(home):
    Path("gate").mkdir()
    Path("gate/config.yaml").write_text("{}")
    Path("gate/.env").write_text("AGENT_TOKEN=token-of-an-agent\n")
    said = run(connect, "cursor", "--config", "gate/config.yaml").output
    assert "Cursor finds its token in AGENT_TOKEN" in said
    assert "set -a; . gate/.env" in said
    assert "AGENT_TOKEN" not in run(connect, "claude-desktop", "--config", "gate/config.yaml").output
    kept = home / ".local" / "state" / "agent-gate" / "tokens" / "claude-desktop"
    assert kept.read_text() == "token-of-an-agent"


def test_a_gateway_that_never_ran_is_to_be_started_before_a_client_can_trust_it(home):
    later = "start it, then run this again, so that Cursor trusts it"
    Path("config.yaml").write_text("{}")
    assert later in run(connect, "cursor").stderr
    assert later not in run(connect, "cursor", "--url", "https://gate.example").stderr
    Path("config.yaml").write_text("gateway: {tls: {cert: a.pem, key: a.key}}")
    assert later not in run(connect, "cursor").stderr
    Path("config.yaml").unlink()
    Path("data/tls").mkdir(parents=True)
    Path("data/tls/gateway.crt").write_text("made")
    assert later not in run(connect, "cursor").stderr


def test_a_token_that_the_gateway_made_is_named(home):
    Path("data").mkdir()
    Path("data/agent.token").write_text("made-by-the-gateway")
    said = run(connect, "cursor", "--url", "http://127.0.0.1:8443").output
    assert (
        "as after `export AGENT_TOKEN=$(cat data/agent.token)`, or pass --token-file data/agent.token" in said
    )
    assert "made-by-the-gateway" not in said


def test_a_dry_run_of_connect_prints_the_file_and_leaves_it(home):
    file = home / ".cursor" / "mcp.json"
    before = file.read_bytes()
    out = run(connect, "cursor", "--url", "http://127.0.0.1:8443", "--replace", "--dry-run").output
    assert list(json.loads(out)["mcpServers"]) == ["agent-gate"]
    assert file.read_bytes() == before
    assert not Path("config.yaml").exists()


def test_a_dry_run_keeps_no_token(home, monkeypatch):
    monkeypatch.setenv("AGENT_TOKEN", "token-of-the-agent")
    out = run(connect, "claude-desktop", "--url", "http://127.0.0.1:8443", "--dry-run").output
    assert str(home / ".local/state/agent-gate/tokens/claude-desktop") in out
    assert not (home / ".local").exists()


def test_the_project_file_is_written_where_it_is_asked_for(home):
    run(connect, "claude-code", "--project", "--url", "http://127.0.0.1:8443")
    said = json.loads(Path(".mcp.json").read_text())
    assert said["mcpServers"]["agent-gate"]["headers"] == {"Authorization": "Bearer ${AGENT_TOKEN}"}
    run(disconnect, "claude-code")
    assert not Path(".mcp.json").exists()


def test_connect_alone_prints_a_card_per_client(home):
    out = run(connect, "--url", "http://127.0.0.1:8443").output
    for client in CLIENTS.values():
        assert f"── {client.title} ({client.name})" in out
    assert "claude mcp add --transport http agent-gate http://127.0.0.1:8443/mcp" in out
    assert 'bearer_token_env_var = "AGENT_TOKEN"' in out
    said = json.loads(run(connect, "--url", "http://127.0.0.1:8443", "--json").output)
    assert said["windsurf"]["entry"]["serverUrl"] == "http://127.0.0.1:8443/mcp"


def test_disconnecting_what_is_not_connected_says_so(home):
    assert "nothing to put back" in run(disconnect, "zed", code=8).output


def test_connect_outside_the_gateways_folder_guesses_no_address(home):
    before = (home / ".cursor" / "mcp.json").read_bytes()
    done = run(connect, "cursor", code=8)
    assert "--config FILE" in done.output
    assert "--url" in done.output
    assert (home / ".cursor" / "mcp.json").read_bytes() == before


def test_the_printed_lines_work_from_any_folder(home):
    folder = Path("my gate")
    folder.mkdir()
    (folder / "config.yaml").write_text("gateway: {port: 9999}")
    line = f"agent-gate connect cursor --config '{(folder / 'config.yaml').absolute()}'"
    assert line in run(connect, "--config", str(folder / "config.yaml")).output
    assert (
        "agent-gate connect cursor --url http://127.0.0.1:5"
        in run(connect, "--url", "http://127.0.0.1:5").output
    )


@pytest.mark.parametrize("name", list(CLIENTS))
def test_no_client_with_tls_depends_on_a_variable(home, name, monkeypatch):
    monkeypatch.setenv("AGENT_TOKEN", "token-of-the-agent")
    url = ["--url", "https://127.0.0.1:8443", "--fingerprint", "sha256:" + "a" * 64]
    entry = json.loads(run(connect, name, *url, "--json").output)["entry"]
    kept = home / ".local/state/agent-gate/tokens" / name
    assert str(kept) in json.dumps(entry)
    assert kept.read_text() == "token-of-the-agent"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with Api() as api, running(tmp_path_factory.mktemp("gate"), files(api), "--insecure") as started:
        yield started


def test_each_client_becomes_an_agent_of_its_own_and_disconnect_takes_it_back(home, gateway):
    config = ["--config", str(gateway.folder / "config.yaml")]
    entry = json.loads(run(connect, "cursor", *config, "--json").output)["entry"]
    file = Path(entry["args"][entry["args"].index("--token-file") + 1])
    assert file.stat().st_mode & 0o777 == 0o600
    named = {agent["name"] for agent in gateway.admin.get("/api/agents")}
    assert "cursor" in named
    assert gateway.request("GET", "/api/tools", token=file.read_text()).status == 200
    again = json.loads(run(connect, "cursor", *config, "--json").output)["entry"]
    assert again == entry, "the agent that is there already is used again"
    token = file.read_text()
    run(disconnect, "cursor")
    assert not list(file.parent.iterdir())
    assert gateway.request("GET", "/api/tools", token=token).status == 401


def test_a_card_names_the_token_file_that_connecting_makes(home, gateway):
    config = ["--config", str(gateway.folder / "config.yaml"), "--stdio"]
    cards = json.loads(run(connect, *config, "--json").output)
    tried = run(connect, "codex", *config, "--dry-run").output
    for name in ("claude-desktop", "codex"):
        entry = json.loads(run(connect, name, *config, "--json").output)["entry"]
        assert cards[name]["entry"] == entry
        assert Path(entry["args"][entry["args"].index("--token-file") + 1]).is_file()
        assert "AGENT_TOKEN" not in json.dumps(entry)
        run(disconnect, name)
    assert cards["codex"]["entry"]["args"][3] in tried


def test_an_agent_of_that_name_which_somebody_else_made_is_left_alone(home, gateway):
    gateway.admin.request("POST", "/api/agents", {"name": "zed"})
    said = run(connect, "zed", "--config", str(gateway.folder / "config.yaml")).output
    assert "Zed is the agent zed-2 in questions and in the record." in said
    assert {"zed", "zed-2"} <= {agent["name"] for agent in gateway.admin.get("/api/agents")}
    run(disconnect, "zed")
    assert "zed" in {agent["name"] for agent in gateway.admin.get("/api/agents")}


def test_a_projects_file_names_no_file_of_one_users_home(home, gateway):
    run(connect, "claude-code", "--project", "--config", str(gateway.folder / "config.yaml"))
    assert str(home) not in Path(".mcp.json").read_text()
    run(disconnect, "claude-code")


def test_servers_that_claude_code_keeps_for_any_project_are_taken_over(home):
    """Each with the folder in which Claude Code would have started it."""
    there = {"mcpServers": {"notes": {"command": "./notes", "args": ["${workspaceFolder}/n"]}}}
    own = {
        "projects": {
            "/srv/one": there,
            "/srv/broken": 5,
            str(Path.cwd()): {"mcpServers": {"here": {"url": "http://h"}}},
        }
    }
    (home / ".claude.json").write_text(json.dumps(own))
    run(import_, "claude-code", "--all")
    servers = load(Path("config.yaml"), env={}).settings.sources["servers"]
    assert {"notes", "here"} <= set(servers)
    assert (str(servers["notes"].cwd), servers["notes"].args) == ("/srv/one", ("/srv/one/n",))


def test_an_import_goes_into_the_files_that_are_named(home):
    Path("gate").mkdir()
    run(import_, "claude-desktop", "--all", "--config", "gate/own.yaml", "--env-file", "gate/own.env")
    assert "servers:" in Path("gate/own.yaml").read_text()
    assert "=" in Path("gate/own.env").read_text()
    assert Path("gate/own.env").stat().st_mode & 0o777 == 0o600
    assert {path.name for path in Path("gate").iterdir()} == {"own.yaml", "own.env"}


def test_in_the_home_folder_each_file_is_read_once(home, monkeypatch):
    """There a client's own file is the project's too."""
    monkeypatch.chdir(home)
    found = json.loads(run(import_, "cursor", "codex", "gemini", "--json").stdout)["servers"]
    places = [(one["file"], one["server"]) for one in found]
    assert len(places) == len(set(places)) > 0


def test_what_to_do_after_an_import_can_be_typed_as_it_stands(home):
    new = run(import_, "cursor", "--all", "--config", "new/config.yaml").output
    assert "new/config.yaml is new. Next: agent-gate serve --config new/config.yaml" in new
    more = run(import_, "windsurf", "--all", "--config", "new/config.yaml").output
    assert "Next: agent-gate connect CLIENT --replace --config new/config.yaml, so that" in more


def test_a_gateway_is_the_same_one_from_whichever_folder_it_is_named(home, gateway, monkeypatch):
    whole = ["--config", str(gateway.folder / "config.yaml")]
    first = json.loads(run(connect, "cursor", *whole, "--json").output)["entry"]
    monkeypatch.chdir(gateway.folder.parent)
    inside = f"{gateway.folder.name}/../{gateway.folder.name}/config.yaml"
    again = json.loads(run(connect, "cursor", "--config", inside, "--json").output)["entry"]
    assert again["args"] == first["args"]
    assert "cursor-2" not in {agent["name"] for agent in gateway.admin.get("/api/agents")}
    card = json.loads(run(connect, "--config", inside, "--json").output)["cursor"]
    assert card["command"][-2:] == whole
    run(disconnect, "cursor")


def test_a_certificate_is_named_by_the_folder_it_is_in(home):
    Path("gate/data/tls").mkdir(parents=True)
    Path("gate/data/tls/ca.crt").write_text("CERT")
    Path("gate/config.yaml").write_text("gateway: {port: 9443}\n")
    Path("gate/.env").write_text("AGENT_TOKEN=0123456789abcdef\n")
    entry = json.loads(run(connect, "zed", "--config", "gate/../gate/config.yaml", "--json").output)["entry"]
    assert entry["args"][entry["args"].index("--ca") + 1] == str(Path("gate/data/tls/ca.crt").resolve())


def test_a_client_that_needs_the_bridge_is_an_agent_of_its_own_in_a_project_too(home, gateway):
    config = ["--config", str(gateway.folder / "config.yaml")]
    said = run(connect, "claude-code", "--project", "--stdio", *config).output
    assert "keep it out of what you share" in said
    entry = json.loads(Path(".mcp.json").read_text())["mcpServers"]["agent-gate"]
    token = Path(entry["args"][entry["args"].index("--token-file") + 1]).read_text()
    assert "claude-code" in {agent["name"] for agent in gateway.admin.get("/api/agents")}
    run(disconnect, "claude-code")
    assert gateway.request("GET", "/api/tools", token=token).status == 401


def test_servers_that_stay_beside_the_gateway_are_named_when_it_replaces_the_others(home):
    there = {"mcpServers": {"notes": {"command": "./notes"}}}
    own = {"mcpServers": {"one": {"url": "http://one"}}, "projects": {"/srv/one": there}}
    (home / ".claude.json").write_text(json.dumps(own))
    url = ["--url", "http://127.0.0.1:8443"]
    said = run(connect, "claude-code", "--replace", *url).output
    assert "took over one into" in said
    assert (
        "not behind the gateway: notes (in /srv/one). Take them over with `agent-gate import claude-code"
        in said
    )
    run(disconnect, "claude-code")
    (home / ".claude.json").write_text(json.dumps({**own, "projects": {}}))
    assert "not behind" not in run(connect, "claude-code", "--replace", *url).output


def test_a_card_names_the_file_that_connecting_writes(home):
    cards = json.loads(run(connect, "--url", "http://127.0.0.1:8443", "--json").output)
    assert cards["opencode"]["file"].endswith("opencode.jsonc")


def test_an_agent_whose_gateway_does_not_run_is_revoked_from_any_folder_later(home, gateway):
    run(connect, "windsurf", "--config", str(gateway.folder / "config.yaml"))
    [note] = (home / ".local/state/agent-gate/tokens").glob("windsurf@*.agent")
    note.write_text("windsurf\n/nowhere/admin.sock")
    said = run(disconnect, "windsurf").output
    assert "agent-gate agents revoke windsurf --admin-socket /nowhere/admin.sock" in said
    gateway.admin.request("DELETE", "/api/agents/windsurf")
