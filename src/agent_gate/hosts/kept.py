"""What a host keeps in its folder: its identity, its certificate, the initiations it saw and the results it gave."""

import sqlite3
import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import msgspec

from agent_gate.errors import ConfigError
from agent_gate.net.tls.certificates import ensure_certificate
from agent_gate.net.tls.mutual import KeyPair
from agent_gate.peers.encoding import Malformed, from_base64, to_base64
from agent_gate.peers.identity import IDENTITY_FILE, ensure_identity_key, private_folder, read_private_file
from agent_gate.peers.joining import REMEMBERED_SECONDS, Membership
from agent_gate.peers.roles import ComponentType
from agent_gate.store.once import replace_whole

MEMBERSHIP_FILE, SEEN_FILE, RESULTS_FILE = "membership.json", "seen.json", "results.db"
SETUP_FILE = "component.json"
RESULT_SECONDS = 86_400.0
PURGE_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSetup:
    """Who a component is, which gateway it believes, and where it keeps things. A local host needs none of it."""

    component_id: str
    folder: Path
    gateway_key: bytes
    pair_again: bool = False
    component_type: ComponentType = "tool_host"
    gateway_url: str = ""
    """Where the gateway's `peers:` listener is, for a component that dials it."""


class HostFolder:
    """The folder of one host, for its owner's eyes only."""

    def __init__(self, folder: Path) -> None:
        self.path = private_folder(folder.absolute())
        self.identity = ensure_identity_key(self.path / IDENTITY_FILE)

    def own_certificate(self) -> KeyPair:
        """What it shows before it is paired; it proves nothing by itself."""
        files = ensure_certificate(self.path / "tls")
        return KeyPair(files.cert.read_text(), files.key.read_bytes())

    def membership(self) -> Membership | None:
        """What the last pairing left; None where there was none."""
        path = self.path / MEMBERSHIP_FILE
        if not path.exists():
            return None
        return msgspec.json.decode(read_private_file(path), type=Membership)

    def keep(self, membership: Membership) -> None:
        replace_whole(self.path / MEMBERSHIP_FILE, msgspec.json.encode(membership).decode())

    def forget(self) -> None:
        (self.path / MEMBERSHIP_FILE).unlink(missing_ok=True)


class SeenInitiations:
    """The initiations seen lately, in a file, so that a restart forgets none."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / SEEN_FILE
        found = self._path.read_bytes() if self._path.exists() else b"{}"
        self._seen: dict[str, float] = msgspec.json.decode(found, type=dict[str, float])

    def is_new(self, pairing_id: str, nonce: str, now: float) -> bool:
        name = f"{pairing_id} {nonce}"
        self._seen = {key: at for key, at in self._seen.items() if now - at < REMEMBERED_SECONDS}
        if name in self._seen:
            return False
        self._seen[name] = now
        replace_whole(self._path, msgspec.json.encode(self._seen).decode())
        return True

    def lately(self, now: float) -> int:
        return sum(1 for at in self._seen.values() if now - at < 60)


def open_database(path: str, schema: str) -> sqlite3.Connection:
    """The database of a host's own tools; a connection for each call, since they run in threads."""
    found = sqlite3.connect(path, timeout=10)
    found.executescript("PRAGMA journal_mode=WAL;" + schema)
    return found


class GivenResults:
    """Results by idempotency key, kept for a day: the same call again gets what the first one got.

    A call is noted without a body before it begins, so that a restart in between does not run it twice.
    """

    def __init__(self, folder: Path | None) -> None:
        self._db = sqlite3.connect(folder / RESULTS_FILE if folder else ":memory:", isolation_level=None)
        # A crash of the host loses nothing; waiting for the disk twice a call would cost more than most calls.
        self._db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;")
        self._purged = 0.0
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS results (name TEXT PRIMARY KEY, digest TEXT, body BLOB, at REAL)"
        )

    def find(self, name: str) -> tuple[str, bytes] | None:
        """The digest of the call that had this name, and what it was answered."""
        found = self._db.execute("SELECT digest, body, at FROM results WHERE name = ?", (name,)).fetchone()
        return (found[0], found[1]) if found and time.time() - found[2] < RESULT_SECONDS else None

    def keep(self, name: str, digest: str, body: bytes) -> None:
        now = time.time()
        if now - self._purged > PURGE_SECONDS:
            self._purged = now
            self._db.execute("DELETE FROM results WHERE at < ?", (now - RESULT_SECONDS,))
        self._db.execute("REPLACE INTO results VALUES (?, ?, ?, ?)", (name, digest, body, now))

    def drop(self, name: str) -> None:
        self._db.execute("DELETE FROM results WHERE name = ?", (name,))

    def close(self) -> None:
        self._db.close()


def call_digest(tool: str, arguments: object) -> str:
    """Whether two calls ask for the same thing."""
    return sha256(msgspec.json.encode([tool, arguments], order="sorted")).hexdigest()


class SavedSetup(msgspec.Struct, frozen=True):
    """What `agent-gate join` was told, so that later commands need only the folder."""

    component_type: ComponentType
    component_id: str
    gateway_key: str
    gateway_url: str


def save_setup(setup: HostSetup) -> None:
    said = SavedSetup(
        setup.component_type, setup.component_id, to_base64(setup.gateway_key), setup.gateway_url
    )
    replace_whole(setup.folder / SETUP_FILE, msgspec.json.encode(said).decode())


def read_setup(folder: Path) -> HostSetup:
    try:
        said = msgspec.json.decode((folder / SETUP_FILE).read_bytes(), type=SavedSetup)
        key = from_base64(said.gateway_key, 32)
    except (OSError, msgspec.DecodeError, Malformed):
        raise ConfigError(f"{folder} is no folder that `agent-gate join` made") from None
    return HostSetup(
        component_id=said.component_id,
        folder=folder,
        gateway_key=key,
        component_type=said.component_type,
        gateway_url=said.gateway_url,
    )
