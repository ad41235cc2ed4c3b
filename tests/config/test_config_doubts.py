"""A configuration that says less than it means is told so, with the place."""

import re

import pytest

from agent_gate.config.configuration import Configuration, doubts_of
from agent_gate.config.options import Options
from agent_gate.config.settings import Settings
from agent_gate.config.shape import fixed_at_start
from agent_gate.errors import ConfigError

AGENT = "agents: {a: {token: 0123456789abcdef-token}}\n"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("gateway:\n  id: ${NAME", "config.yaml:2:7: gateway.id"),
        ("services:\n  s: {url: 'http://x', auth: {type: bearer, token: 'a${HA_TOKEN'}}", "config.yaml:2:52"),
        ("servers: {s: {command: x, args: ['${HA_TOKEN}', '--k=${HA_']}}", "config.yaml:1:49"),
    ],
)
def test_a_variable_that_is_not_closed_is_an_error(refused, text, place):
    message = refused(text)
    assert message.startswith(place)
    assert "${ without its }" in message


PLAIN = [
    ("services: {s: {url: 'http://ha.local:8123', auth: {type: bearer, token: abc}}}", "services.s.url", 21),
    ("servers: {s: {url: 'http://mcp.lan/mcp', auth: {type: bearer, token: abc}}}", "servers.s.url", 20),
    ("servers: {s: {url: 'http://mcp.lan/mcp', headers: {Authorization: abc}}}", "servers.s.url", 20),
    ("channels: [{type: webhook, url: 'http://hook.lan/', secret: abc}]", "channels[0].url", 33),
    ("servers: {s: {url: 'http://10.0.0.7/mcp', headers: {X-Api-Key: abc}}}", "servers.s.url", 20),
]


@pytest.mark.parametrize(("text", "key", "column"), PLAIN)
def test_a_credential_that_leaves_the_machine_in_the_clear_is_warned_about(load_text, text, key, column):
    [warning] = load_text(text).warnings
    assert warning.startswith(f"config.yaml:1:{column}: {key}: the credential goes to ")
    assert "abc" not in warning


@pytest.mark.parametrize(("text", "key", "column"), PLAIN)
@pytest.mark.parametrize(
    "there", ["http://127.0.0.1:1", "http://localhost", "http://[::1]:1", "https://far.example"]
)
def test_a_credential_that_nobody_can_read_on_the_way_is_no_matter(load_text, text, key, column, there):
    assert load_text(re.sub(r"http://[\w.:]+", there, text)).warnings == ()


def test_each_channel_whose_links_lead_nowhere_is_named_at_its_own_place(load_text):
    loaded = load_text(
        "messenger: {type: webhook, name: a, url: 'https://one.example/', format: ntfy}\n"
        "channels:\n"
        "  - {type: telegram, token: '1:a', chat_id: 1, allowed_users: [1]}\n"
        "  - {type: webhook, name: b, url: 'https://two.example/', format: ntfy}\n"
    )
    places = [doubt.partition(": ")[0] for doubt in doubts_of(loaded.settings, loaded)]
    assert places == ["config.yaml:1:12", "config.yaml:4:5"]


def test_plain_http_without_a_credential_is_no_matter(load_text):
    assert load_text("services: {s: {url: 'http://ha.local:8123'}}").warnings == ()


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "NODE_OPTIONS"]
)
@pytest.mark.parametrize("key", ["servers", "mcpServers"])
def test_a_variable_that_loads_other_code_into_a_server_is_warned_about(load_text, key, name):
    [warning] = load_text(f"{key}:\n  s:\n    command: x\n    env:\n      {name}: /tmp/a.so\n").warnings
    assert warning.startswith(f"config.yaml:5:7: {key}.s.env.{name}: makes the program load other code")


def test_an_ordinary_variable_of_a_server_is_no_matter(load_text):
    assert load_text("servers: {s: {command: x, env: {ENVIRONMENT: prod, OLD_PWD: x}}}").warnings == ()


def test_a_key_file_that_others_can_read_is_warned_about_where_it_is_named(folder, write):
    for name in "cert.pem", "tls.key":
        write(name, "x").chmod(0o644)
    config = write("config.yaml", f"{AGENT}gateway:\n  tls: {{cert: cert.pem, key: tls.key}}\n")
    own = write("data/audit.key", "x")
    own.chmod(0o640)
    first, second = Configuration(Options(config=config)).warnings()
    assert first.startswith("config.yaml:3:30: gateway.tls.key: ")
    assert first.endswith(f"can be read by others on this machine; run: chmod 600 {folder / 'tls.key'}")
    assert (
        second
        == f"{folder / 'data/audit.key'} can be read by others on this machine; run: chmod 600 {folder / 'data/audit.key'}"
    )
    for name in "tls.key", "data/audit.key":
        (folder / name).chmod(0o600)
    assert Configuration(Options(config=config)).warnings() == []


def test_serving_others_without_tls_is_warned_about(write):
    config = write("config.yaml", f"{AGENT}gateway:\n  host: 0.0.0.0\n")
    [warning] = Configuration(Options(config=config, insecure=True)).warnings()
    assert warning.startswith("config.yaml:3:9: gateway.host: --insecure serves 0.0.0.0 without TLS")
    assert Configuration(Options(config=config)).warnings() == []
    [warning] = Configuration(Options(config=config, insecure=True, host="::")).warnings()
    assert warning.startswith("--host: --insecure serves :: without TLS")
    assert Configuration(Options(config=config, insecure=True, host="127.0.0.1")).warnings() == []


