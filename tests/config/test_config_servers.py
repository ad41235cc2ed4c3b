"""MCP servers from every form in which people have them."""

from pathlib import Path

import pytest

from agent_gate.config.decode import Reading
from agent_gate.config.files.variables import Variables
from agent_gate.config.servers.clientfile import read_client_file
from agent_gate.config.servers.settings import ServerSettings, find_command
from agent_gate.errors import ConfigError

SERVERS_YAML = """
servers:
  notion:
    name: Notion
    type: remote-mcp
    url: https://mcp.notion.com/mcp
    auth:
      type: oauth2-pkce
      # tokens managed by gateway, not in config
    enabled: true
    connect: on-demand    # connect when first tool is called

  notion-local:
    name: Notion (self-hosted)
    type: stdio-mcp
    command: npx
    args: ["-y", "@notionhq/notion-mcp-server"]
    auth:
      type: api-key
      env: NOTION_API_KEY
    enabled: false

  gdrive:
    name: Google Drive
    type: remote-mcp
    url: https://some-gdrive-mcp-server/mcp
    auth:
      type: oauth2
    enabled: false

  custom:
    name: Custom Server
    type: stdio-mcp
    command: python3
    args: ["-m", "my_mcp_server"]
    auth:
      type: api-key
      env: CUSTOM_API_KEY
    enabled: true
"""


def client_file(path: Path, env: dict[str, str] | None = None) -> tuple[dict[str, ServerSettings], list[str]]:
    reading = Reading(Variables(env or {}))
    return read_client_file(path, reading), reading.warnings


def test_servers_yaml_is_read_as_it_stands(load_text):
    loaded = load_text("servers: servers.yaml", {"CUSTOM_API_KEY": "c-key"}, servers__yaml=SERVERS_YAML)
    servers = loaded.settings.sources["servers"]
    assert {key: (s.transport, s.enabled, s.auth.type) for key, s in servers.items()} == {
        "notion": ("auto", True, "oauth2-pkce"),
        "notion-local": ("stdio", False, "api-key"),
        "gdrive": ("auto", False, "oauth2"),
        "custom": ("stdio", True, "api-key"),
    }
    assert servers["notion"].connect == "on-demand"
    assert servers["notion-local"].title == "Notion (self-hosted)"
    assert (servers["custom"].auth.env, servers["custom"].auth.token) == ("CUSTOM_API_KEY", "")
    assert "c-key" in loaded.secrets
    assert servers["notion"].where == "servers.yaml:3:3"


def test_a_server_of_our_own_has_every_setting(load_text):
    text = """
servers:
  lab:
    transport: http
    url: http://127.0.0.1:9100/mcp
    headers: {X-Key: "vault:lab"}
    timeout: 30
    rate_limit: {max_requests_per_minute: 180}
    trust_annotations: true
    traits: {read_only: true}
    include: ["get_*"]
    exclude: [get_secret]
    rename: {get_it: fetch}
    prefix: false
    pin: hold
    isolation: caller
    record: behind
"""
    lab = load_text(text).settings.sources["servers"]["lab"]
    assert (lab.transport, lab.timeout, lab.prefix, lab.pin) == ("http", 30.0, False, "hold")
    assert (lab.rate_limit.max_requests_per_minute, lab.record) == (180, "behind")
    assert (lab.traits.read_only, lab.traits.destructive) == (True, None)
    assert (lab.include, lab.exclude, lab.rename) == (("get_*",), ("get_secret",), {"get_it": "fetch"})


def test_a_missing_api_key_is_a_warning_because_a_person_can_still_give_it(load_text):
    text = "servers: {a: {url: 'http://a', auth: {type: api-key, env: A_KEY}}}"
    loaded = load_text(text, {})
    assert loaded.warnings == (
        "config.yaml:1:38: servers.a.auth.env: the environment variable A_KEY is not set",
    )


