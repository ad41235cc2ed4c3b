"""The bytes a client's file had before the gateway was written into it, kept until they are put back."""

import json
import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from agent_gate.config.clients.change import connect, disconnect
from agent_gate.config.clients.model import ClientFile, Entry
from agent_gate.config.clients.registry import read
from agent_gate.errors import ConfigError


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Connection:
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

    def load(self, path: Path) -> Connection | None:
        place = self.place(path)
        try:
            kept = json.loads((place / "connection.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        before = (place / "before").read_bytes() if kept["existed"] else None
        return Connection(kept["client"], Path(kept["path"]), tuple(kept["block"]), before, kept["written"])

    def connections(self, client: str) -> list[Connection]:
        """Every file of that client that the gateway was written into."""
        found = [self.load_kept(file) for file in sorted(self.folder.glob("*/connection.json"))]
        return [one for one in found if one is not None and one.client == client]

    def load_kept(self, file: Path) -> Connection | None:
        return self.load(Path(json.loads(file.read_text(encoding="utf-8"))["path"]))

    def keep(self, connection: Connection) -> None:
        place = self.place(connection.path)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if connection.before is not None:
            write_private(place / "before", connection.before)
        kept = {
            "client": connection.client,
            "path": str(connection.path),
            "block": list(connection.block),
            "existed": connection.before is not None,
            "written": connection.written,
        }
        write_private(place / "connection.json", json.dumps(kept, indent=2).encode())

    def forget(self, path: Path) -> None:
        place = self.place(path)
        for name in ("connection.json", "before"):
            (place / name).unlink(missing_ok=True)
        place.rmdir()


def write_private(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)


def replace_bytes(path: Path, data: bytes) -> None:
    """The file with new content in one step; a link stays a link, the mode stays."""
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    fresh = target.with_name(f".{target.name}.agent-gate")
    write_private(fresh, data)
    fresh.chmod(mode)
    fresh.replace(target)


def connect_file(backups: Backups, file: ClientFile, entry: Entry, names: list[str]) -> str:
    """Write the gateway into the file, the first time with a backup; returns the new text."""
    now = file.path.read_bytes() if file.path.exists() else None
    kept = backups.load(file.path)
    text = connect(file, now.decode("utf-8") if now is not None else "", entry, names)
    before = kept.before if kept else now
    backups.keep(Connection(file.client, file.path, file.block, before, digest(text.encode())))
    replace_bytes(file.path, text.encode())
    return text


def disconnect_file(backups: Backups, connection: Connection) -> bool:
    """Put the file back: byte for byte where nobody changed it since (True), else only our part of it."""
    path = connection.path
    now = path.read_bytes() if path.exists() else None
    untouched = now is not None and digest(now) == connection.written
    if untouched and connection.before is None:
        path.unlink()
    elif untouched and connection.before is not None:
        replace_bytes(path, connection.before)
    elif now is not None:
        file = ClientFile(connection.client, path, "user", connection.block)
        before = connection.before.decode("utf-8") if connection.before is not None else ""
        replace_bytes(path, disconnect(file, read(path), before).encode())
    backups.forget(path)
    return untouched


def require(backups: Backups, client: str) -> list[Connection]:
    found = backups.connections(client)
    if not found:
        raise ConfigError(f"{client} was not connected with agent-gate connect; there is nothing to put back")
    return found
