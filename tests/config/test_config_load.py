"""config.yaml as a whole: defaults, variables, agents, channels, and what is refused."""

from hashlib import sha256
from pathlib import Path

import pytest

from agent_gate.approval.channels.telegram import TelegramSettings
from agent_gate.approval.channels.webhook import WebhookSettings
from agent_gate.config.load import load
from agent_gate.config.services.section import SERVICES
from agent_gate.config.settings import Settings
from agent_gate.errors import ConfigError
from agent_gate.sources.remote.settings import HOSTS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TOKEN = "0123456789abcdef-token"


def test_no_file_gives_working_defaults(folder):
    loaded = load(None, None, {})
    assert loaded.settings.gateway.port == 8443
    assert loaded.settings.admin.socket == folder / "data/admin.sock"
    assert loaded.settings.storage.path == folder / "data/agent-gate.db"
    assert (loaded.rules, loaded.files, loaded.warnings) == ((), (), ())


def test_an_empty_file_is_like_no_file(load_text, folder):
    loaded = load_text("")
    assert loaded.settings == load(None, None, {}).settings
    assert loaded.files == (folder / "config.yaml",)


def test_the_example_at_a_glance_loads_as_it_stands(env):
    loaded = load(HERE / "example/config.yaml", None, env)
    settings = loaded.settings
    assert list(settings.agents) == ["default", "pi", "coder"]
    assert settings.agents["pi"].namespaces == ("homeassistant", "memory")
    assert settings.agents["coder"].rate_limit.max_requests_per_minute == 0
    assert settings.agents["coder"].rate_limit.max_pending_approvals == 10
    assert [tool.name for tool in settings.sources["services"]["homeassistant"].tools] == [
        "ha_get_state",
        "ha_get_states",
        "ha_call_service",
        "ha_fire_event",
    ]
    assert list(settings.sources["servers"]) == ["notion", "time", "lab", "github"]
    assert settings.sources["servers"]["notion"].auth.type == "oauth2-pkce"
    assert [rule.action for rule in loaded.rules] == ["allow", "deny", "allow", "allow"]
    assert settings.channels == (TelegramSettings(token=env["BOT_TOKEN"], chat_id=-100, allowed_users=(1,)),)
    assert HOSTS.of(settings)["notes"].socket == HERE / "example/run/notes.sock"
    assert {path.name for path in loaded.files} == {
        "config.yaml",
        "servers.yaml",
        "permissions.yaml",
        "homeassistant.yaml",
    }
    assert loaded.secrets == frozenset(env.values())


def test_the_commented_example_loads(env):
    loaded = load(ROOT / "config.example.yaml", ROOT / "permissions.example.yaml", env)
    assert loaded.warnings == ()
    assert loaded.settings.sources["services"]["homeassistant"].url == "https://homeassistant.local:8123"
    assert loaded.settings.people["ada"].uid == 1000
    assert len(loaded.policy_tests) == 4


def test_a_named_file_that_does_not_exist_is_an_error(folder):
    with pytest.raises(ConfigError, match=r"missing\.yaml: the file does not exist"):
        load(Path("missing.yaml"), None, {})
    with pytest.raises(ConfigError, match=r"none\.yaml: the file does not exist"):
        load(None, Path("none.yaml"), {})


def test_permissions_that_the_configuration_names_must_exist(refused):
    assert refused("permissions: p.yaml") == "config.yaml:1:14: permissions: the file p.yaml does not exist"


def test_permissions_beside_the_configuration_are_found(load_text):
    rules = "rules: [{pattern: a, action: deny}]"
    assert load_text("", permissions__yaml=rules).rules[0].where == "permissions.yaml:1:9"


def test_permissions_of_the_command_line_win(load_text, write):
    load_text("permissions: a.yaml", a__yaml="rules: [{pattern: a, action: deny}]")
    named = write("b.yaml", "rules: [{pattern: b, action: allow}]")
    assert [rule.pattern for rule in load(Path("config.yaml"), named, {}).rules] == ["b"]