def test_mcp_servers_of_another_client_are_taken_verbatim(load_text):
    text = """
mcpServers:
  fs: {command: /usr/bin/fs, args: ["/home"], alwaysAllow: [read], disabled: true, env: {K: "${UNSET_HERE}"}}
  web: {url: "https://x.example/mcp", type: streamable-http, headers: {Authorization: "Bearer ${env:T}"}}
"""
    loaded = load_text(text, {"T": "t0ken"})
    fs, web = loaded.settings.sources["servers"].values()
    assert (fs.enabled, fs.command, fs.env) == (False, "/usr/bin/fs", {"K": ""})
    assert (web.transport, web.headers) == ("http", {"Authorization": "Bearer t0ken"})
    assert loaded.warnings == ("config.yaml:3:47: mcpServers.fs.alwaysAllow: unknown key, ignored",)
    assert {"t0ken", "Bearer t0ken"} <= loaded.secrets


@pytest.mark.parametrize(
    ("theirs", "key", "value"),
    [
        ("title: Lab", "title", "Lab"),
        ("httpUrl: 'http://127.0.0.1/b'", "url", "http://127.0.0.1/b"),
        ("serverUrl: 'http://127.0.0.1/b'", "url", "http://127.0.0.1/b"),
        ("http_headers: {Accept: b}", "headers", {"Accept": "b"}),
        ("environment: {A: b}", "env", {"A": "b"}),
        ("includeTools: [b]", "include", ("b",)),
        ("enabled_tools: [b]", "include", ("b",)),
        ("excludeTools: [b]", "exclude", ("b",)),
        ("disabled_tools: [b]", "exclude", ("b",)),
        ("disabledTools: [b]", "exclude", ("b",)),
    ],
)
@pytest.mark.parametrize("block", ["servers", "mcpServers"])
def test_what_other_clients_call_a_key_means_that_key(load_text, block, theirs, key, value):
    address = "" if key == "url" else "url: 'http://127.0.0.1/a', "
    loaded = load_text(f"{block}: {{lab: {{{address}{theirs}}}}}")
    assert getattr(loaded.settings.sources["servers"]["lab"], key) == value
    assert loaded.warnings == ()


@pytest.mark.parametrize("off", ["enabled: false", "disabled: true"])
def test_an_unset_variable_is_empty_in_a_server_that_is_switched_off(load_text, refused, off):
    text = "servers: {lab: {command: x, env: {K: '${NOT_SET}'}, %s}}"
    assert load_text(text % off).settings.sources["servers"]["lab"].env == {"K": ""}
    assert "NOT_SET is not set" in refused(text % "enabled: true")


def test_an_unknown_key_among_our_own_servers_is_refused(refused):
    message = refused("servers:\n  github: {command: x, argz: []}")
    assert message == 'config.yaml:2:24: servers.github.argz: unknown key, did you mean "args"?'


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ("{}", 'needs a "command" to start or a "url" to connect to'),
        ("{command: x, url: 'http://x'}", "has a command and a url"),
        ("{command: 'sh -c ls'}", "servers.s.command: is one program without a shell"),
        ("{command: x, type: sse}", "a command speaks stdio, not sse"),
        ("{url: 'http://x', type: stdio}", "a stdio server needs a command, not a url"),
        ("{url: 'file:///etc'}", "servers.s.url: must start with http:// or https://"),
        ("{command: x, type: pigeon}", "servers.s.type: expected stdio, http, sse"),
        ("{command: x, connect: later}", "connect: expected one of eager, on-demand"),
        ("{command: x, auth: {type: api-key}}", 'servers.s.auth: a program needs "env", the variable'),
        ("{command: x, env: {A: 1}}", "servers.s.env.A: expected text, found a number"),
    ],
)
def test_a_wrong_server_is_refused(refused, server, message):
    found = refused(f"servers: {{s: {server}}}")
    assert message in found
    assert found.startswith("config.yaml:1:")


