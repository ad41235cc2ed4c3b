"""What the gateway and a tool host say to each other once they are paired: discovery, calls and answers.

Both directions are read strictly: no unknown, missing or repeated field, nothing null that may be left out.
"""

from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from agent_gate.core.strict import MalformedJson, strict_json
from agent_gate.peers.encoding import Malformed

VERSION = "v1"
MOST_MILLISECONDS = 120_000
USUAL_MILLISECONDS = 30_000
MOST_LOGS, LONGEST_LOG = 200, 2_000
TOOLS, CALL, CANCEL = "/v1/tools", "/v1/tools/call", "/v1/tools/cancel"

Milliseconds = Annotated[int, Meta(ge=1, le=MOST_MILLISECONDS)]
OnlyVersion = Annotated[str, Meta(pattern=r"\Av1\Z")]
RequestOrigin = Literal["agent_turn", "cron", "operator", "system"]
ToolStatus = Literal["ok", "error", "retryable_error", "timeout"]
ErrorCode = Literal[
    "TOOL_NOT_FOUND",
    "INVALID_ARGS",
    "UNAUTHORIZED",
    "FORBIDDEN",
    "RATE_LIMITED",
    "DEPENDENCY_UNAVAILABLE",
    "TIMEOUT",
    "INTERNAL",
    "PAIRING_REQUIRED",
    "PAIRING_FAILED",
]


class ToolCallContext(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """For whom a tool runs. Without `isolation_key` it is the scope that everybody of the tenant shares."""

    agent_id: str
    session_id: str
    platform: str | UnsetType = UNSET
    channel_id: str | UnsetType = UNSET
    actor_id: str | UnsetType = UNSET
    isolation_key: str | UnsetType = UNSET
    trace_id: str | UnsetType = UNSET
    request_origin: RequestOrigin | UnsetType = UNSET


class HostRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """`POST /v1/tools/call`."""

    version: OnlyVersion
    call_id: Annotated[str, Meta(min_length=1, max_length=200)]
    tool_name: str
    tenant_id: str
    args: dict[str, Any]
    context: ToolCallContext
    idempotency_key: Annotated[str, Meta(min_length=1, max_length=512)] | UnsetType = UNSET
    timeout_ms: Milliseconds | UnsetType = UNSET


class HostCancel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`POST /v1/tools/cancel`: nobody waits for this call any more."""

    version: OnlyVersion
    call_id: str


class HostError(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    code: str | UnsetType = UNSET
    message: str | UnsetType = UNSET
    details: dict[str, Any] | UnsetType = UNSET
    retryable: bool | UnsetType = UNSET


class HostReply(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The answer to a call."""

    version: OnlyVersion
    call_id: str
    tool_name: str
    status: ToolStatus
    duration_ms: Annotated[int, Meta(ge=0)]
    result: dict[str, Any] | UnsetType = UNSET
    error: HostError | UnsetType = UNSET
    logs: list[str] | UnsetType = UNSET


class OfferedTool(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tool as its host describes it. What it says of itself is a claim until the operator trusts the host."""

    name: Annotated[str, Meta(pattern=r"\A[A-Za-z_][A-Za-z0-9_.-]{0,127}\Z")]
    description: str = ""
    input_schema: dict[str, Any] = msgspec.field(default_factory=lambda: {"type": "object"})
    output_schema: dict[str, Any] = msgspec.field(default_factory=dict)
    timeout_ms_default: Milliseconds = USUAL_MILLISECONDS
    timeout_ms_max: Milliseconds = MOST_MILLISECONDS
    idempotent: bool = False
    side_effects: bool = True


class Offer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`GET /v1/tools`."""

    version: OnlyVersion
    service: str
    tools: list[OfferedTool]


W = TypeVar("W", bound=Struct)


def read_wire(body: bytes, kind: type[W]) -> W:
    """A message of this kind; `Malformed` says in which field it is none."""
    try:
        return msgspec.convert(strict_json(body), kind)
    except MalformedJson as error:
        raise Malformed(str(error)) from None
    except msgspec.ValidationError as error:
        raise Malformed(str(error)) from None
