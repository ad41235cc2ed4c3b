"""The `.env` file beside the configuration: `NAME=value` lines, which the real environment overrules."""

import re
from collections.abc import Mapping
from pathlib import Path

from agent_gate.errors import ConfigError

LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
OTHERS_MAY_READ = 0o044


def read_dotenv(path: Path) -> dict[str, str]:
    """The variables of the file; comments and empty lines are passed over, quotes are taken off."""
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        pair = LINE.fullmatch(text)
        if pair is None:
            raise ConfigError("not NAME=value", where=f"{path}:{number}:1")
        found[pair[1]] = unquoted(pair[2])
    return found


def unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    return value


def environment(
    config: Path | None, env: Mapping[str, str], warnings: list[str]
) -> tuple[Mapping[str, str], list[Path]]:
    """The environment with what `.env` adds to it, and the file that was read."""
    path = config.parent / ".env" if config is not None else None
    if path is None or not path.is_file():
        return env, []
    if path.stat().st_mode & OTHERS_MAY_READ:
        warnings.append(f"{path} can be read by others on this machine; run: chmod 600 {path}")
    return {**read_dotenv(path), **env}, [path]