PLUGIN = "services: {p: {handler: python, handler_class: 'a:B'}}\n"


def test_relative_paths_are_relative_to_the_file(write, folder):
    loaded = load(
        write("deep/config.yaml", f"admin: {{socket: run/a.sock}}\nplugins: {{paths: [p]}}\n{PLUGIN}"),
        None,
        {},
    )
    assert loaded.settings.admin.socket == folder / "deep/run/a.sock"
    assert loaded.settings.storage.path == folder / "deep/data/agent-gate.db"
    assert SERVICES.of(loaded.settings)["p"].plugin_folders == (folder / "deep/p",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gatewey: {}", 'config.yaml:1:1: gatewey: unknown key, did you mean "gateway"?'),
        ("gateway:\n  prot: 1", 'config.yaml:2:3: gateway.prot: unknown key, did you mean "port"?'),
        ("gateway: {zzz: 1}", "config.yaml:1:11: gateway.zzz: unknown key"),
        ("gateway: 5", "config.yaml:1:10: gateway: expected a mapping, found a number"),
        ("gateway: {port: high}", "config.yaml:1:17: gateway.port: expected a whole number, found text"),
        (
            "gateway: {port: true}",
            "config.yaml:1:17: gateway.port: expected a whole number, found true or false",
        ),
        ("gateway: {port: -1}", "config.yaml:1:17: gateway.port: must be at least 0"),
        ("gateway: {port: 1.5}", "config.yaml:1:17: gateway.port: expected a whole number, found a number"),
        (
            "gateway: {allowed_hosts: a}",
            "config.yaml:1:26: gateway.allowed_hosts: expected a list, found text",
        ),
        ("gateway: {tls: {cert: a}}", "config.yaml:1:1: gateway.tls: cert and key are given together"),
        ("approval_timeout: .nan", "config.yaml:1:19: approval_timeout: expected a number, found a number"),
        ("admin: {socket: 5}", "config.yaml:1:17: admin.socket: expected a path, found a number"),
        ("storage: {type: mysql}", "storage.type: expected one of sqlite, postgres, found mysql"),
        ("storage: {type: postgres}", 'config.yaml:1:1: storage: type: postgres needs a "url"'),
        ("log: {level: [1]}", "log.level: expected one of debug, info, warning, error, found a list"),
        ("- a", "config.yaml:1:1: expected a mapping, found a list"),
        ("agents: {a: {}}", "agents.a.token: is empty"),
        ("agents:\n  a:\n  token: abc", "config.yaml:2:3: agents.a: has nothing below it"),
        ("services:\n  s:\n  url: 'http://h'", "config.yaml:2:3: services.s: has nothing below it"),
        ("mcpServers:\n  s:\n  command: npx", "config.yaml:2:3: mcpServers.s: has nothing below it"),
        ("agents: {a: {token: ''}}", "config.yaml:1:21: agents.a.token: is empty"),
        ("agents: {a: {token_hash: abc}}", "agents.a.token_hash: expected the SHA-256 of the token"),
        ("hosts: {a: {}}", 'config.yaml:1:12: hosts.a: the key "socket" is missing'),
        ("messenger: {type: pigeon}", "config.yaml:1:19: messenger.type: expected telegram or webhook"),
        ("channels: [{type: webhook}]", 'channels[0]: the key "url" is missing'),
        (
            "messenger: {type: telegram, token: a, chat_id: 1, allowed_users: []}",
            "messenger.allowed_users: is empty, so nobody could answer",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(refused, text, message):
    assert message in refused(text)


def test_an_agent_is_known_in_exactly_one_way(refused):
    both = f"agents: {{a: {{token: {TOKEN}, token_hash: {'a' * 64}}}}}"
    assert "has a token and a token_hash" in refused(both)


def test_two_agents_cannot_share_a_token(refused):
    text = f"agents:\n  a: {{token: {TOKEN}}}\n  b: {{token: {TOKEN}}}\n"
    message = refused(text)
    assert message.startswith("config.yaml:3:6: agents.b: has the same token as a")
    assert TOKEN not in message


@pytest.mark.parametrize(
    "token", ["a-token-of-some-length\\n", " a-token-of-some-length", "a-token-of\\nsome-length"]
)
def test_a_token_that_no_header_can_send_is_a_warning(load_text, token):
    [warning] = load_text(f'agent: {{token: "{token}"}}').warnings
    assert str(warning).startswith("config.yaml:1:16: agent.token: has a line break or a blank")


def test_a_short_token_is_a_warning(load_text):
    loaded = load_text("agent: {token: short}")
    assert loaded.warnings == (
        "config.yaml:1:16: agent.token: is shorter than 16 characters and can be guessed",
    )


def test_what_a_peer_may_do_beside_its_role_is_read_by_its_name(load_text):
    loaded = load_text("peers: {policy: {desk: {allow: ['events.subscribe:approval.*']}}}")
    assert loaded.settings.peers.policy["desk"].allow == ("events.subscribe:approval.*",)
    assert loaded.warnings == ()


def test_the_single_agent_cannot_also_be_among_several(refused):
    text = f"agent: {{token: {TOKEN}1}}\nagents: {{default: {{token: {TOKEN}2}}}}"
    assert "agents.default: is also given as" in refused(text)


def test_namespaces_of_an_agent_are_folded_like_the_keys_they_name(load_text):
    loaded = load_text(f"agent: {{token: {TOKEN}, namespaces: [Home Assistant, 1st]}}")
    assert loaded.settings.agents["default"].namespaces == ("home_assistant", "n1st")


CURE = "; set it, or write it into .env beside the file"


class TestVariables:
    def test_an_unset_variable_is_named_with_its_place_and_no_value(self, refused):
        text = "agent:\n  token: ${NOT_THERE}\n"
        assert (
            refused(text)
            == f"config.yaml:2:10: agent.token: the environment variable NOT_THERE is not set{CURE}"
        )

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("${A}", "one"),
            ("x${A}y${A}", "xoneyone"),
            ("${env:A}", "one"),
            ("${B:-two}", "two"),
            ("${EMPTY:-two}", "two"),
            ("${B:-}", ""),
            ("${A:-two}", "one"),
            ("$A", "$A"),
            ("$(A)", "$(A)"),
            ("${NESTED}", "${A}"),
        ],
    )
    def test_a_variable_is_filled_once(self, load_text, text, value):
        env = {"A": "one", "EMPTY": "", "NESTED": "${A}"}
        assert load_text(f'gateway: {{id: "{text}"}}', env).settings.gateway.id == value

    def test_a_value_cannot_become_yaml(self, load_text):
        env = {"A": 'x", port: 1}\nadmin: {port: 2}'}
        settings = load_text('gateway: {id: "${A}"}', env).settings
        assert settings.gateway.id == env["A"]
        assert (settings.gateway.port, settings.admin.port) == (8443, 3100)

    def test_a_key_is_never_filled(self, refused):
        assert '"${A}"' not in refused("gateway: {'${A}': 1}", {"A": "port"})

    def test_a_number_may_come_from_the_environment(self, load_text):
        text = "gateway: {port: '${PORT}'}\nlog: {requests: '${TOLD:-true}'}\n"
        settings = load_text(text, {"PORT": "9000"}).settings
        assert settings.gateway.port == 9000
        assert settings.log.requests is True

    def test_a_wrong_value_from_the_environment_is_not_repeated(self, refused):
        message = refused("gateway: {port: '${PORT}'}", {"PORT": "hunter2-secret"})
        assert message == "config.yaml:1:17: gateway.port: expected a whole number, found text"
        assert "hunter2" not in refused("log: {level: '${LEVEL}'}", {"LEVEL": "hunter2-secret"})

    def test_a_form_we_do_not_know_is_refused(self, refused):
        assert "${command:key} is no variable" in refused("gateway: {id: '${command:key}'}")

    def test_filled_values_and_literal_secrets_are_remembered(self, load_text, env):
        text = (
            "agent: {token: '${AGENT_TOKEN}'}\napprovers: {passphrase: open-sesame}\n"
            "gateway: {id: '${NOT_SET:-plain}'}\n"
            "messenger: {type: webhook, url: 'http://x', secret: s3cret, headers: {X-Key: k3y9, Accept: text/html}}\n"
        )
        assert load_text(text).secrets == {env["AGENT_TOKEN"], "open-sesame", "s3cret", "k3y9"}

    def test_every_unset_variable_of_a_file_is_named_at_once(self, refused):
        text = "agents:\n  a: {token: '${ONE}'}\n  b: {token: '${TWO}'}\n  c: {token: '${ONE}'}\n"
        assert refused(text) == (
            "config.yaml:2:14: agents.a.token: the environment variable ONE is not set, nor is TWO (config.yaml:3:14)"
            + CURE
        )

    @pytest.mark.parametrize(
        ("value", "secret"),
        [
            ("http://10.0.0.5:8123", False),
            ("https://ha.example/", False),
            ("http://[::1]:8123", False),
            ("127.0.0.1:8126", False),
            ("localhost:8126", False),
            ("[::1]:8126", False),
            ("ada:8126", True),
            ("ha.example:8126", True),
            ("https://ada:pass@ha.example", True),
            ("https://hooks.example/T0/B0/x", True),
            ("https://ha.example?key=x", True),
        ],
    )
    def test_a_bare_address_from_the_environment_is_no_secret(self, load_text, value, secret):
        found = load_text("gateway: {id: '${WHERE}'}", {"WHERE": value})
        assert (value in found.secrets) is secret

    @pytest.mark.parametrize("given", ["https://open.sesame", "${WORDS}"])
    def test_what_a_setting_declares_secret_is_one_even_if_it_looks_like_an_address(self, load_text, given):
        found = load_text(f"approvers: {{passphrase: '{given}'}}", {"WORDS": "https://open.sesame"})
        assert found.secrets == {"https://open.sesame"}

    def test_no_representation_shows_a_secret(self, load_text):
        text = "agent: {token: '${AGENT_TOKEN}'}\nmessenger: {type: telegram, token: '${BOT_TOKEN}', chat_id: 1, allowed_users: [1]}"
        assert TOKEN not in repr(load_text(text))


