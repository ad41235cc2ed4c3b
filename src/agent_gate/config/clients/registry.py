"""Every client we know, and the search over all of their files."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agent_gate.config.clients import (
    claude_code,
    claude_desktop,
    cline,
    codex,
    cursor,
    gemini,
    goose,
    opencode,
    vscode,
    windsurf,
    zed,
)
from agent_gate.config.clients.forms import chosen_tools, rewrite
from agent_gate.config.clients.model import ClientEntry, ClientFile, ClientProgram, FoundServer, Surroundings
from agent_gate.errors import ConfigError

MODULES = (
    claude_desktop,
    claude_code,
    cursor,
    vscode,
    windsurf,
    codex,
    gemini,
    goose,
    opencode,
    zed,
    cline,
)
CLIENTS: dict[str, ClientProgram] = {module.CLIENT.name: module.CLIENT for module in MODULES}
FOLDER = re.compile(r"\$\{(workspaceFolder|userHome)\}")
OUR_NAMES = frozenset({"agent-gate", "agent_gate"})


def client(name: str) -> ClientProgram:
    if name not in CLIENTS:
        raise ConfigError(f"{name} is no client we know; choose one of {', '.join(CLIENTS)}")
    return CLIENTS[name]


def find(place: Surroundings, names: Iterable[str] = CLIENTS) -> list[ClientFile]:
    """The files that exist, in the order of the clients; in the home folder some are both the user's and a project's."""
    there = (file for name in names for file in client(name).files(place) if file.path.is_file())
    return list({(file.path, file.block): file for file in there}.values())


def block(settings: Mapping[str, Any], path: Iterable[str]) -> Mapping[str, Any]:
    """The servers' block of a file; empty where it is absent or no mapping."""
    here: Any = settings
    for key in path:
        here = here.get(key) if isinstance(here, Mapping) else None
    return here if isinstance(here, Mapping) else {}


def enabled(raw: Mapping[str, Any]) -> bool:
    return raw.get("disabled") is not True and raw.get("enabled") is not False


def servers(file: ClientFile, text: str, place: Surroundings) -> list[FoundServer]:
    """The servers in a file's text; entries that are none (a client's built-ins, the gateway itself) are left out."""
    program = client(file.client)
    folders = {"workspaceFolder": file.project or str(place.cwd), "userHome": str(place.home)}
    home = {"cwd": file.project} if file.project else {}  # where the client starts it, too
    found = []
    for name, raw in block(program.syntax.read(text, str(file.path)), file.block).items():
        entry: ClientEntry = program.read(raw) if isinstance(raw, Mapping) else {}
        if entry and name not in OUR_NAMES:
            if "command" in entry:
                entry = home | entry
            here: ClientEntry = rewrite(entry, FOLDER, lambda match: folders[match[1]]) | chosen_tools(raw)
            found.append(FoundServer(file.client, file.path, str(name), here, enabled(raw)))
    return found


def target(name: str, place: Surroundings, *, project: bool = False) -> ClientFile:
    """The file to write the gateway into: the existing one of that scope, else the first."""
    files = [file for file in client(name).files(place) if file.scope == ("project" if project else "user")]
    if not files:
        raise ConfigError(f"{client(name).title} has no file per project; leave out --project")
    # A project's own file is meant, not the private part that a client keeps for it elsewhere.
    own = [file for file in files if file.path.is_relative_to(place.cwd)] if project else files
    return next((file for file in own if file.path.is_file()), own[0])


def read(path: Path) -> str:
    """A client's file as text, its line ends kept."""
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigError("is not UTF-8", where=str(path)) from None
    except OSError as error:
        raise ConfigError(f"cannot be read ({error.strerror})", where=str(path)) from None
