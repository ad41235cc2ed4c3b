"""`ServerSettings`: one MCP server to connect to, whichever file format named it."""

import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from agent_gate.config.services.settings import TEMPLATES
from agent_gate.config.shape import GIVEN, SECRET, AtLeast, InFile
from agent_gate.config.signin import Sharing, SignInKeys
from agent_gate.core.traits import TRAITS, trait_fields
from agent_gate.errors import ConfigError

Transport = Literal["stdio", "http", "sse", "auto"]
NAMES = {"type": "array", "items": {"type": "string"}}
AUTH_TYPES = Literal[
    "none",
    "api-key",
    "bearer",
    "oauth2",
    "oauth2-pkce",
    "device-code",
    "client-credentials",
    "token-exchange",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAuth(SignInKeys):
    """How the gateway proves itself to an MCP server."""

    type: Annotated[
        AUTH_TYPES, "Kind of credential; without a `token`, a person stores a key or signs in."
    ] = "none"
    env: Annotated[
        str, "Environment variable that holds the key; a stdio child gets key or token by that name."
    ] = ""
    header_name: Annotated[
        str, "Header for the key of a remote server; without one, `Authorization: Bearer`."
    ] = ""
    token: Annotated[str, "The key itself, instead of `env`.", SECRET] = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
@trait_fields(bool | None, None, lambda trait: trait.server)
class TraitSettings:
    """What the operator says a server's tools are, whatever the server claims; null leaves it open."""

    def said(self) -> dict[str, bool]:
        """The traits that the operator speaks of."""
        held = {name: getattr(self, name) for name in TRAITS}
        return {name: value for name, value in held.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRate:
    """How often a server may be called; 0 means no limit."""

    max_requests_per_minute: Annotated[int, "Calls per minute; 0: no limit.", AtLeast(0)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """One MCP server. Its key is the namespace of its tools."""

    key: Annotated[str, "The key in the file.", GIVEN]
    name: Annotated[str, "Name for people; without one, the key."] = ""
    transport: Annotated[
        Transport,
        "How it is reached.",
        InFile({"enum": ["stdio", "http", "sse", "auto", "streamable-http", "streamableHttp"]}),
    ] = "auto"
    command: Annotated[
        str, "Program to start; one word, no shell. One with a path is looked for from `cwd`."
    ] = ""
    args: Annotated[tuple[str, ...], "Its arguments."] = ()
    env: Annotated[
        Mapping[str, str], "Its environment; nothing else is inherited but PATH and the like.", SECRET
    ] = field(default_factory=dict, repr=False)
    cwd: Annotated[str | None, "Folder it starts in, relative to the file."] = None
    url: Annotated[str, "Address of a remote server."] = ""
    headers: Annotated[Mapping[str, str], "Headers to send to a remote server.", SECRET] = field(
        default_factory=dict, repr=False
    )
    auth: Annotated[ServerAuth, "Credential.", InFile({"$ref": "#/$defs/ServerAuth"})] = field(
        default_factory=ServerAuth
    )
    enabled: Annotated[bool, "Whether it is used."] = True
    connect: Annotated[
        Literal["eager", "on-demand"], "At start and always, or at the first call and until it is idle."
    ] = "eager"
    ready: Annotated[
        Literal["required", "tried"],
        "What /ready waits for: that it is connected, or only that connecting was tried.",
    ] = "required"
    prefix: Annotated[
        bool,
        "Whether tool names are prefixed with the key; without, a tool whose name another has too is left out.",
    ] = True
    timeout: Annotated[float | None, "Seconds a call may run.", AtLeast(0.001)] = None
    rate_limit: Annotated[ServerRate, "How often it may be called."] = field(default_factory=ServerRate)
    trust_annotations: Annotated[bool, "Believe what the server says its tools do."] = False
    traits: Annotated[TraitSettings, "What its tools do, said by you."] = field(default_factory=TraitSettings)
    include: Annotated[tuple[str, ...], "Only these tools (globs over upstream names)."] = ("*",)
    exclude: Annotated[tuple[str, ...], "Not these tools (globs over upstream names)."] = ()
    rename: Annotated[Mapping[str, str], "New names, by upstream name."] = field(default_factory=dict)
    isolation: Annotated[Literal["shared", "caller"], "One child for all callers, or one for each."] = (
        "shared"
    )
    single: Annotated[
        bool,
        "Where gateways share a store: whether it runs on one of them at a time, as what may run once only.",
    ] = False
    credentials: Annotated[Sharing, "One account for all callers, or one of each caller's own."] = "shared"
    pin: Annotated[
        Literal["serve", "hold"], "Serve a changed definition at once, or hold it until a person agrees."
    ] = "serve"
    record: Annotated[
        Literal["await", "behind"], "`behind` lets calls of trusted read-only tools go ahead of their record."
    ] = "await"
    mask_results: Annotated[bool, "Take the server's own credentials out of what it answers."] = True
    where: Annotated[str, "File and line of this entry.", GIVEN] = field(default="", compare=False)
    ALSO: ClassVar[Mapping[str, InFile]] = {
        "title": InFile({"type": "string"}, "The same as `name`."),
        "type": InFile(
            {
                "enum": [
                    "stdio-mcp",
                    "remote-mcp",
                    "stdio",
                    "http",
                    "sse",
                    "streamable-http",
                    "streamableHttp",
                ]
            },
            "`stdio-mcp` or `remote-mcp`; also the clients' words.",
        ),
        "disabled": InFile({"type": "boolean"}, "The opposite of `enabled`, as clients write it."),
        "httpUrl": InFile({"type": "string"}, "The same as `url`."),
        "serverUrl": InFile({"type": "string"}, "The same as `url`."),
        "http_headers": InFile(TEMPLATES, "The same as `headers`."),
        "environment": InFile(TEMPLATES, "The same as `env`."),
        "includeTools": InFile(NAMES, "The same as `include`."),
        "enabled_tools": InFile(NAMES, "The same as `include`."),
        "excludeTools": InFile(NAMES, "The same as `exclude`."),
        "disabled_tools": InFile(NAMES, "The same as `exclude`."),
        "disabledTools": InFile(NAMES, "The same as `exclude`."),
    }

    @property
    def title(self) -> str:
        return self.name or self.key


def find_command(server: ServerSettings) -> str:
    """The absolute path of the server's program, or a `ConfigError` that says why there is none.

    One with a path of its own is looked for where the server starts, as whoever starts it by hand would.
    """
    command = server.command
    if "/" in command:
        command = str(Path(server.cwd or ".", command).absolute())
    found = shutil.which(command)
    if found is None:
        raise ConfigError(
            f"servers.{server.key}.command: {server.command} {why_missing(server.command, Path(command))}",
            where=server.where,
        )
    return str(Path(found).absolute())


def why_missing(said: str, path: Path) -> str:
    if "/" not in said:
        return "is not found on PATH"
    if not path.exists():
        return "does not exist" if Path(said).is_absolute() else f"does not exist ({path})"
    return "is a folder" if path.is_dir() else f"may not be run: chmod +x {shlex.quote(str(path))}"
