"""Configuration and rules: read, or refused with a place; whatever was read is within its bounds."""

from tests.fuzz.fuzzing import Target

from agent_gate.config.decode import Reading
from agent_gate.config.files.variables import Variables
from agent_gate.config.files.yamlfile import MAX_NODES, parse_yaml
from agent_gate.config.load import read_settings
from agent_gate.config.permissions import read_permissions
from agent_gate.errors import ConfigError

ENV = {"TOKEN": "0123456789abcdef-token", "PORT": "8443"}


def run(data: bytes) -> None:
    """The first byte chooses between config.yaml and permissions.yaml."""
    read = read_permissions if data[:1] == b"p" else read_settings
    reading = Reading(Variables(ENV))
    try:
        root = reading.variables.fill(parse_yaml(data[1:].decode(), "file.yaml"))
        assert root.size <= MAX_NODES
        read(root, reading)
    except ConfigError as error:
        check_refusal(error)
    except UnicodeDecodeError:
        return


def check_refusal(error: ConfigError) -> None:
    assert error.where
    assert ENV["TOKEN"] not in str(error)


TARGET = Target("yaml_files", run)