@pytest.mark.parametrize(
    ("command", "args", "unpinned"),
    [
        ("npx", '["-y", "@scope/pkg"]', "@scope/pkg"),
        ("npx", '["-y", "pkg"]', "pkg"),
        ("npx", '["-y", "--package=pkg", "bin"]', "pkg"),
        ("npx", '["-p", "pkg", "bin"]', "pkg"),
        ("uvx", '["mcp-server-time"]', "mcp-server-time"),
        ("uvx", '["--from", "pkg", "bin"]', "pkg"),
        ("bunx", '["pkg"]', "pkg"),
        ("pnpx", '["pkg"]', "pkg"),
        ("pnpx", '["pkg@1.2.3"]', None),
        ("npx", '["-y", "@scope/pkg@1.2.3"]', None),
        ("npx", '["-y", "pkg@1", "extra"]', "pkg@1"),
        ("npx", '["-y", "pkg@latest"]', "pkg@latest"),
        ("npx", '["-y", "@scope/pkg@^1.2.3"]', "@scope/pkg@^1.2.3"),
        ("npx", '["-y", "pkg@~1.2.3"]', "pkg@~1.2.3"),
        ("npm", '["exec", "-y", "pkg"]', "pkg"),
        ("npm", '["exec", "-y", "pkg@1.2.3"]', None),
        ("npm", '["run", "serve"]', None),
        ("uv", '["tool", "run", "pkg"]', "pkg"),
        ("uv", '["tool", "run", "pkg@latest"]', "pkg@latest"),
        ("uv", '["run", "server.py"]', None),
        ("uvx", '["pkg>=1.2"]', "pkg>=1.2"),
        ("uvx", '["pkg@1"]', None),
        ("docker", '["run", "-i", "--rm", "mcp/time:latest"]', "mcp/time:latest"),
        ("docker", '["run", "-i", "--rm", "mcp/time:1.2"]', None),
        ("docker", '["run", "-i", "--rm", "mcp/time"]', "mcp/time"),
        (
            "docker",
            '["run", "-it", "-e", "KEY", "-v/a:/b", "--name=x", "localhost:5000/time", "a:1"]',
            "localhost:5000/time",
        ),
        ("docker", '["run", "-i", "img@sha256:0123"]', None),
        ("docker", '["run", "-i", "--network", "host", "img:1", "serve", "now"]', None),
        ("podman", '["run", "img"]', "img"),
        ("docker", '["--context", "far", "container", "run", "img"]', "img"),
        ("docker", '["-D", "run", "img"]', "img"),
        ("docker", '["compose", "run", "--rm", "web"]', None),
        ("docker", '["mcp", "gateway", "run"]', None),
        ("docker", '["exec", "-i", "running", "serve"]', None),
        ("env", '["-i", "KEY=v", "npx", "-y", "pkg"]', "pkg"),
        ("cmd", '["/c", "npx", "-y", "pkg"]', "pkg"),
        ("cmd", '["/c", "npx", "-y", "pkg@1.2.3"]', None),
        ("bash", '["-lc", "cd /srv && exec npx -y pkg"]', "pkg"),
        ("sh", '["-c", "node server.js"]', None),
        ("uvx", '["--with", "other", "pkg==1.2"]', "other"),
        ("uvx", '["--with", "other==2", "pkg==1.2"]', None),
        ("uv", '["run", "--with", "pkg", "server.py"]', "pkg"),
        ("deno", '["run", "-A", "npm:pkg"]', "npm:pkg"),
        ("deno", '["run", "-A", "npm:@scope/pkg@1.2.3"]', None),
        ("uvx", '["pkg==1.2"]', None),
        ("uvx", '["--from", "pkg@1.2", "bin"]', None),
        ("npx", '["./local.js"]', None),
        ("python3", '["-m", "x"]', None),
        ("go", '["run", "example.org/x@latest"]', "example.org/x@latest"),
        ("go", '["run", "-tags", "a", "-race", "example.org/x@v1"]', "example.org/x@v1"),
        ("go", '["run", "example.org/x@v1.2.3", "user@host"]', None),
        ("go", '["run", "example.org/x@v0.0.0-20240102030405-0123456789ab"]', None),
        ("go", '["run", "./cmd/server", "user@host"]', None),
        ("nix", '["run", "nixpkgs#x"]', "nixpkgs#x"),
        ("nix", '["--extra-experimental-features", "nix-command flakes", "run", "github:o/r"]', "github:o/r"),
        ("nix", '["run", "--option", "sandbox", "false", "github:o/r/main"]', "github:o/r/main"),
        ("nix", f'["run", "github:o/r/{"0a" * 20}#x", "--", "nixpkgs#y"]', None),
        ("nix", f'["run", "git+https://example.org/r?rev={"0a" * 20}"]', None),
        ("nix", '["run", ".#server"]', None),
        ("nix", f'["shell", "nixpkgs/{"0a" * 20}#x", "nixpkgs#y", "-c", "z"]', "nixpkgs#y"),
        ("nix", f'["shell", "nixpkgs/{"0a" * 20}#x", "-c", "z"]', None),
        ("deno", '["run", "-A", "https://example.org/server.ts"]', "https://example.org/server.ts"),
        ("deno", '["run", "https://example.org/server@1.2.3/main.ts"]', None),
        ("deno", '["run", "-c", "deno.json", "jsr:@scope/pkg@1"]', "jsr:@scope/pkg@1"),
        ("deno", '["run", "-A", "npm:pkg@1.2.3/bin", "https://example.org/mcp"]', None),
        ("deno", '["run", "server.ts", "https://example.org/mcp"]', None),
        ("deno", '["x", "pkg"]', "pkg"),
        ("dnx", '["Pkg", "--yes"]', "Pkg"),
        ("dnx", '["Pkg@1.2.3", "--yes"]', None),
        ("pipx", '["run", "--spec", "pkg", "bin"]', "pkg"),
        ("pipx", '["run", "pkg==1.2"]', None),
        ("pnpm", '["--silent", "dlx", "pkg"]', "pkg"),
        ("yarn", '["dlx", "-p", "pkg@1.2.3", "-p", "other", "bin"]', "other"),
        ("npx", '["-y", "pkg@1.2.3", "-p", "80"]', None),
        ("npx", '["--registry", "https://example.org", "pkg@1.2.3"]', None),
        ("npx", f'["-y", "github:o/r#{"0a" * 20}"]', None),
        ("npx", '["-y", "github:o/r"]', "github:o/r"),
        ("uvx", '["--python", "3.12", "pkg==1.2"]', None),
        ("uvx", '["-p", "3.12", "pkg"]', "pkg"),
        ("uvx", '["--from", "git+https://example.org/r", "bin"]', "git+https://example.org/r"),
        ("uvx", f'["--from", "git+https://example.org/r@{"0a" * 20}", "bin"]', None),
        ("sudo", '["-u", "bob", "npx", "-y", "pkg"]', "pkg"),
        ("timeout", '["30", "npx", "-y", "pkg"]', "pkg"),
        ("op", '["run", "--", "npx", "-y", "pkg"]', "pkg"),
        ("bash", '["-c", "npx -y pkg@1.2.3"]', None),
        ("bash", '["-c", "nix run nixpkgs#x"]', "nixpkgs#x"),
        ("sh", '["-c", "pip install -q pkg==1.2 other && python3 -m pkg"]', "other"),
        ("sh", '["-c", "pip install -r requirements.txt; npm install && node server.js"]', None),
        ("sh", '["-c", "cargo binstall -y pkg && pkg"]', "pkg"),
        ("sh", '["-c", "cargo binstall -y pkg@1.2.3 && pkg"]', None),
    ],
)
def test_a_package_without_a_version_is_a_warning_or_by_wish_an_error(
    load_text, refused, command, args, unpinned
):
    text = f"servers: {{s: {{command: {command}, args: {args}}}}}\n"
    warnings = load_text(text).warnings
    assert [f"fetches {unpinned} without a fixed version" in warning for warning in warnings] == (
        [True] if unpinned else []
    )
    if unpinned:
        message = refused(f"{text}strict_supply_chain: true\n")
        assert message.startswith("config.yaml:1:")
        assert "(strict_supply_chain)" in message