def test_channels_escalate_in_either_spelling(load_text):
    text = """
channels:
  - {type: telegram, telegram: {token: t, chat_id: "@ops", allowed_users: [1]}, quiet: {start: "22:00", end: "07:00"}}
  - {type: webhook, url: "https://x.example/hook", after: 120, name: pager}
"""
    first, second = load_text(text).settings.channels
    assert isinstance(first, TelegramSettings)
    assert first.quiet.start == "22:00"
    assert isinstance(second, WebhookSettings)
    assert (second.after, second.name) == (120.0, "pager")


def test_two_channels_cannot_have_one_name(refused):
    hook = '{type: webhook, url: "http://x"}'
    assert 'two channels are called "webhook"' in refused(f"channels: [{hook}, {hook}]")


@pytest.mark.parametrize(
    "text",
    [
        "services:\n  My Api: {url: 'http://a'}\nservers:\n  my_api: {command: x}\n",
        "servers:\n  my.api: {command: x}\nmcpServers:\n  My_Api: {command: x}\n",
        "servers:\n  git-hub: {command: x}\nmcpServers:\n  git_hub: {command: x}\n",
    ],
)
def test_two_keys_that_fold_to_one_namespace_are_refused_naming_both(refused, text):
    message = refused(text)
    assert message.startswith("config.yaml:4:3: ")
    assert "config.yaml:2:3" in message
    assert "are the same namespace" in message


