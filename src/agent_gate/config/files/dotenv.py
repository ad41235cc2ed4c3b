"""The `.env` file beside the configuration: `NAME=value` lines as a shell reads them, overruled by the environment."""

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from agent_gate.config.files.replace import replace_bytes
from agent_gate.config.files.yamlfile import read_text
from agent_gate.errors import ConfigError

BLANK = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\r?\n|\Z)")
NAME = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*")
QUOTED = re.compile(r"((?:'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\')+)[ \t]*(?:#[^\n]*)?(?:\r?\n|\Z)", re.DOTALL)
PART = re.compile(r"'([^']*)'|\"((?:[^\"\\]|\\.)*)\"|\\(')", re.DOTALL)
ESCAPE = re.compile(r'\\(["\\$`])')
PLAIN = re.compile(r"([^\n]*)(?:\n|\Z)")
REMARK = re.compile(r"\s#.*")
OTHERS_MAY_READ = 0o044


def read_dotenv(path: Path) -> dict[str, str]:
    """The variables of the file; comments and empty lines are passed over, quotes are taken off."""
    text, at = read_text(path), 0
    found: dict[str, str] = {}
    while at < len(text):
        if blank := BLANK.match(text, at):
            at = blank.end()
            continue
        name = NAME.match(text, at)
        if name is None:
            raise ConfigError("not NAME=value", where=f"{path}:{text.count(chr(10), 0, at) + 1}:1")
        found[name[1]], at = value_at(text, name.end())
    return found


def value_at(text: str, at: int) -> tuple[str, int]:
    """The value that begins there, and where the next line does. In quotes it may go over several lines."""
    if quoted := QUOTED.match(text, at):
        return "".join(map(unquoted, PART.finditer(quoted[1]))), quoted.end()
    plain = PLAIN.match(text, at)
    assert plain is not None
    return REMARK.sub("", plain[1]).strip(), plain.end()


def unquoted(part: re.Match[str]) -> str:
    single, double, apostrophe = part.groups()
    return ESCAPE.sub(r"\1", double) if double is not None else single or apostrophe or ""


def known_variables(path: Path) -> dict[str, str]:
    """The variables of a file that may not be there yet."""
    return read_dotenv(path) if path.exists() else {}


def add_variables(path: Path, variables: Mapping[str, str]) -> None:
    """Append what is not there yet; every line stays, and the file is readable by its owner only."""
    known = known_variables(path)
    lines = [f"{name}={quoted(value)}\n" for name, value in variables.items() if name not in known]
    old = read_text(path) if path.exists() else ""
    gap = "\n" if old and not old.endswith("\n") else ""
    replace_bytes(path, (old + gap + "".join(lines)).encode(), private=True)


def quoted(value: str) -> str:
    """The value so that `read_dotenv` and a shell read it back."""
    return "'" + value.replace("'", "'\\''") + "'"


def environment(
    config: Path | None, env: Mapping[str, str], warnings: list[str]
) -> tuple[Mapping[str, str], list[Path]]:
    """The environment with what `.env` adds to it, and the file that was read."""
    path = config.parent / ".env" if config is not None else None
    if path is None or not path.is_file():
        return env, []
    if not os.access(path, os.R_OK):
        warnings.append(f"{path} cannot be read by this user; only the environment counts")
        return env, []
    if path.stat().st_mode & OTHERS_MAY_READ:
        warnings.append(
            f"{path} can be read by others on this machine; run: chmod 600 {shlex.quote(str(path))}"
        )
    return {**read_dotenv(path), **env}, [path]