def test_a_server_given_twice_is_refused(refused):
    text = "servers:\n  a: {command: x}\nmcpServers:\n  a: {command: y}\n"
    assert refused(text) == "config.yaml:4:3: mcpServers.a: is also given at config.yaml:2:3"


def test_a_server_file_that_does_not_exist_is_refused(refused):
    assert refused("servers: s.yaml") == "config.yaml:1:10: servers: the file s.yaml does not exist"


def test_a_command_is_found_on_the_path_once(load_text):
    servers = load_text("servers: {a: {command: sh}, b: {command: not-there-at-all}}").settings.sources[
        "servers"
    ]
    assert Path(find_command(servers["a"])).is_absolute()
    with pytest.raises(ConfigError, match=r"config\.yaml:1:29: servers\.b\.command: .* not found on PATH"):
        find_command(servers["b"])


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("/no/such/place/server", "does not exist"),
        ("./no-such-server", "does not exist ({here}/no-such-server)"),
        ("{here}", "is a folder"),
        ("{here}/plain.txt", "may not be run: chmod +x {here}/plain.txt"),
    ],
)
def test_a_command_with_a_path_that_cannot_be_run_says_why(load_text, folder, monkeypatch, command, why):
    monkeypatch.chdir(folder)
    (folder / "plain.txt").write_text("no program")
    named = command.format(here=folder)
    server = load_text(f"servers: {{a: {{command: {named}}}}}").settings.sources["servers"]["a"]
    with pytest.raises(ConfigError) as caught:
        find_command(server)
    assert caught.value.message == f"config.yaml:1:11: servers.a.command: {named} {why.format(here=folder)}"


