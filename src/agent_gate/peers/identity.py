"""The gateway's own identity on disk: a signing key and the pairing authority, for the owner's eyes only.

The signing key is a file in `peers/` beside the store. The authority's certificate lies there too; its key is sealed
in the vault, so that a copy of the folder or of the database alone can vouch for nobody.

Gateways that share a store are one to their peers: the name and the signing key of the first are in the vault as well.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from agent_gate.core.ports import Clock
from agent_gate.errors import ConfigError
from agent_gate.peers.authority import Authority, trust_domain
from agent_gate.peers.encoding import Malformed
from agent_gate.peers.signing import KEY_BYTES, IdentityKey
from agent_gate.store.leases import Leases
from agent_gate.store.once import make_once
from agent_gate.store.statement import Store
from agent_gate.vault.shared import share_key
from agent_gate.vault.vault import Vault

FOLDER = "peers"
IDENTITY_FILE = "identity.key"
OWNER = "peers"
GATEWAY_ID, TURN_SECONDS = "gateway", 20.0
CA_KEY, CA_CERTIFICATE = "authority key", "authority certificate"


@dataclass(frozen=True)
class GatewayIdentity:
    """Who this gateway is to its peers."""

    gateway_id: str
    key: IdentityKey
    authority: Authority


def private_folder(folder: Path) -> Path:
    """The folder of the keys, refused where others could read it or it belongs to somebody else."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise ConfigError(
            f"{folder} holds keys, and others can read it or it is not this user's folder. "
            f"If nobody touched it: chmod 700 {folder}"
        )
    return folder


def read_private_file(path: Path) -> str:
    """A key file of this user that nobody else can read; a link is not followed."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        raise ConfigError(f"The key {path} cannot be read: {error.strerror}") from None
    with os.fdopen(handle, encoding="ascii", errors="replace") as file:
        found = os.fstat(file.fileno())
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise ConfigError(
                f"The key {path} can be read by others or is not this user's file. "
                f"If nobody took it: chmod 600 {path}; else pair every component again with a new one"
            )
        return file.read().strip()


def ensure_identity_key(path: Path) -> IdentityKey:
    """The signing key at `path`; made where there is none."""
    private_folder(path.parent)
    if not path.is_symlink() and not path.exists():
        make_once(path, IdentityKey.new().seed.hex())
    try:
        seed = bytes.fromhex(read_private_file(path))
    except ValueError:
        seed = b""
    if len(seed) != KEY_BYTES:
        raise ConfigError(
            f"{path} is no identity key. Restore it from a backup, or move it away and pair again"
        )
    return IdentityKey(seed)


async def ensure_authority(vault: Vault, gateway_id: str, clock: Clock) -> Authority:
    """The pairing authority: its key sealed in the vault; made, whole, where there is none."""
    domain = trust_domain(gateway_id)
    key, certificate = await vault.get(OWNER, CA_KEY), await vault.get(OWNER, CA_CERTIFICATE)
    if key is None or certificate is None:
        made = Authority.new(domain, clock.now())
        await vault.put_all(OWNER, {CA_KEY: made.key_pem, CA_CERTIFICATE: made.pem.encode()})
        return made
    try:
        return Authority.read(key.value, certificate.value, domain)
    except (Malformed, ValueError) as error:
        raise ConfigError(f"The pairing authority in the vault cannot be used: {error}") from None


async def ensure_identity(
    folder: Path, vault: Vault, gateway_id: str, clock: Clock, store: Store
) -> GatewayIdentity:
    key = ensure_identity_key(folder / FOLDER / IDENTITY_FILE)
    if not store.shared:
        return GatewayIdentity(gateway_id, key, await ensure_authority(vault, gateway_id, clock))
    async with Leases(store, clock).held(OWNER, TURN_SECONDS, wait=TURN_SECONDS):
        return await share_identity(vault, store, gateway_id, key, clock)


async def share_identity(
    vault: Vault, store: Store, gateway_id: str, own: IdentityKey, clock: Clock
) -> GatewayIdentity:
    """Who all gateways on the store are; the first of them says so. The authority comes first: one that another gateway
    made while it was alone is refused before anything of ours is kept."""
    kept = await vault.get(OWNER, GATEWAY_ID)
    name = kept.value.decode() if kept is not None else gateway_id
    authority = await ensure_authority(vault, name, clock)
    await vault.put_once(OWNER, GATEWAY_ID, name.encode())
    return GatewayIdentity(name, IdentityKey(await share_key(vault, store, "identity", own.seed)), authority)
