"""Settings whose references are looked up: those of agents, people and channels, which count from a start or a reload on.

Servers and services keep theirs as written and look them up with each request.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import Any

from agent_gate.config.settings import Settings
from agent_gate.config.shape import shape
from agent_gate.core.credentials import SignInNeeded
from agent_gate.core.references import Reference, read_reference, references_among
from agent_gate.errors import ConfigError
from agent_gate.vault.keyring import read_keyring
from agent_gate.vault.secrets import read_secret_file

LookUp = Callable[[Reference, str], Awaitable[str]]
APART = frozenset({"sources", "storage"})
"""Settings whose secrets are looked up elsewhere."""


@dataclass(slots=True)
class Filling:
    """One walk through settings: what was found for secrets, which were missing, and the names of those in the vault.

    A missing secret is replaced by one that nobody knows, so that whoever it is for stays outside.
    """

    look_up: LookUp
    found: set[str] = field(default_factory=set)
    missing: list[str] = field(default_factory=list)
    in_vault: set[str] = field(default_factory=set)

    async def fill_settings(self, written: Settings) -> Settings:
        changed = {
            one.name: await self._fill_value(getattr(written, one.name), one.name)
            for one in shape(Settings)
            if one.name not in APART
        }
        return replace(written, **changed)

    async def _fill_value(self, value: Any, path: str) -> Any:
        if is_dataclass(value) and not isinstance(value, type):
            return await self._fill_members(value, path)
        if isinstance(value, tuple):
            return tuple([await self._fill_value(one, f"{path}[{place}]") for place, one in enumerate(value)])
        if isinstance(value, Mapping):
            return {key: await self._fill_value(one, f"{path}.{key}") for key, one in value.items()}
        return value

    async def _fill_members(self, value: Any, path: str) -> Any:
        changed = {}
        for one in shape(type(value)):
            now = getattr(value, one.name)
            fresh = await (self._fill_secret if one.secret else self._fill_value)(now, f"{path}.{one.name}")
            if fresh is not now and fresh != now:
                changed[one.name] = fresh
        return replace(value, **changed) if changed else value

    async def _fill_secret(self, value: Any, path: str) -> Any:
        if isinstance(value, Mapping):
            found = {name: await self._fetch_text(one, path) for name, one in references_among(value)}
            return {**value, **found} if found else value
        reference = read_reference(value) if isinstance(value, str) else None
        return value if reference is None else await self._fetch_text(reference, path)

    async def _fetch_text(self, reference: Reference, path: str) -> str:
        if reference.where == "vault":
            self.in_vault.add(reference.name)
        try:
            text = await self.look_up(reference, path)
        except SignInNeeded as error:
            self.missing.append(error.message)
            return secrets.token_urlsafe(32)
        self.found.add(text.removeprefix(reference.before))
        return text


def store_address(written: str | None, folder: Path, env: Mapping[str, str]) -> str | None:
    """The address of the store, which is needed before the vault: it may refer to all places but that one."""
    reference = read_reference(written or "")
    if reference is None:
        return written
    if reference.where == "vault":
        raise ConfigError(
            "storage.url cannot refer to the vault, which is in that store. Use env:, file: or keyring:"
        )
    try:
        where, name = reference.where, reference.name
        file = folder / Path(name).expanduser() if where == "file" else None
        found = read_secret_file(file) if file else env.get(name) if where == "env" else read_keyring(name)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"storage.url refers to {written}, which cannot be read: {error}") from None
    if not found:
        raise ConfigError(f"storage.url refers to {written}, which is empty or not set")
    return found