def test_a_page_for_others_without_tls_is_warned_about_unless_that_is_said_of_it(write):
    config = write("config.yaml", f"{AGENT}admin:\n  host: 0.0.0.0\n")
    [warning] = Configuration(Options(config=config, insecure=True)).warnings()
    assert warning.startswith(
        "config.yaml:3:9: admin.host: --insecure serves the page at 0.0.0.0 without TLS"
    )
    assert Configuration(Options(config=config)).warnings() == []
    [warning] = Configuration(Options(config=config, insecure=True, admin_host="::")).warnings()
    assert warning.startswith("--admin-host: --insecure serves the page at :: without TLS")
    assert Configuration(Options(config=config, insecure=True, admin_host="127.0.0.1")).warnings() == []
    assert Configuration(Options(config=config, insecure=True, admin_tls="off")).warnings() == []


async def reload(configuration: Configuration) -> None:
    async with configuration.trial():
        pass


async def test_files_are_outdated_from_a_change_until_they_are_read_whoever_asked_for_it(write):
    config = write("config.yaml", AGENT)
    configuration = Configuration(Options(config=config))
    assert not configuration.is_outdated()
    write("config.yaml", f"{AGENT}gateway: {{port: 1}}\n")
    assert configuration.is_outdated()
    await reload(configuration)
    assert not configuration.is_outdated()
    write("config.yaml", f"{AGENT}gateway: {{port: none}}\n")
    with pytest.raises(ConfigError):
        await reload(configuration)
    assert not configuration.is_outdated()


async def test_a_file_that_is_written_while_it_is_read_is_read_once_more(write):
    config = write("config.yaml", AGENT)
    configuration = Configuration(Options(config=config))
    async with configuration.trial():
        write("config.yaml", f"{AGENT}gateway: {{port: 1}}\n")
    assert configuration.is_outdated()


@pytest.mark.parametrize("name", ["config.yaml", "permissions.yaml", "tools.yaml", "servers.yaml"])
@pytest.mark.parametrize("left", ["", "\n", "# all gone\n", "---\n"])
async def test_a_file_that_was_emptied_is_not_taken_over_at_a_reload(write, name, left):
    write("permissions.yaml", "rules: [{pattern: '*', action: deny}]\n")
    write("tools.yaml", "tools: {t: {request: {method: GET, path: /}}}\n")
    write("servers.yaml", "servers: {s: {command: cat}}\n")
    services = "services: {h: {url: 'http://127.0.0.1', tools: tools.yaml}}\nservers: servers.yaml\n"
    config = write("config.yaml", AGENT + services)
    configuration = Configuration(Options(config=config))
    before = configuration.loaded
    write(name, left)
    with pytest.raises(ConfigError, match=f"{name}: the file is empty.*write {{}}"):
        await reload(configuration)
    assert configuration.loaded is before
    write(name, "{}\n")
    await reload(configuration)
    assert configuration.loaded is not before


FIXED = {
    "gateway.id": "gateway: {id: other}",
    "gateway.tenant": "gateway: {tenant: other}",
    "gateway.host": "gateway: {host: 127.0.0.2}",
    "gateway.port": "gateway: {port: 1}",
    "gateway.proxies": "gateway: {proxies: [10.0.0.1]}",
    "gateway.reuse_port": "gateway: {reuse_port: true}",
    "admin.host": "admin: {host: 127.0.0.2}",
    "admin.port": "admin: {port: 1}",
    "admin.tls": "admin: {tls: off}",
    "admin.socket": "admin: {socket: other.sock}",
    "peers.host": "peers: {host: 127.0.0.2}",
    "peers.port": "peers: {port: 1}",
    "storage": "storage: {path: other.db}",
    "telemetry": "telemetry: {otlp_endpoint: 'http://127.0.0.1:1'}",
    "log": "log: {requests: true}",
    "results.retention_days": "results: {retention_days: 1}",
    "limits.hold": "limits: {hold: 1}",
    "limits.max_request_bytes": "limits: {max_request_bytes: 2048}",
    "limits.max_connections": "limits: {max_connections: 16}",
}


@pytest.mark.parametrize(("key", "text"), FIXED.items())
async def test_a_change_of_what_is_fixed_at_the_start_is_named(write, key, text):
    config = write("config.yaml", f"{AGENT}peers: {{}}\n")
    configuration = Configuration(Options(config=config))
    write("config.yaml", AGENT + ("" if key.startswith("peers") else "peers: {}\n") + text)
    await reload(configuration)
    assert configuration.warnings() == [f"{key} was changed; it counts after a restart"]


async def test_a_listener_for_peers_that_is_switched_on_or_off_is_named(write):
    for before, after in (("{}", "null"), ("null", "{}")):
        configuration = Configuration(Options(config=write("config.yaml", f"{AGENT}peers: {before}\n")))
        write("config.yaml", f"{AGENT}peers: {after}\n")
        await reload(configuration)
        assert [warning.split()[0] for warning in configuration.warnings()] == ["peers.host", "peers.port"]


def test_nothing_else_is_fixed_at_the_start():
    assert set(fixed_at_start(Settings)) == FIXED.keys()


def test_an_empty_file_at_the_start_is_said(load_text):
    [warning] = load_text("# nothing yet\n").warnings
    assert warning == "config.yaml:1:1: the file is empty, so nobody may come in and there are no tools"