@pytest.mark.parametrize(("first", "second"), [("a", "a__b"), ("a__b", "a"), ("a", "a_"), ("_1", "1")])
def test_two_servers_whose_tools_could_have_one_name_are_refused_naming_both(refused, first, second):
    message = refused(f"servers:\n  '{first}': {{command: x}}\n  '{second}': {{command: x}}\n")
    assert first in message
    assert second in message
    assert "config.yaml:2:3" in message
    assert "config.yaml:3:3" in message
    assert "could be a tool of either" in message


def test_servers_without_a_prefix_and_names_that_never_meet_are_taken(load_text):
    text = "servers:\n  a: {command: sh}\n  a_b: {command: sh}\n  a__b: {command: sh, prefix: false}\n"
    assert set(load_text(text).settings.sources["servers"]) == {"a", "a_b", "a__b"}


def test_a_failed_load_leaves_nothing_behind(load_text, refused):
    before = load_text("gateway: {port: 1}").settings
    refused("gateway: {port: 1}\nrules: []")
    assert load_text("gateway: {port: 1}").settings == before


def test_settings_can_be_made_in_code_alone():
    assert Settings().rate_limit.max_requests_per_minute == 60


def test_the_callback_address_may_come_from_the_environment(load_text):
    env = {"TOOL_GATEWAY_CALLBACK_URL": "https://a.example/auth/callback"}
    assert load_text("", env).settings.admin.callback_url == env["TOOL_GATEWAY_CALLBACK_URL"]
    own = load_text("admin: {callback_url: 'https://b.example/'}", env)
    assert own.settings.admin.callback_url == "https://b.example/"


