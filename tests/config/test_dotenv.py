import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gate.config.configuration import Configuration
from agent_gate.config.files.dotenv import add_variables, read_dotenv
from agent_gate.config.load import load
from agent_gate.config.options import Options
from agent_gate.errors import ConfigError

CONFIG = 'agent: {token: "${AGENT_TOKEN}"}\n'


def write(folder, dotenv, mode=0o600):
    (folder / "config.yaml").write_text(CONFIG)
    (folder / ".env").write_text(dotenv)
    (folder / ".env").chmod(mode)
    return folder / "config.yaml"


def test_variables_come_from_the_file_beside_the_configuration(tmp_path):
    config = write(tmp_path, "# tokens\n\nexport AGENT_TOKEN='from-the-file-beside-it'\n")
    loaded = load(config, env={})
    assert loaded.settings.agents["default"].token == "from-the-file-beside-it"
    assert "from-the-file-beside-it" in loaded.secrets
    assert tmp_path / ".env" in loaded.files


def test_references_are_looked_up_among_the_variables_of_that_file_too(tmp_path, monkeypatch):
    monkeypatch.delenv("LAB_KEY", raising=False)
    config = write(tmp_path, "AGENT_TOKEN=a-token-of-this-test\nLAB_KEY=from-the-file-beside-it\n")
    assert Configuration(Options(config=config)).environment()["LAB_KEY"] == "from-the-file-beside-it"


def test_the_real_environment_wins(tmp_path):
    config = write(tmp_path, "AGENT_TOKEN=from-the-file-beside-it\n")
    assert (
        load(config, env={"AGENT_TOKEN": "from-the-environment"}).settings.agents["default"].token
        == "from-the-environment"
    )


def test_a_file_that_others_can_read_is_warned_about(tmp_path):
    config = write(tmp_path, "AGENT_TOKEN=from-the-file-beside-it\n", 0o644)
    assert any("chmod 600" in warning for warning in load(config, env={}).warnings)


def test_a_file_that_this_user_cannot_read_leaves_the_environment(tmp_path, monkeypatch):
    config = write(tmp_path, "AGENT_TOKEN=from-the-file-beside-it\n")
    monkeypatch.setattr("os.access", lambda *_: False)
    loaded = load(config, env={"AGENT_TOKEN": "from-the-environment"})
    assert loaded.settings.agents["default"].token == "from-the-environment"
    assert any("cannot be read by this user" in warning for warning in loaded.warnings)
    with pytest.raises(ConfigError, match="AGENT_TOKEN is not set"):
        load(config, env={})


def test_a_line_that_is_no_assignment_is_named(tmp_path):
    config = write(tmp_path, "AGENT_TOKEN=x\nnonsense\n")
    with pytest.raises(ConfigError, match=r"\.env:2:1: not NAME=value"):
        load(config, env={})


@given(value=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30))
def test_a_value_that_was_added_is_read_back(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("dotenv") / ".env"
    add_variables(path, {"A": value, "B": "behind"})
    assert read_dotenv(path) == {"A": value, "B": "behind"}


@pytest.mark.parametrize("value", ["it's", "a\nb\n", "$HOME `id`", 'say "x" \\', "a # b", ""])
def test_a_shell_reads_the_same_value(tmp_path, value):
    path = tmp_path / ".env"
    add_variables(path, {"A": value})
    shell = subprocess.run(["sh", "-c", f'. {path}; printf %s "$A"'], capture_output=True, text=True)
    assert shell.stdout == value == read_dotenv(path)["A"]


def test_what_an_editor_leaves_in_the_file_is_no_part_of_a_value(tmp_path):
    (tmp_path / ".env").write_bytes(b"\xef\xbb\xbfA=one # mine\r\nB='two' # yours\r\nC=a#b\r\n\r\n  # end")
    assert read_dotenv(tmp_path / ".env") == {"A": "one", "B": "two", "C": "a#b"}


def test_lines_that_stand_there_stay_when_others_are_added(tmp_path):
    path = tmp_path / ".env"
    path.write_text("# mine\nA='old value'\nB=x")
    add_variables(path, {"A": "new", "C": "c"})
    assert path.read_text() == "# mine\nA='old value'\nB=x\nC='c'\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_not_text_is_named(tmp_path):
    config = write(tmp_path, "")
    (tmp_path / ".env").write_bytes(b"A=1\nB=\xff\n")
    with pytest.raises(ConfigError, match=r"\.env:2: the file is not UTF-8"):
        load(config, env={})
