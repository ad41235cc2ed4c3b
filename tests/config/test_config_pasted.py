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
