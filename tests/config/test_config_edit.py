"""Additions to YAML files that leave the rest as it was."""

import errno
import os
import stat

import pytest

from agent_gate.config.files.yamledit import add_server, append_rule, drop_rule, save
from agent_gate.config.load import load
from agent_gate.errors import ConfigError

RULE = {"pattern": "f(a, *)", "action": "allow"}
LINE = '{pattern: "f(a, *)", action: allow}'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"rules:\n  - {LINE}\n"),
        ("# mine\ndefaults: []", f"# mine\ndefaults: []\nrules:\n  - {LINE}\n"),
        ("rules: []  # none yet\n", f"rules: [{LINE}]  # none yet\n"),
        ("rules:\n\n# end\n", f"rules:\n  - {LINE}\n\n# end\n"),
        (
            "rules:   # kept\n  - {pattern:   b,  action: ask}   # odd   spacing\n\n# tail\ndefaults: []\n",
            f"rules:   # kept\n  - {{pattern:   b,  action: ask}}   # odd   spacing\n  - {LINE}\n\n# tail\ndefaults: []\n",
        ),
        (
            "rules:\n- pattern: b\n  action: ask\n  description: |\n    x\n\n    # y\ndefaults: []\n",
            f"rules:\n- pattern: b\n  action: ask\n  description: |\n    x\n\n    # y\n- {LINE}\ndefaults: []\n",
        ),
        (
            "rules: [{pattern: b, action: ask}]\n",
            f"rules: [{{pattern: b, action: ask}}, {LINE}]\n",
        ),
    ],
)
def test_a_rule_is_appended_and_nothing_else_changes(write, before, after):
    assert append_rule(write("p.yaml", before), RULE).text == after


@pytest.mark.parametrize(
    ("before", "place", "after"),
    [
        (
            "rules:\n  # one\n  - {pattern: a, action: ask}  # why\n\n  # two\n  - pattern: b\n    action: deny\n# end\n",
            (6, 5),
            "rules:\n  # one\n  - {pattern: a, action: ask}  # why\n\n  # two\n# end\n",
        ),
        ("rules:\n- {pattern: a, action: ask}\n# end\ndefaults: []\n", (2, 3), "# end\ndefaults: []\n"),
        ("rules: [{pattern: a, action: ask}, {pattern: b, action: ask}]\n", (1, 9), "rules: [{pattern: b, action: ask}]\n"),
        ("rules: [{pattern: a, action: ask}, {pattern: b, action: ask}]\n", (1, 36), "rules: [{pattern: a, action: ask}]\n"),
        ("rules: [{pattern: a, action: ask}] # none\n", (1, 9), "rules: [] # none\n"),
    ],
)  # fmt: skip
def test_a_rule_is_taken_out_and_nothing_else_changes(write, before, place, after):
    assert drop_rule(write("p.yaml", before), *place).text == after


def test_nothing_is_taken_out_where_no_rule_begins(write):
    path = write(
        "p.yaml", "rules:\n  - {pattern: a, action: ask}\ndefaults:\n  - {pattern: b, action: ask}\n"
    )
    with pytest.raises(ConfigError, match="no rule begins at line 4"):
        drop_rule(path, 4, 5)


def test_the_diff_shows_only_what_is_added(write):
    path = write("p.yaml", "rules:\n  - {pattern: b, action: ask}\n")
    changed = [line for line in append_rule(path, RULE).diff.splitlines()[2:] if line[0] in "+-"]
    assert changed == [f"+  - {LINE}"]


def test_an_appended_rule_is_loaded(write):
    path = write("p.yaml", "rules: # mine\n  - {pattern: b, action: ask}\n")
    save(path, append_rule(path, RULE).text)
    assert [rule.pattern for rule in load(None, path, {}).rules] == ["b", "f(a, *)"]


def test_a_layout_that_cannot_be_extended_safely_is_left_alone(write):
    path = write("p.yaml", "rules: [\n  {pattern: b, action: ask}, # why\n]\n")
    with pytest.raises(ConfigError, match="add the entry by hand"):
        append_rule(path, RULE)


