"""A Python function as a tool: what it takes becomes its schema, and what it is sent is read by that schema."""

import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, get_type_hints

import msgspec

from agent_gate.errors import ConfigError
from agent_gate.peers.toolwire import (
    LONGEST_LOG,
    MOST_LOGS,
    MOST_MILLISECONDS,
    USUAL_MILLISECONDS,
    ErrorCode,
    HostRequest,
    OfferedTool,
    ToolCallContext,
)

PLAIN = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Refused(Exception):
    """A tool raises this to say why it does not do what it was asked. `retryable` where the same call may work later."""

    def __init__(
        self,
        message: str,
        *,
        code: ErrorCode = "INVALID_ARGS",
        retryable: bool = False,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.code, self.retryable = message, code, retryable
        self.details = dict(details or {})


@dataclass(slots=True)
class Turn:
    """One call while its tool runs."""

    request: HostRequest
    logs: list[str] = field(default_factory=list)


turn: ContextVar[Turn] = ContextVar("turn")


def current_context() -> ToolCallContext:
    """For whom the tool that asks is running."""
    return turn.get().request.context


def current_tenant() -> str:
    return turn.get().request.tenant_id


def current_owner() -> str:
    """Whose the entries are that the tool which asks may see: the tenant's own, or those of one isolation key."""
    return f"{current_tenant()}\0{current_context().isolation_key or ''}"


def log_line(text: str) -> None:
    """A line for the gateway's debug log; after a good number of them no more are kept."""
    logs = turn.get().logs
    if len(logs) < MOST_LOGS:
        logs.append(text[:LONGEST_LOG])


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A function, how it is described, and how its arguments are read."""

    function: Callable[..., Any]
    offered: OfferedTool
    takes: type[msgspec.Struct]

    @property
    def name(self) -> str:
        return self.offered.name

    @property
    def waits(self) -> bool:
        """Whether it is a coroutine function; any other gets a thread."""
        return inspect.iscoroutinefunction(self.function)

    def arguments(self, given: dict[str, Any]) -> dict[str, Any]:
        """The arguments as the function takes them, or `Refused` with the one that does not fit."""
        try:
            read = msgspec.convert(given, self.takes)
        except msgspec.ValidationError as error:
            raise Refused(str(error)) from None
        return {name: getattr(read, name) for name in self.takes.__struct_fields__}


def as_tool(
    function: Callable[..., Any],
    *,
    name: str = "",
    timeout_ms: int = USUAL_MILLISECONDS,
    timeout_ms_max: int = MOST_MILLISECONDS,
    idempotent: bool = False,
    side_effects: bool = True,
) -> FunctionTool:
    takes = struct_of(function)
    offered = OfferedTool(
        name=name or function.__name__,
        description=inspect.cleandoc(function.__doc__ or ""),
        input_schema=schema_of(takes),
        timeout_ms_default=min(timeout_ms, timeout_ms_max),
        timeout_ms_max=timeout_ms_max,
        idempotent=idempotent,
        side_effects=side_effects,
    )
    try:
        msgspec.convert(msgspec.to_builtins(offered), OfferedTool)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{function.__qualname__} cannot be a tool: {error}") from None
    return FunctionTool(function, offered, takes)


def struct_of(function: Callable[..., Any]) -> type[msgspec.Struct]:
    """The parameters of a function as a class that reads them."""
    hints = get_type_hints(function, include_extras=True)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in PLAIN:
            raise ConfigError(
                f"{function.__qualname__} cannot be a tool: every parameter needs a name of its own"
            )
        hint = hints.get(parameter.name, Any)
        if parameter.default is inspect.Parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint, parameter.default))
    return msgspec.defstruct(function.__name__, fields, forbid_unknown_fields=True, kw_only=True)


def schema_of(takes: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of the arguments, its own part first and what it refers to below `$defs`."""
    try:
        (schema,), components = msgspec.json.schema_components([takes], ref_template="#/$defs/{name}")
    except TypeError as error:
        raise ConfigError(f"{takes.__name__} cannot be a tool: {error}") from None
    own = components.pop(schema["$ref"].rpartition("/")[2])
    own.pop("title", None)
    return {**own, **({"$defs": components} if components else {})}


def as_result(value: Any) -> dict[str, Any]:
    """What a function returned, as the object that a result has to be."""
    plain = msgspec.to_builtins(value, str_keys=True)
    return plain if isinstance(plain, dict) else {"result": plain}
