"""A service and its tools as declared in YAML. Plugins receive these: a `ServiceConfig` and its `ToolDefinition`s."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from agent_gate.config.shape import GIVEN, SECRET, AtLeast, InFile
from agent_gate.config.signin import Sharing, SignInKeys
from agent_gate.core.credentials import Identity, SignInKind
from agent_gate.core.traits import TRAITS, Traits, trait_fields
from agent_gate.net.auth import AUTH_TYPES

ArgType = Literal["string", "integer", "number", "boolean", "array", "object"]
Method = Literal["GET", "POST", "PUT", "DELETE", "PATCH"]
HealthMethod = Literal["GET", "HEAD", "POST", "OPTIONS"]
BodyType = Literal["json", "form", "text"]
AnswerType = Literal["json", "text", "file"]
SIGNED_IN: tuple[SignInKind, ...] = tuple(kind for kind in get_args(SignInKind) if kind not in AUTH_TYPES)
if TYPE_CHECKING:
    HttpAuthType = str
else:
    HttpAuthType = Literal[(*AUTH_TYPES, *SIGNED_IN)]
BODILESS = frozenset({"GET", "DELETE"})
TEMPLATES = {"type": "object", "additionalProperties": {"type": "string"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgDefinition:
    """One argument of a tool."""

    type: Annotated[ArgType, "JSON type of the value."] = "string"
    required: Annotated[bool, "Whether a call must have it."] = False
    description: Annotated[str, "What it is, for the agent."] = ""
    validate: Annotated[str | None, "Regular expression the whole text must match (linear-time syntax)."] = (
        None
    )
    enum: Annotated[tuple[Any, ...] | None, "The only values it takes."] = None
    default: Annotated[Any, "Value that is filled in, before the rules, when it is left out."] = None
    items: Annotated[
        "ArgDefinition | None", "What the items of an array are.", InFile({"$ref": "#/$defs/ArgDefinition"})
    ] = None
    properties: Annotated[
        "Mapping[str, ArgDefinition] | None",
        "What the members of an object are.",
        InFile({"type": "object", "additionalProperties": {"$ref": "#/$defs/ArgDefinition"}}),
    ] = None
    secret: Annotated[
        bool, "Masked in approvals, records and logs; with a secret part, the whole argument is."
    ] = False
    text: Annotated[bool, "Free text: may hold `* ? [ ] ( ) ,` and line breaks; no signature can use it."] = (
        False
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDefinition:
    """The HTTP request that a call becomes."""

    method: Annotated[Method, "HTTP method."]
    path: Annotated[str, "Path below the service's `url`; each `{argument}` is one encoded segment."]
    body_exclude: Annotated[tuple[str, ...], "Arguments that stay out of the body."] = ()
    query: Annotated[Mapping[str, str], "Query parameters, as templates over the arguments."] = field(
        default_factory=dict
    )
    headers: Annotated[Mapping[str, str], "Headers, as templates over the arguments."] = field(
        default_factory=dict
    )
    body: Annotated[
        Any,
        "The body as a template, instead of all arguments; a text that is one `{argument}` keeps its type.",
    ] = None
    body_type: Annotated[
        BodyType, "What the body is sent as: JSON, the fields of a form, or the text that `body` gives."
    ] = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseDefinition:
    """What becomes of the answer."""

    type: Annotated[
        AnswerType, "What the answer is: JSON, text of any kind, or a file such as a picture."
    ] = "json"
    wrap: Annotated[str | None, "Key under which the answer is put: `{wrap: answer}`."] = None


@dataclass(frozen=True, slots=True, kw_only=True)
@trait_fields(bool, False, lambda trait: trait.tool)
class ToolDefinition:
    """One tool of a service."""

    name: Annotated[str, "The key under `tools`.", GIVEN]
    service_name: Annotated[str, "The service it belongs to.", GIVEN] = ""
    description: Annotated[str, "What it does, for the agent."] = ""
    signature: Annotated[
        str, "What policy matches, as `{domain}.{service}, {entity_id}`; empty: the name."
    ] = ""
    args: Annotated[
        Mapping[str, ArgDefinition],
        "Its arguments by name.",
        InFile({"type": ["object", "null"], "additionalProperties": {"$ref": "#/$defs/ArgDefinition"}}),
    ] = field(default_factory=dict)
    additional_args: Annotated[
        bool | None,
        "Whether undeclared arguments are taken; by default only by POST, PUT and PATCH without `body`.",
    ] = None
    request: Annotated[RequestDefinition | None, "The HTTP request; a plugin's tools need none."] = None
    response: Annotated[ResponseDefinition | None, "What becomes of the answer."] = None
    timeout: Annotated[float | None, "Seconds a call may run.", AtLeast(0.001)] = None
    ask: Annotated[str, "Sentence shown to the person who is asked, as `Turn on {entity_id}?`."] = ""
    budget: Annotated[int | None, "Tokens a result may take before it becomes an artifact.", AtLeast(1)] = (
        None
    )
    record: Annotated[
        Literal["await", "behind"], "`behind` lets a read-only call go ahead of its record."
    ] = "await"
    tags: Annotated[tuple[str, ...], "Words that help to find it."] = ()
    where: Annotated[str, "File and line of this entry.", GIVEN] = field(default="", compare=False)

    @property
    def traits(self) -> Traits:
        """What the operator wrote, and so is trusted."""
        return Traits(trusted=True, **{name: getattr(self, name) for name in TRAITS})

    @property
    def open_args(self) -> bool:
        """Whether a call may have arguments that are not declared."""
        if self.additional_args is not None:
            return self.additional_args
        if self.request is None:
            return True
        return self.request.method not in BODILESS and self.request.body is None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthConfig(SignInKeys):
    """How the gateway proves itself to a service."""

    type: Annotated[
        HttpAuthType,
        "Kind of credential; for `api-key` and the OAuth types a person stores a key or signs in.",
    ] = "none"
    token: Annotated[str, "The credential; `bearer`, `header` and `query` need it.", SECRET] = field(
        default="", repr=False
    )
    header_name: Annotated[str, "Header of `header` and `api-key`, such as `X-API-Key`."] = ""
    query_param: Annotated[str, "Parameter of `query` and `api-key`, such as `api_key`."] = ""
    username: Annotated[str, "User of `basic`."] = ""
    password: Annotated[str, "Password of `basic`.", SECRET] = field(default="", repr=False)

    @property
    def placed(self) -> str:
        """The way a key or a token goes onto a request: one of the plain types."""
        if self.type not in SIGNED_IN:
            return self.type
        return "header" if self.header_name else "query" if self.query_param else "bearer"

    def identity(self, source: str, url: str, accounts: Sharing = "shared") -> Identity:
        """Who `source` at `url` is to its upstream; without a token, as whom a person signs it in."""
        kind = next((kind for kind in SIGNED_IN if kind == self.type), None)
        sign_in = self.sign_in(kind, url) if kind is not None and not self.token else None
        return Identity(
            source=source,
            type=self.placed,
            token=self.token,
            username=self.username,
            password=self.password,
            header_name=self.header_name,
            query_param=self.query_param,
            sign_in=sign_in,
            per_caller=accounts == "per-caller",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheckConfig:
    """How to see whether a service is well."""

    method: Annotated[HealthMethod, "HTTP method."] = "GET"
    path: Annotated[str, "Path below the service's `url`."] = "/"
    expect_status: Annotated[int, "Status that means well.", AtLeast(100)] = 200
    configured: Annotated[
        bool, "Whether the file has a `health` block; only then `/ready` counts it.", GIVEN
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorMapping:
    """What an agent is told when the service answers with a status."""

    status: Annotated[int, "HTTP status.", AtLeast(100)]
    message: Annotated[str, "The text; `{status}` and `{body}` are filled in."]


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSettings:
    """Where Python plugins may be imported from, beside installed packages."""

    paths: Annotated[tuple[Path, ...], "Folders added for `handler_class` modules."] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceConfig:
    """An HTTP service, or a Python plugin, with its tools."""

    name: Annotated[str, "The key under `services`, which is the namespace.", GIVEN]
    url: Annotated[str, "Base address; a plugin may use any scheme."] = ""
    auth: Annotated[AuthConfig, "Credential."] = field(default_factory=AuthConfig)
    credentials: Annotated[Sharing, "One account for all callers, or one of each caller's own."] = "shared"
    handler: Annotated[Literal["http", "python"], "Who answers calls: HTTP requests or a Python class."] = (
        "http"
    )
    handler_class: Annotated[str, "`module:Class` of `handler: python`."] = ""
    plugin_folders: Annotated[tuple[Path, ...], "`plugins.paths`, where it may come from.", GIVEN] = ()
    health: Annotated[HealthCheckConfig, "Health check.", InFile({"$ref": "#/$defs/HealthCheckConfig"})] = (
        field(default_factory=HealthCheckConfig)
    )
    timeout: Annotated[
        float | None, "Seconds a call may run, where the tool says nothing.", AtLeast(0.001)
    ] = None
    ca: Annotated[Path | None, "PEM file of the authority that signed the service's certificate."] = None
    ca_digest: Annotated[str, "SHA-256 of that file.", GIVEN] = ""
    tools: Annotated[
        tuple[ToolDefinition, ...],
        "Tools: a file, a list of files, or the mapping itself.",
        InFile(
            {
                "anyOf": [
                    {"type": ["string", "null"]},
                    {"type": "array", "items": {"type": "string"}},
                    {"type": "object", "additionalProperties": {"$ref": "#/$defs/ToolDefinition"}},
                ]
            }
        ),
    ] = ()
    errors: Annotated[tuple[ErrorMapping, ...], "What agents are told for a status."] = ()
    mask_results: Annotated[bool, "Take the service's own credential out of what it answers."] = True
    options: Annotated[Mapping[str, Any], "Anything a plugin wants to know; not read by the gateway."] = (
        field(default_factory=dict)
    )
    where: Annotated[str, "File and line of this entry.", GIVEN] = field(default="", compare=False)