def test_a_command_with_a_path_is_looked_for_where_its_server_starts(load_text, folder):
    (folder / "sub").mkdir()
    (folder / "sub" / "run").write_text("#!/bin/sh\n")
    (folder / "sub" / "run").chmod(0o755)
    server = load_text("servers: {a: {command: ./run, cwd: sub}}").settings.sources["servers"]["a"]
    assert find_command(server) == str(folder / "sub" / "run")


def test_a_folder_to_start_in_is_relative_to_the_file(load_text, folder):
    assert load_text("servers: {a: {command: x, cwd: sub}}").settings.sources["servers"]["a"].cwd == str(
        folder / "sub"
    )


def test_claude_and_cursor_files_are_read(write):
    file = write(
        "mcp.json", '{"mcpServers": {"a": {"command": "x", "env": {"T": "${env:T}"}}}, "theme": "dark"}'
    )
    servers, warnings = client_file(file, {"T": "tok"})
    assert servers["a"].env == {"T": "tok"}
    assert warnings == []


def test_vs_code_files_are_read(write):
    file = write(
        "mcp.json", '{\n  "inputs": [],\n  "servers": {"a": {"type": "http", "url": "https://a/mcp"}}\n}'
    )
    servers, _ = client_file(file)
    assert (servers["a"].transport, servers["a"].where) == ("http", "mcp.json:3:15")


def test_codex_files_are_read(write):
    file = write(
        "config.toml",
        'model = "o"\n\n[mcp_servers.docs]\ncommand = "docs"\nargs = ["--x"]\n\n'
        '[mcp_servers.docs.env]\nK = "v"\n\n[mcp_servers.web]\nurl = "https://w/mcp"\nhttp_headers = { A = "b" }\n'
        "startup_timeout_sec = 20\n",
    )
    servers, warnings = client_file(file)
    assert (servers["docs"].args, servers["docs"].env) == (("--x",), {"K": "v"})
    assert servers["web"].headers == {"A": "b"}
    assert servers["docs"].where == "config.toml:3"
    assert warnings == ["config.toml:10: mcp_servers.web.startup_timeout_sec: unknown key, ignored"]


def test_a_codex_file_means_what_it_means_to_codex(write):
    file = write(
        "config.toml",
        '[mcp_servers.web]\nurl = "https://w/mcp"\nbearer_token_env_var = "W"\nenv_http_headers = { X = "H" }\n'
        'tool_timeout_sec = 7\n\n[mcp_servers.own]\ncommand = "own"\nenv_vars = ["P"]\nenabled_tools = ["get"]\n'
        'disabled_tools = ["wipe"]\n',
    )
    servers, warnings = client_file(file, {"W": "secret", "H": "head", "P": "passed"})
    assert servers["web"].headers == {"X": "head", "Authorization": "Bearer secret"}
    assert servers["web"].timeout == 7
    assert servers["own"].env == {"P": "passed"}
    assert (servers["own"].include, servers["own"].exclude) == (("get",), ("wipe",))
    assert warnings == []


