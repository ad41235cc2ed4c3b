"""The settings of one gateway: frozen dataclasses whose fields say what they mean and have a default."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from agent_gate.access.issuers import TrustedIssuer
from agent_gate.access.roles import Role
from agent_gate.approval.channels.kind import ChannelSettings
from agent_gate.config.auth import AuthSettings
from agent_gate.config.issuers import trusted_issuer
from agent_gate.config.shape import ADDRESS, AT_START, GIVEN, SECRET, AtLeast, AtMost, InFile
from agent_gate.core.call import Caller
from agent_gate.core.notes import ReadBy

PORTS = AtMost(65535)
CallMode = Literal["full", "proxy", "gateway"]
MADE_AGENT = "my-agent"
"""The agent that is made where none is configured; people read its name in questions."""
ContextField = Literal["platform", "channel_id", "actor_id", "isolation_key"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """The certificate of the public listener; without one, a certificate is made at the first start."""

    cert: Annotated[Path | None, "Certificate chain in PEM. Given together with `key`."] = None
    key: Annotated[Path | None, "Private key in PEM."] = None
    names: Annotated[tuple[str, ...], "More names and addresses for the certificate that is made."] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """The public listener, and what this gateway calls itself."""

    id: Annotated[str, "Name of this gateway in records, logs and metrics.", AT_START] = "home"
    tenant: Annotated[
        str,
        "Whose gateway it is, as tool hosts are told it; what its vault keeps opens under this name alone.",
        AT_START,
    ] = "home"
    host: Annotated[str, "Address to listen on.", AT_START] = "127.0.0.1"
    port: Annotated[
        int, "Port to listen on; 0 takes any free one and prints it.", AtLeast(0), PORTS, AT_START
    ] = 8443
    allowed_hosts: Annotated[
        tuple[str, ...],
        "More Host and Origin names to accept, beside loopback, the bound address and the certificate's.",
    ] = ()
    proxies: Annotated[
        tuple[str, ...],
        "Addresses or networks of your reverse proxies, of this listener and of the page's: limits for each address "
        "hold for whom their `X-Forwarded-For` names.",
        ReadBy(ip_network, "an address or a network such as 10.0.0.0/24"),
        AT_START,
    ] = ()
    tls: Annotated[TlsSettings, "The certificate."] = field(default_factory=TlsSettings)
    reuse_port: Annotated[
        bool,
        "Share the port with other gateways on this machine; the system spreads connections over them.",
        AT_START,
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminSettings:
    """The operator's listener: page, admin API, metrics; and the Unix socket of the operator commands."""

    host: Annotated[str, "Address to listen on.", AT_START] = "127.0.0.1"
    port: Annotated[int, "Port to listen on; 0 takes any free one.", AtLeast(0), PORTS, AT_START] = 3100
    socket: Annotated[Path, "Unix socket of the operator commands.", AT_START] = Path("data/admin.sock")
    public_url: Annotated[
        str | None,
        "Address under which people reach the page from other devices, such as `https://gate.example.ts.net`; "
        "links in messages carry it, and its host name is accepted.",
    ] = None
    callback_url: Annotated[
        str | None,
        "Address under which a browser reaches `/auth/callback` after a sign-in; else `TOOL_GATEWAY_CALLBACK_URL`, "
        "else `http://localhost:PORT/auth/callback`. Its host name is accepted there alone.",
    ] = None
    client_document_url: Annotated[
        str | None,
        "Public HTTPS address of the document that says who the gateway is to authorization servers, where one reads "
        "such; else `/auth/client.json` beside an HTTPS `callback_url`.",
    ] = None
    tls: Annotated[
        Literal["auto", "off"],
        "`auto`: plain on loopback and with `--insecure`, TLS elsewhere. `off`: plain everywhere, for a container whose "
        "port is published on loopback alone.",
        AT_START,
    ] = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerPolicySettings:
    """What one peer may do beside its role, as actions such as `events.subscribe:approval.*`; a denial wins."""

    allow: Annotated[tuple[str, ...], "What it may do too. `tool.call.*` counts only where it is named."] = ()
    deny: Annotated[tuple[str, ...], "What it may not do, whatever else says so."] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PeersSettings:
    """The listener for paired components that dial the gateway (TLS 1.3 with client certificates)."""

    host: Annotated[str, "Address to listen on.", AT_START] = "127.0.0.1"
    port: Annotated[int, "Port to listen on; 0 takes any free one.", AtLeast(0), PORTS, AT_START] = 8444
    policy: Annotated[Mapping[str, PeerPolicySettings], "What peers may do beside their roles, by name."] = (
        field(default_factory=dict)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimitSettings:
    """How much a caller may ask for; 0 means no limit."""

    max_requests_per_minute: Annotated[
        int,
        "Calls per minute, and ten times as many looks with `tool_browse`, `tool_hydrate` and `tool_view`; 0: no limit.",
        AtLeast(0),
    ] = 60
    max_pending_approvals: Annotated[int, "Questions open at a time; 0: no limit.", AtLeast(0)] = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """An agent that may come in, known by its token."""

    name: Annotated[str, "The key under `agents`.", GIVEN] = MADE_AGENT
    token: Annotated[str, "The secret the agent presents; at least 16 characters.", SECRET] = field(
        default="", repr=False
    )
    token_hash: Annotated[str, "SHA-256 of the token in hex, instead of `token`."] = ""
    mode: Annotated[CallMode, "What `/mcp` shows: every tool, a stripped list, or three meta-tools."] = "full"
    namespaces: Annotated[tuple[str, ...] | None, "The only services and servers it sees; null: all."] = None
    cache_stable: Annotated[bool, "Keep what it has seen in front, so that prompt caches hold."] = False
    names: Annotated[
        Literal["wire", "tool_id"], "How tools are named in a stripped list: MCP-safe, or as tool ids."
    ] = "wire"
    budget: Annotated[int | None, "Tokens a result may take before it becomes an artifact.", AtLeast(1)] = (
        None
    )
    rate_limit: Annotated[
        RateLimitSettings,
        "Its own limits; what it leaves out comes from the general `rate_limit`.",
        InFile({"$ref": "#/$defs/RateLimitSettings"}),
    ] = field(default_factory=RateLimitSettings)
    person: Annotated[str, "The person it works for, for rules, questions and the record; empty: nobody."] = (
        ""
    )
    context: Annotated[
        tuple[ContextField, ...],
        "What it may tell tool hosts of its own conversation; anything else is left out.",
    ] = ()
    where: Annotated[str, "File and line of this entry.", GIVEN] = ""

    def caller(self) -> Caller:
        """Who calls with this agent's token."""
        return Caller(
            name=self.name,
            namespaces=None if self.namespaces is None else frozenset(self.namespaces),
            mode=self.mode,
            names=self.names,
            cache_stable=self.cache_stable,
            calls_per_minute=self.rate_limit.max_requests_per_minute,
            max_pending=self.rate_limit.max_pending_approvals,
            budget=self.budget,
            context=frozenset(self.context),
            person=self.person,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Someone who answers questions."""

    name: Annotated[str, "The key under `people`.", GIVEN] = "operator"
    uid: Annotated[int | None, "User id on this machine; the admin socket knows them by it.", AtLeast(0)] = (
        None
    )
    known_by: Annotated[Mapping[str, int | str], "What kinds of channel know them by.", GIVEN] = field(
        default_factory=dict
    )
    login: Annotated[str | None, "Login on the operator's page."] = None
    role: Annotated[
        Role, "What they may do: `viewer` looks, `approver` also answers, `operator` does everything."
    ] = "operator"
    namespaces: Annotated[
        tuple[str, ...] | None,
        "The only services and servers whose questions an `approver` answers; null: all.",
    ] = None
    groups: Annotated[tuple[str, ...], "What they belong to, for rules about people."] = ()
    passphrase: Annotated[
        str | None, "What this person types to answer, instead of the shared one.", SECRET
    ] = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproversSettings:
    """What an answer needs beside its channel."""

    passphrase: Annotated[
        str | None, "Asked for with every answer on the socket or the page; null: not asked.", SECRET
    ] = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """Where calls, approvals, grants and the record are kept."""

    type: Annotated[Literal["sqlite", "postgres"], "Kind of store."] = "sqlite"
    path: Annotated[Path, "The SQLite file."] = Path("data/agent-gate.db")
    url: Annotated[str | None, "The PostgreSQL address.", SECRET] = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """How long the record is kept."""

    retention: Annotated[
        float | None,
        "Days that calls stay on record after they ended; older ones are cut away once an hour. null: for ever.",
        AtLeast(1),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsSettings:
    """Which results are kept, and how long artifacts are."""

    keep: Annotated[
        Literal["none", "failed", "all"],
        "Which results operators can look at beside their calls; masked, at most 64 KiB of each.",
    ] = "none"
    keep_days: Annotated[float, "Days until such a result is removed.", AtLeast(0)] = 7.0
    retention_days: Annotated[float, "Days until an artifact is removed.", AtLeast(0), AT_START] = 7.0
    budget: Annotated[
        int | None,
        "Tokens a result may take before it becomes an artifact, where the agent says nothing.",
        AtLeast(1),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsSettings:
    """Bounds that protect the process."""

    timeout: Annotated[
        float, "Seconds a call may run, unless its tool or source says otherwise.", AtLeast(0.001)
    ] = 60.0
    hold: Annotated[
        float, "Seconds an MCP request is held while a person is asked.", AtLeast(0), AT_START
    ] = 50.0
    max_request_bytes: Annotated[
        int, "Largest HTTP request that is read from an agent.", AtLeast(1024), AT_START
    ] = 4 << 20
    max_result_bytes: Annotated[int, "Largest result taken from a source.", AtLeast(1024)] = 64 << 20
    max_connections: Annotated[
        int,
        "Connections open at a time on the public listener, as far as open files allow.",
        AtLeast(16),
        AT_START,
    ] = 16_384
    drain: Annotated[float, "Seconds that running calls get when the gateway stops.", AtLeast(0)] = 10.0
    announce: Annotated[
        float,
        "Seconds before a stop in which `/ready` says so and calls are still taken, for a load balancer to see it.",
        AtLeast(0),
    ] = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """Traces and metrics to the outside; nothing leaves unless an endpoint is given."""

    otlp_endpoint: Annotated[
        str | None, "OTLP over HTTP address, such as `http://127.0.0.1:4318`.", ADDRESS
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """What is logged to stderr."""

    level: Annotated[Literal["debug", "info", "warning", "error"], "Least severity that is written."] = "info"
    format: Annotated[Literal["auto", "text", "json"], "`auto`: text on a terminal, JSON otherwise."] = "auto"
    requests: Annotated[
        bool, "One line for each request: method, tool, duration. `session start` sets it."
    ] = False


CHANNEL = {"$ref": "#/$defs/Channel"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """config.yaml as a whole."""

    gateway: Annotated[GatewaySettings, "The public listener."] = field(default_factory=GatewaySettings)
    admin: Annotated[AdminSettings, "The operator's listener."] = field(default_factory=AdminSettings)
    peers: Annotated[
        PeersSettings | None, "The listener for paired components that dial the gateway; null: off."
    ] = None
    agents: Annotated[
        Mapping[str, AgentSettings],
        "The agents that may come in, by name.",
        InFile({"type": "object", "additionalProperties": {"$ref": "#/$defs/AgentSettings"}}),
    ] = field(default_factory=dict)
    auth: Annotated[AuthSettings, "Come in by signing in, instead of with a token from a file."] = field(
        default_factory=AuthSettings
    )
    sources: Annotated[
        Mapping[str, Mapping[str, object]],
        "What each kind of source brings, by the name of its section.",
        GIVEN,
    ] = field(default_factory=dict)
    channels: Annotated[
        tuple[ChannelSettings, ...],
        "Where people are asked, beside the page and the terminal.",
        InFile({"type": "array", "items": CHANNEL}),
    ] = ()
    people: Annotated[
        Mapping[str, Person],
        "Who answers, by name; without any it is `operator`.",
        InFile({"type": "object", "additionalProperties": {"$ref": "#/$defs/Person"}}),
    ] = field(default_factory=dict)
    approvers: Annotated[ApproversSettings, "What an answer needs."] = field(
        default_factory=ApproversSettings
    )
    storage: Annotated[StorageSettings, "The store.", AT_START] = field(default_factory=StorageSettings)
    rate_limit: Annotated[RateLimitSettings, "Limits of every agent that has none of its own."] = field(
        default_factory=RateLimitSettings
    )
    approval_timeout: Annotated[float, "Seconds until an unanswered question expires.", AtLeast(1)] = 900.0
    permissions: Annotated[
        Path | None, "The rules; null: `permissions.yaml` beside this file, where there is one."
    ] = None
    audit: Annotated[AuditSettings, "The record."] = field(default_factory=AuditSettings)
    results: Annotated[ResultsSettings, "Kept results."] = field(default_factory=ResultsSettings)
    limits: Annotated[LimitsSettings, "Bounds."] = field(default_factory=LimitsSettings)
    telemetry: Annotated[TelemetrySettings, "Traces and metrics.", AT_START] = field(
        default_factory=TelemetrySettings
    )
    log: Annotated[LogSettings, "Logging.", AT_START] = field(default_factory=LogSettings)

    def groups_of(self, person: str) -> tuple[str, ...]:
        """What a person under `people` belongs to."""
        return self.people[person].groups if person in self.people else ()

    def trusted_issuers(self) -> list[TrustedIssuer]:
        """Other issuers whose tokens agents come in with; the general limits hold for them."""
        limits = self.rate_limit
        most = limits.max_requests_per_minute, limits.max_pending_approvals
        return [trusted_issuer(one, *most) for one in self.auth.jwt]

    ALSO: ClassVar[Mapping[str, InFile]] = {
        "agent": InFile({"$ref": "#/$defs/AgentSettings"}, "A single agent; its name is `default`."),
        "messenger": InFile(CHANNEL, "A single channel."),
    }
