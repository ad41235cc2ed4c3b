"""One block of a configuration alone, for commands that unset variables elsewhere in the file must not stop."""

import os
from pathlib import Path
from typing import TypeVar

from agent_gate.config.decode import Reading, decode
from agent_gate.config.files.dotenv import environment
from agent_gate.config.files.nodes import empty
from agent_gate.config.files.variables import Variables
from agent_gate.config.files.yamlfile import read_yaml

BlockSettings = TypeVar("BlockSettings")


def read_block(config: Path, key: str, kind: type[BlockSettings]) -> BlockSettings:
    root = read_yaml(config)
    variables = Variables(environment(config, os.environ, [])[0])
    return decode(variables.fill(root.get(key) or empty(root.mark), key), kind, key, Reading(variables))
