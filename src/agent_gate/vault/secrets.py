"""Secrets by name: what people put into the vault, and everything else that a configuration may refer to."""

import asyncio
import hmac
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agent_gate.core.credentials import Identity, SignInNeeded
from agent_gate.core.references import NAME, SIGN_IN_SECRETS, Reference, read_reference, references_among
from agent_gate.errors import InvalidArgs
from agent_gate.vault.keyring import read_keyring
from agent_gate.vault.vault import Vault

FIELD = "secret"
LONGEST = 64 << 10


@dataclass(frozen=True, slots=True)
class NamedSecret:
    """What is told of a secret: never its value."""

    name: str
    updated_at: float


def owner_of(name: str) -> str:
    return f"secret:{name}"


class Secrets:
    """Keeps secrets in the vault and looks references up. `folder` is where a relative `file:` begins."""

    def __init__(self, vault: Vault, folder: Path, env: Callable[[], Mapping[str, str]]) -> None:
        self._vault, self._folder, self._env = vault, folder, env
        self.changes = 0
        """How often a secret was changed; what was looked up before is looked up again."""

    async def set(self, name: str, value: str) -> None:
        if not NAME.fullmatch(name):
            raise InvalidArgs("A secret's name has at most 64 letters, digits, dots, dashes and underscores")
        if not value.strip() or len(value) > LONGEST:
            raise InvalidArgs("A secret has between 1 and 65536 characters")
        await self._vault.put(owner_of(name), FIELD, value.strip("\r\n").encode())
        self.note_change()

    def note_change(self) -> None:
        """A secret was changed, here or by another gateway."""
        self.changes += 1

    async def list_names(self) -> list[NamedSecret]:
        kept = await self._vault.read_all(FIELD)
        return [NamedSecret(owner.removeprefix("secret:"), value.updated_at) for owner, value in kept.items()]

    async def remove(self, name: str) -> bool:
        self.note_change()
        return await self._vault.remove(owner_of(name), FIELD)

    async def is_value(self, name: str, value: str) -> bool:
        """Whether somebody who says what a secret is knows it."""
        kept = await self._vault.get(owner_of(name), FIELD) if self._vault.is_open else None
        return kept is not None and hmac.compare_digest(kept.value, value.strip("\r\n").encode())

    def variable(self, name: str) -> str:
        """A variable of the environment or of `.env`; empty where it is not set."""
        return self._env().get(name, "") if name else ""

    async def fill(self, who: Identity) -> Identity:
        """The identity with every reference replaced by what it refers to. Raises `SignInNeeded` for a missing one."""
        title, signing = who.title or who.source, who.sign_in
        if signing is not None:
            found = {name: await self._fill_text(getattr(signing, name), title) for name in SIGN_IN_SECRETS}
            signing = replace(
                signing,
                client_secret=found["client_secret"],
                private_key=found["private_key"],
                identity_token=found["identity_token"],
                identity_client_secret=found["identity_client_secret"],
            )
        return replace(
            who,
            token=await self._fill_text(who.token, title),
            password=await self._fill_text(who.password, title),
            headers=await self._fill_all(who.headers, title),
            env=await self._fill_all(who.env, title),
            sign_in=signing,
        )

    async def _fill_text(self, text: str, title: str) -> str:
        found = read_reference(text)
        return text if found is None else await self.look_up(found, title)

    async def _fill_all(self, named: Mapping[str, str], title: str) -> Mapping[str, str]:
        found = {name: await self.look_up(one, title) for name, one in references_among(named)}
        return {**named, **found} if found else named

    async def look_up(self, reference: Reference, title: str) -> str:
        """The secret, with what stands before it."""
        if reference.where == "vault":
            kept = await self._vault.get(owner_of(reference.name), FIELD)
            value = kept.value.decode() if kept is not None else ""
        elif reference.where == "env":
            value = self.variable(reference.name)
        elif reference.where == "keyring":
            value = await asyncio.to_thread(lambda: read_keyring(reference.name) or "")
        else:
            value = await asyncio.to_thread(self._file, reference.name, title)
        if not value:
            raise SignInNeeded(missing(reference, title))
        return reference.before + value

    def _file(self, name: str, title: str) -> str:
        try:
            return read_secret_file(self._folder / Path(name).expanduser())
        except (OSError, UnicodeDecodeError, RuntimeError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else "it holds no text"
            raise SignInNeeded(f"{title} needs the secret in {name}, which cannot be read: {why}") from None


def read_secret_file(path: Path) -> str:
    """A short text file; neither a device nor a pipe, which might never end."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(handle, encoding="utf-8") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(None, "it is no file")
        return file.read(LONGEST).strip()


def missing(reference: Reference, title: str) -> str:
    """What a person does where a secret is not there."""
    name = reference.name
    return {
        "vault": f"{title} needs the secret {name}: run `agent-gate secrets set {name}`",
        "env": f"Set the environment variable {name} to the key of {title}, then reload",
        "file": f"{title} needs the secret in {name}, which is empty",
        "keyring": f"{title} needs {name} from the system's keyring: run `keyring set agent-gate {name}`",
    }[reference.where]
