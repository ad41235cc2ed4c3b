"""The master key, which wraps the vault's own key and is never in the database.

It comes from the environment (`AGENT_GATE_SECRET`, also `TOOL_GATEWAY_SECRET`), from the system's keyring, or from a
file beside the store that is made at the first start. What is not a key of 32 bytes is a passphrase and stretched.
"""

import base64
import binascii
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from agent_gate.errors import ConfigError
from agent_gate.store.once import make_once
from agent_gate.vault.keyring import read_keyring
from agent_gate.vault.sealing import KEY_BYTES, SealingKey

NAMES = ("AGENT_GATE_SECRET", "TOOL_GATEWAY_SECRET")
BEFORE = "AGENT_GATE_OLD_SECRET"
FILE = "vault.key"
NEXT_FILE = "vault.key.next"
INFO = b"agent-gate vault master key v1"
SHORTEST = 16
MEMORY_KIB, PASSES, LANES = 64 * 1024, 3, 1

KeyOrigin = Literal["environment", "keyring", "file"]


@dataclass(frozen=True, slots=True)
class MasterSecret:
    """What a person or a file gave us, before it is a key. `where` is for messages; the text is never shown."""

    text: str
    origin: KeyOrigin
    where: str

    def __repr__(self) -> str:
        return f"MasterSecret({self.where})"

    def key(self, salt: bytes) -> SealingKey:
        """The key that wraps. A full-length key is only diversified; a passphrase costs memory and time."""
        raw = full_key(self.text)
        if raw is not None:
            return SealingKey(HKDF(SHA256(), KEY_BYTES, salt, INFO).derive(raw))
        stretched = Argon2id(
            salt=salt, length=KEY_BYTES, iterations=PASSES, lanes=LANES, memory_cost=MEMORY_KIB
        )
        return SealingKey(stretched.derive(self.text.encode()))


def full_key(text: str) -> bytes | None:
    """The 32 bytes that `text` spells in hexadecimal or base64; None for a passphrase."""
    for decode in (bytes.fromhex, lambda t: base64.b64decode(t, validate=True)):
        try:
            raw = decode(text)
        except (ValueError, binascii.Error):
            continue
        if len(raw) == KEY_BYTES:
            return raw
    return None


def from_environment(env: Mapping[str, str], *names: str) -> MasterSecret | None:
    for name in names or NAMES:
        text = env.get(name, "").strip()
        if not text:
            continue
        if len(text) < SHORTEST:
            raise ConfigError(
                f"{name} has fewer than {SHORTEST} characters; make one with `openssl rand -base64 32`"
            )
        return MasterSecret(text, "environment", name)
    return None


def read_key_file(path: Path) -> MasterSecret:
    """The key in a file, refused where others could read or swap it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(handle, encoding="ascii") as file:
            found = os.fstat(file.fileno())
            if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
                raise ConfigError(
                    f"The vault's key {path} can be read or was made by others. If nobody did, "
                    f"`chown` it to the gateway's user and `chmod 600 {path}`; else change every credential"
                )
            text = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The vault's key {path} cannot be read: {error}") from None
    if full_key(text) is None:
        raise ConfigError(f"{path} is no key of the vault. Restore it from a backup, or move it away")
    return MasterSecret(text, "file", str(path))


def make_key_file(path: Path) -> MasterSecret:
    try:
        make_once(path, secrets.token_hex(KEY_BYTES))
    except OSError as error:
        raise ConfigError(f"The vault's key {path} cannot be made: {error.strerror}") from None
    return read_key_file(path)


def candidates(folder: Path, env: Mapping[str, str]) -> Iterator[MasterSecret]:
    """Every master secret there is, the one that counts first: what opens the vault may be an older one."""
    given = [from_environment(env), read_keyring_secret(), from_environment(env, BEFORE)]
    yield from (secret for secret in given if secret is not None)
    for name in (FILE, NEXT_FILE):
        if (folder / name).exists():
            yield read_key_file(folder / name)


def find_or_make(folder: Path, env: Mapping[str, str]) -> MasterSecret:
    """The master secret that the vault should be under; a key file is made where nothing is given."""
    return from_environment(env) or read_keyring_secret() or make_key_file(folder / FILE)


def read_keyring_secret() -> MasterSecret | None:
    text = read_keyring("vault")
    return MasterSecret(text, "keyring", "the system's keyring") if text else None