def test_a_server_is_added_to_the_block_that_is_there(write):
    path = write("s.yaml", "servers:\n  # the clock\n  time: {command: t}\n")
    edit = add_server(path, "my lab", {"url": "http://127.0.0.1/mcp", "args": ["-y", "a b"], "enabled": True})
    assert edit.text == (
        "servers:\n  # the clock\n  time: {command: t}\n"
        '  "my lab": {url: "http://127.0.0.1/mcp", args: ["-y", "a b"], enabled: true}\n'
    )
    pasted = write("c.yaml", "mcpServers:\n  a: {command: x}\n")
    assert add_server(pasted, "b", {"command": "y"}).text.endswith("  b: {command: y}\n")


def test_a_server_that_is_there_is_not_replaced(write):
    path = write("s.yaml", "servers: {time: {command: t}}\n")
    with pytest.raises(ConfigError, match=r"servers\.time: is already there"):
        add_server(path, "time", {"command": "x"})


def test_a_server_is_added_beside_the_name_of_another_file(write):
    edit = add_server(write("c.yaml", "servers: mcp.json\n"), "a", {"command": "x"})
    assert edit.text == "servers: mcp.json\nmcpServers:\n  a: {command: x}\n"


def test_a_broken_file_is_not_edited(write):
    with pytest.raises(ConfigError, match=r"p\.yaml:"):
        append_rule(write("p.yaml", "rules: [\n"), RULE)


def test_saving_keeps_the_mode_and_leaves_no_other_file(write, folder):
    path = write("p.yaml", "old")
    path.chmod(0o640)
    save(path, "new\n")
    assert path.read_text() == "new\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    save(folder / "fresh.yaml", "x\n")
    assert stat.S_IMODE((folder / "fresh.yaml").stat().st_mode) == 0o600
    assert {entry.name for entry in folder.iterdir()} == {"p.yaml", "fresh.yaml"}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_saving_as_root_leaves_the_file_with_its_owner(write):
    path = write("config.yaml", "services: {}\n")
    os.chown(path, 4242, 4343)
    path.chmod(0o640)
    save(path, "services: {a: 1}\n")
    kept = path.stat()
    assert (kept.st_uid, kept.st_gid, kept.st_mode & 0o777) == (4242, 4343, 0o640)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_link_put_in_the_place_of_a_draft_gives_no_other_file_away(write, folder, monkeypatch):
    path, other = write("config.yaml", "services: {}\n"), write("shadow", "secret")
    os.chown(path, 4242, 4343)
    path.chmod(0o644)
    other.chmod(0o600)
    chown = os.chown

    def exchanged(*args):
        [draft] = folder.glob(".config.yaml.*")
        draft.unlink()
        draft.symlink_to(other)
        chown(*args)

    monkeypatch.setattr(os, "chown", exchanged)
    save(path, "services: {a: 1}\n")
    kept = other.stat()
    assert (kept.st_uid, kept.st_gid, kept.st_mode & 0o777) == (os.getuid(), os.getgid(), 0o600)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("why", [errno.EPERM, errno.EINVAL])
def test_a_group_that_cannot_be_kept_is_not_exchanged_for_another(write, monkeypatch, why):
    path = write("config.yaml", "services: {}\n")
    os.chown(path, 4242, 4343)
    path.chmod(0o640)

    def refused(*_args):
        raise OSError(why, os.strerror(why))

    monkeypatch.setattr(os, "chown", refused)
    save(path, "services: {a: 1}\n")
    kept = path.stat()
    assert (kept.st_uid, kept.st_gid, kept.st_mode & 0o777) == (os.getuid(), os.getgid(), 0o600)


def test_saving_through_a_link_replaces_its_target(write, folder):
    target = write("real.yaml", "old")
    (folder / "link.yaml").symlink_to(target)
    save(folder / "link.yaml", "new")
    assert (folder / "link.yaml").is_symlink()
    assert target.read_text() == "new"
