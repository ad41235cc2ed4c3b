"""The bytes a client's file had before the gateway was written into it, kept until they are put back."""

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from agent_gate.config.clients.change import connect, disconnect
from agent_gate.config.clients.model import ClientEntry, ClientFile
from agent_gate.config.clients.registry import read
from agent_gate.config.files.replace import replace_bytes
from agent_gate.errors import ConfigError


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class ConnectedFile:
    """What was written where; `before` is None where the file did not exist."""

    client: str
    path: Path
    block: tuple[str, ...]
    before: bytes | None
    written: str


class Backups:
    """One folder, readable by its owner only, with one entry per connected file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def place(self, path: Path) -> Path:
        return self.folder / f"{path.name}-{digest(str(path).encode())[:12]}"

    def load(self, path: Path) -> ConnectedFile | None:
        return self.load_from(self.place(path))

    def load_from(self, place: Path) -> ConnectedFile | None:
        note = place / "connection.json"
        try:
            kept = json.loads(note.read_text(encoding="utf-8"))
            before = (place / "before").read_bytes() if kept["existed"] else None
            return ConnectedFile(
                kept["client"], Path(kept["path"]), tuple(kept["block"]), before, kept["written"]
            )
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            raise ConfigError(
                f"is damaged; the client's file as it was is {place / 'before'}. Put it back by hand and "
                f"remove {place}",
                where=str(note),
            ) from None

    def connections(self, client: str) -> list[ConnectedFile]:
        """Every file of that client that the gateway was written into."""
        found = [self.load_from(file.parent) for file in sorted(self.folder.glob("*/connection.json"))]
        return [one for one in found if one is not None and one.client == client]

    def keep(self, connection: ConnectedFile) -> None:
        place = self.place(connection.path)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if connection.before is not None:
            replace_bytes(place / "before", connection.before, private=True)
        kept = {
            "client": connection.client,
            "path": str(connection.path),
            "block": list(connection.block),
            "existed": connection.before is not None,
            "written": connection.written,
        }
        replace_bytes(place / "connection.json", json.dumps(kept, indent=2).encode(), private=True)

    def forget(self, path: Path) -> None:
        place = self.place(path)
        for name in ("connection.json", "before"):
            (place / name).unlink(missing_ok=True)
        place.rmdir()


def connect_file(backups: Backups, file: ClientFile, entry: ClientEntry, names: list[str]) -> str:
    """Write the gateway into the file, with a backup; returns the new text."""
    now = read(file.path) if file.path.exists() else None
    kept = backups.load(file.path)
    text = connect(file, now or "", entry, names)
    before = to_put_back(file, kept, now)
    backups.keep(ConnectedFile(file.client, file.path, file.block, before, digest(text.encode())))
    try:
        replace_bytes(file.path, text.encode())
    except ConfigError:
        backups.keep(kept) if kept else backups.forget(file.path)
        raise
    return text


def to_put_back(file: ClientFile, kept: ConnectedFile | None, now: str | None) -> bytes | None:
    """What `disconnect` shall restore: what it would restore now, so that changes since the last time are in it."""
    if kept is None:
        return now.encode() if now is not None else None
    if now is None or digest(now.encode()) == kept.written:
        return kept.before
    return without_gateway(file, kept, now)


def without_gateway(file: ClientFile, connection: ConnectedFile, now: str) -> bytes:
    before = connection.before.decode("utf-8") if connection.before is not None else ""
    return disconnect(file, now, before).encode()


def disconnect_file(backups: Backups, connection: ConnectedFile) -> bool:
    """Put the file back: byte for byte where nobody changed it since (True), else only our part of it."""
    path = connection.path
    now = read(path) if path.exists() else None
    untouched = now is not None and digest(now.encode()) == connection.written
    if untouched and connection.before is None:
        path.unlink()
    elif untouched and connection.before is not None:
        replace_bytes(path, connection.before)
    elif now is not None:
        file = ClientFile(connection.client, path, "user", connection.block)
        replace_bytes(path, without_gateway(file, connection, now))
    backups.forget(path)
    return untouched


def require(backups: Backups, client: str) -> list[ConnectedFile]:
    found = backups.connections(client)
    if not found:
        raise ConfigError(f"{client} was not connected with agent-gate connect; there is nothing to put back")
    return found
