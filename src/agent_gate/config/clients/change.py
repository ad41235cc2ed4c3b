"""A client's file with the gateway in it, and without it again; every edit is checked by reading its result."""

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent_gate.config.clients.model import ClientEntry, ClientFile
from agent_gate.config.clients.registry import block, client
from agent_gate.errors import ConfigError

NAME = "agent-gate"


def connect(file: ClientFile, text: str, entry: ClientEntry, replace: Iterable[str] = ()) -> str:
    """`text` with the gateway as `agent-gate`, and without the servers in `replace`."""
    syntax = client(file.client).syntax
    gone = [name for name in replace if name != NAME]
    new = text
    for name in gone:
        new = syntax.drop(new, file.block, name)
    new = syntax.put(new, file.block, NAME, entry)
    return check_change(file, text, new, lambda servers: {**without(servers, gone), NAME: entry})


def disconnect(file: ClientFile, text: str, before: str) -> str:
    """`text`, changed by its user since, without the gateway and with the servers that it had replaced."""
    syntax = client(file.client).syntax
    old = block(syntax.read(before, str(file.path)), file.block)
    now = block(syntax.read(text, str(file.path)), file.block)
    back = {name: value for name, value in old.items() if name not in now}
    new = syntax.drop(text, file.block, NAME)
    for name in back:
        new = syntax.restore(new, file.block, name, syntax.raw(before, file.block, name))
    return check_change(file, text, new, lambda servers: {**without(servers, [NAME]), **back})


def without(servers: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in servers.items() if name not in set(names)}


def check_change(
    file: ClientFile, old: str, new: str, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> str:
    """`new`, if reading it shows exactly the old settings with `change` made to the servers."""
    syntax = client(file.client).syntax
    before = syntax.read(old, str(file.path))
    expected = placed(before, file.block, change(block(before, file.block)))
    try:
        meant = full(syntax.read(new, str(file.path)), file.block) == full(expected, file.block)
    except ConfigError:
        meant = False
    if not meant:
        raise ConfigError("its layout cannot be changed safely; change it by hand", where=str(file.path))
    return new


def placed(settings: Mapping[str, Any], path: tuple[str, ...], servers: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with `servers` at `path`."""
    whole = copy.deepcopy(dict(settings))
    here = whole
    for key in path[:-1]:
        here = here.setdefault(key, {})
    here[path[-1]] = dict(servers)
    return whole


def full(settings: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """The settings with an absent or empty block written as an empty one, since both mean the same."""
    return placed(settings, path, block(settings, path))
