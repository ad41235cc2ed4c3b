"""What people paste below `mcpServers:` from a client's file is taken as it is."""

import pytest

WHOLE = """{
  "mcpServers": {
    "github": {
      "command": "docker",
      "args": ["run", "-i"]
    },
    "web": {"url": "https://example.org/mcp"}
  }
}"""
INNER = """{
  "github": {"command": "docker", "args": ["run", "-i"]},
  "web": {"url": "https://example.org/mcp"}
}"""
MEMBERS = """    "github": {
      "command": "docker",
      "args": ["run", "-i"]
    },
    "web": {
      "url": "https://example.org/mcp"
    }"""


def indented(text: str, by: str) -> str:
    return "\n".join(by + line for line in text.split("\n"))


PASTES = {
    "whole": WHOLE,
    "whole, indented": indented(WHOLE, "  "),
    "whole, with tabs": WHOLE.replace("  ", "\t"),
    "whole, indented by tabs": indented(WHOLE, "\t"),
    "the inner mapping": INNER,
    "members, still indented": MEMBERS,
    "members, with tabs": MEMBERS.replace("  ", "\t"),
    "members and a comma": MEMBERS + ",",
    "the member mcpServers": "\n".join(WHOLE.split("\n")[1:-1]),
}


@pytest.mark.parametrize("paste", PASTES.values(), ids=PASTES)
@pytest.mark.parametrize("after", ["", "\nstorage: {type: sqlite}\n", "\n\n# more\nlog:\n  level: debug\n"])
def test_a_pasted_block_is_read_wherever_it_came_from(load_text, paste, after):
    servers = load_text(f"gateway: {{id: x}}\nmcpServers:\n{paste}{after}").settings.sources["servers"]
    assert {key: (one.command, one.args, one.url) for key, one in servers.items()} == {
        "github": ("docker", ("run", "-i"), ""),
        "web": ("", (), "https://example.org/mcp"),
    }


def test_on_one_line_too(load_text):
    servers = load_text('mcpServers: {"mcpServers": {"a": {"command": "x"}}}').settings.sources["servers"]
    assert list(servers) == ["a"]


def test_a_server_may_be_called_mcpservers(load_text):
    servers = load_text("mcpServers: {mcpServers: {command: x}}").settings.sources["servers"]
    assert list(servers) == ["mcpServers"]


def test_a_mistake_in_a_pasted_block_keeps_its_line(refused):
    message = refused(
        'mcpServers:\n{\n\t"mcpServers": {\n\t\t"a": {"command": "x", "url": "http://y"}\n\t}\n}\n'
    )
    assert message.startswith("config.yaml:4:")


def test_what_is_broken_otherwise_is_said_as_before(refused):
    assert "not valid YAML" in refused('mcpServers:\n{\n  "a": {"command": "x"\n')


REMARKED = WHOLE.replace('"github": {', '// mine\n    "github": { /* with\n two lines */').replace(
    "  }\n}", "  } // end\n}"
)
ALONE = {
    "whole": WHOLE,
    "the member mcpServers": "\n".join(WHOLE.split("\n")[1:-1]),
    "the member and a comma": "\n".join(WHOLE.split("\n")[1:-1]) + ",",
    "with tabs": WHOLE.replace("  ", "\t"),
    "on one line": '{"mcpServers": {"github": {"command": "docker", "args": ["run", "-i"]},\n "web": {"url": "https://example.org/mcp"}}}',
}


@pytest.mark.parametrize("paste", ALONE.values(), ids=ALONE)
@pytest.mark.parametrize("after", ["", "\nstorage: {type: sqlite}\n"])
def test_a_clients_file_that_is_pasted_beside_our_keys_gets_its_own(load_text, paste, after):
    servers = load_text(f"gateway: {{id: x}}\n{paste}{after}").settings.sources["servers"]
    assert {key: (one.command, one.url) for key, one in servers.items()} == {
        "github": ("docker", ""),
        "web": ("", "https://example.org/mcp"),
    }


def test_remarks_of_a_clients_file_are_left_out(load_text):
    servers = load_text(f"mcpServers:\n{REMARKED}").settings.sources["servers"]
    assert {key: (one.args, one.url) for key, one in servers.items()} == {
        "github": (("run", "-i"), ""),
        "web": ((), "https://example.org/mcp"),
    }


def test_what_else_a_clients_file_says_is_left_out(load_text):
    servers = load_text(
        'mcpServers:\n{"servers": {"a": {"type": "stdio", "command": "x"}}, "inputs": []}'
    ).settings.sources["servers"]
    assert list(servers) == ["a"]


def test_a_server_beside_a_whole_file_is_not_lost(refused):
    assert "mcpServers.mcpServers" in refused(
        'mcpServers: {"mcpServers": {"a": {"command": "x"}}, "b": {"command": "y"}}'
    )


def test_a_pasted_block_whose_end_is_missing_is_said_to_have_none(refused):
    message = refused('mcpServers:\n{\n  "mcpServers": {\n    "a": {"command": "x"}\n  }\n')
    assert "a quote or a bracket is missing" in message


def test_a_server_that_stands_where_our_keys_do_is_told_where_it_belongs(refused):
    message = refused('mcpServers:\n"time": {\n  "command": "x"\n}\n')
    assert 'time: unknown key; a server stands below "mcpServers:", two spaces further in' in message


OPENCODE = '{"a": {"type": "local", "command": ["x", "-y", "z"], "environment": {"K": "v"}, "enabled": true}}'


def test_a_command_that_is_a_list_is_the_program_and_its_arguments(load_text):
    there = (
        load_text(f"mcpServers: {OPENCODE}"),
        load_text("servers: c.json", c__json=f'{{"mcpServers": {OPENCODE}}}'),
    )
    for loaded in there:
        server = loaded.settings.sources["servers"]["a"]
        assert (server.command, server.args, server.env) == ("x", ("-y", "z"), {"K": "v"})
        assert loaded.warnings == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("mcpServers: {a: {command: [x, -y], args: [z]}}", "expected text, found a list"),
        ("mcpServers: {a: {command: []}}", "expected text, found a list"),
        ("mcpServers: {a: {command: [x, [y]]}}", "args[0]: expected text, found a list"),
        ("servers: {a: {command: [x, -y]}}", "expected text, found a list"),
    ],
)
def test_a_list_that_could_mean_two_things_is_refused(refused, text, why):
    assert why in refused(text)