SHARED = "a-token-that-two-agents-have"
QUIET = "channels: [{{type: webhook, url: 'http://h', quiet: {{\n{}}}}}]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gateway: {port: 99999}", "config.yaml:1:17: gateway.port: must be at most 65535"),
        ("admin: {port: 65536}", "config.yaml:1:15: admin.port: must be at most 65535"),
        (f"approval_timeout: 1{'0' * 400}", "config.yaml:1:19: approval_timeout: expected a number"),
        ("storage: {path: ~nobody-has-this-name/x.db}", "config.yaml:1:17: the home folder in ~nobody"),
        (f"servers: {'a' * 300}.yaml", "config.yaml:1:10: servers: the file aaa"),
        ("services: {a: {url: 'http://h:99999'}}", "config.yaml:1:21: services.a.url: is no address"),
        ("servers: {a: {url: 'http://[bad'}}", "config.yaml:1:20: servers.a.url: is no address"),
        ("channels: [{type: webhook, url: 'ftp://h'}]", "config.yaml:1:33: channels[0].url: is no address"),
        ("telemetry: {otlp_endpoint: collector}", "config.yaml:1:28: telemetry.otlp_endpoint: is no address"),
        (
            QUIET.format("start: '25:00', end: '07:00'"),
            "config.yaml:2:8: channels[0].quiet.start: expected a time",
        ),
        (
            QUIET.format("start: '22:00', end: '07:00', timezone: Mars/X"),
            "config.yaml:2:41: channels[0].quiet.timezone: expected a time zone",
        ),
        (
            f"agents: {{a: {{token_hash: {'z' * 64}}}}}",
            "config.yaml:1:13: agents.a.token_hash: expected the SHA-256",
        ),
        (
            f"agents: {{a: {{token: {SHARED}}}, b: {{token_hash: {sha256(SHARED.encode()).hexdigest().upper()}}}}}",
            "config.yaml:1:55: agents.b: has the same token as a",
        ),
        ("gateway: {tls: {cert: no.pem, key: no.key}}", "config.yaml:1:23: gateway.tls.cert: the file"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_with_its_place(refused, text, message):
    assert refused(text).startswith(message)
