"""What a client is to us: `Surroundings`, `ClientFile`, `FoundServer`, `GatewayEntry` and `ClientProgram`, all plain values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

ClientEntry = dict[str, Any]
"""A server as `mcpServers` has it: `command`, `args`, `env`, `envFile`, `cwd`, or `url`, `headers`, `type`."""

PROJECTS = "projects"
"""The key under which a client keeps servers for each folder."""

Platform = Literal["linux", "darwin", "win32"]
FileScope = Literal["user", "project"]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where to look: the user's home, the current project, and the variables that move folders."""

    home: Path
    cwd: Path
    platform: Platform = "linux"
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        """The folder that programs of every platform use when they follow XDG."""
        return Path(self.env.get("XDG_CONFIG_HOME") or self.home / ".config")

    @property
    def applications(self) -> Path:
        """The folder in which desktop programs keep their settings."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        if self.platform == "win32":
            return Path(self.env.get("APPDATA") or self.home / "AppData" / "Roaming")
        return self.config


@dataclass(frozen=True, slots=True)
class ClientFile:
    """One file of a client. `block` is the path of keys to its servers."""

    client: str
    path: Path
    scope: FileScope
    block: tuple[str, ...]

    @property
    def project(self) -> str | None:
        """The folder for which the client keeps these servers, where its file has several."""
        return self.block[1] if self.block[0] == PROJECTS else None


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A server that stands in a client's file, in our own form."""

    client: str
    file: Path
    name: str
    entry: ClientEntry = field(repr=False)
    enabled: bool = True

    @property
    def transport(self) -> str:
        if "command" in self.entry:
            return "stdio"
        return str(self.entry.get("type") or "http")


@dataclass(frozen=True, slots=True)
class GatewayEntry:
    """The gateway as a client is told about it. A secret is named, never held."""

    url: str
    command: str = "agent-gate"
    token_file: str | None = None
    ca: str | None = None
    fingerprint: str | None = None
    stdio: bool = False

    @property
    def endpoint(self) -> str:
        """The MCP address; `/mcp` is appended to a bare base URL."""
        base = self.url.rstrip("/")
        return base if urlsplit(base).path else f"{base}/mcp"

    @property
    def needs_bridge(self) -> bool:
        """Whether a client cannot be given the bare address."""
        return bool(self.stdio or self.token_file or self.ca or self.fingerprint)

    @property
    def bridge(self) -> list[str]:
        """The arguments of `agent-gate` that make it a stdio server."""
        options = {"--token-file": self.token_file, "--ca": self.ca, "--fingerprint": self.fingerprint}
        given = [part for name, value in options.items() if value for part in (name, value)]
        return ["bridge", self.endpoint, *given]

    def as_program(self) -> ClientEntry:
        """The entry of a client that starts the bridge."""
        return {"command": self.command, "args": self.bridge}


class Syntax(Protocol):
    """Edits of one block in one kind of file, as text; everything else stays byte for byte."""

    def read(self, text: str, name: str) -> dict[str, Any]:
        """What the file says; nothing in it is an empty mapping."""
        ...

    def put(self, text: str, block: Sequence[str], key: str, value: Mapping[str, Any]) -> str: ...
    def drop(self, text: str, block: Sequence[str], key: str) -> str: ...
    def raw(self, text: str, block: Sequence[str], key: str) -> str:
        """The entry's own text, comments included, as `restore` takes it back."""
        ...

    def restore(self, text: str, block: Sequence[str], key: str, raw: str) -> str: ...


@dataclass(frozen=True, slots=True)
class ClientProgram:
    """One program. `read` turns its entry into ours, `write` the gateway into its entry."""

    name: str
    title: str
    files: Callable[[Surroundings], list[ClientFile]]
    syntax: Syntax
    read: Callable[[Mapping[str, Any]], ClientEntry]
    write: Callable[[GatewayEntry], ClientEntry]
    expands: bool = True
    note: str = ""
    command: Callable[[GatewayEntry], list[str]] | None = None