def test_opencode_and_zed_files_are_read(write):
    opencode = write(
        "opencode.jsonc",
        '{"mcp": {"a": {"type": "local", "command": ["x", "--y"], "environment": {"T": "{env:T}"}},'
        ' "b": {"type": "remote", "url": "https://b/mcp", "enabled": false}}} // end',
    )
    servers, warnings = client_file(opencode, {"T": "tok"})
    assert (servers["a"].command, servers["a"].args, servers["a"].env) == ("x", ("--y",), {"T": "tok"})
    assert (servers["b"].url, servers["b"].enabled) == ("https://b/mcp", False)
    assert warnings == []
    zed = write(
        "settings.json",
        '{"context_servers": {"a": {"command": {"path": "x", "args": ["--y"]}},\n"ext": {"source": "extension"}}}',
    )
    servers, warnings = client_file(zed)
    assert {key: (one.command, one.args) for key, one in servers.items()} == {"a": ("x", ("--y",))}
    assert warnings == ["settings.json:2:1: context_servers.ext: is no MCP server, ignored"]


def test_what_an_editor_asks_for_is_a_variable_and_its_folders_are_known(write, folder, monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    (folder / ".vscode").mkdir()
    file = write(
        ".vscode/mcp.json",
        '{"servers": {"a": {"command": "x", "args": ["${workspaceFolder}/src", "${userHome}/b"],'
        ' "env": {"T": "${input:my-key}"}}}}',
    )
    servers, _ = client_file(file, {"MY_KEY": "tok"})
    assert servers["a"].args == (f"{folder}/src", "/home/ada/b")
    assert servers["a"].env == {"T": "tok"}


def test_a_pasted_block_may_hold_what_an_editor_asks_for(load_text, refused, folder):
    text = "mcpServers: {a: {command: x, args: ['${workspaceFolder}'], env: {T: '${input:my-key}'}}}"
    server = load_text(text, {"MY_KEY": "tok"}).settings.sources["servers"]["a"]
    assert (server.args, server.env) == ((str(folder),), {"T": "tok"})
    assert "the environment variable MY_KEY is not set" in refused(text, {})


def test_the_tools_that_a_pasted_block_leaves_out_stay_left_out(load_text):
    text = "mcpServers: {a: {command: x, includeTools: [get], excludeTools: [wipe]}}"
    server = load_text(text).settings.sources["servers"]["a"]
    assert (server.include, server.exclude) == (("get",), ("wipe",))


def test_a_time_that_was_meant_in_milliseconds_is_a_warning(load_text):
    loaded = load_text("mcpServers: {a: {command: x, timeout: 30000}}")
    assert loaded.warnings == (
        "config.yaml:1:39: mcpServers.a.timeout: is in seconds here; some clients count milliseconds",
    )


def test_a_file_without_servers_is_refused(write):
    with pytest.raises(ConfigError, match="none of mcpServers, mcp_servers, servers, context_servers, mcp "):
        client_file(write("x.json", "{}"))


def test_a_package_of_python_is_advised_as_every_option_takes_it(load_text):
    [warning] = load_text('servers: {s: {command: uvx, args: [--with, other, "pkg==1.2"]}}').warnings
    assert "write PACKAGE==VERSION" in warning


def test_the_configuration_may_name_a_client_file(load_text, folder):
    loaded = load_text(
        "servers: mcp.json", {}, mcp__json='{"mcpServers": {"a": {"command": "x"}}, "theme": 1}'
    )
    assert list(loaded.settings.sources["servers"]) == ["a"]
    assert folder / "mcp.json" in loaded.files


def test_strictness_may_come_from_the_environment(refused):
    text = "servers: {s: {command: uvx, args: [pkg]}}\nstrict_supply_chain: '${STRICT}'\n"
    assert "(strict_supply_chain)" in refused(text, {"STRICT": "true"})
