import pytest

from agent_gate.config.load import load
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


def test_the_real_environment_wins(tmp_path):
    config = write(tmp_path, "AGENT_TOKEN=from-the-file-beside-it\n")
    assert (
        load(config, env={"AGENT_TOKEN": "from-the-environment"}).settings.agents["default"].token
        == "from-the-environment"
    )


def test_a_file_that_others_can_read_is_warned_about(tmp_path):
    config = write(tmp_path, "AGENT_TOKEN=from-the-file-beside-it\n", 0o644)
    assert any("chmod 600" in warning for warning in load(config, env={}).warnings)


def test_a_line_that_is_no_assignment_is_named(tmp_path):
    config = write(tmp_path, "AGENT_TOKEN=x\nnonsense\n")
    with pytest.raises(ConfigError, match=r"\.env:2:1: not NAME=value"):
        load(config, env={})
