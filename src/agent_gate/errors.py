"""Every error this program raises on purpose, as one tree with its outward codes beside it.

    GatewayError                      code                     JSON-RPC  HTTP  exit
    ├── InvalidArgs                   INVALID_ARGS              -32600    400    4
    │   ├── PathInvalid               PATH_INVALID              -32600    400    4
    │   ├── PathNotFound              PATH_NOT_FOUND            -32600    404    4
    │   └── ViewFailed                VIEW_FAILED               -32600    404    4
    ├── ToolNotFound                  TOOL_NOT_FOUND            -32004    404    4
    ├── Unauthorized                  UNAUTHORIZED              -32005    401    3
    ├── Unreachable                   UNREACHABLE                  –       –     3   (client side only)
    ├── Forbidden                     FORBIDDEN                 -32003    403    1
    ├── ApprovalDenied                APPROVAL_DENIED           -32001    403    1
    ├── ApprovalTimeout               APPROVAL_TIMEOUT          -32002    504    2
    ├── CallTimeout                   TIMEOUT                   -32004    504    2
    ├── RateLimited                   RATE_LIMITED              -32006    429    6
    ├── UpstreamError                 UPSTREAM_ERROR            -32004    502    5
    │   └── HTTPServiceError
    ├── DependencyUnavailable         DEPENDENCY_UNAVAILABLE    -32004    503    5
    ├── OutcomeUnknown                OUTCOME_UNKNOWN           -32004    502    9
    ├── PairingRequired               PAIRING_REQUIRED          -32004    503    5
    ├── PairingFailed                 PAIRING_FAILED            -32004    502    5
    ├── Internal                      INTERNAL                  -32603    500    7
    ├── ConfigError                   CONFIG_INVALID               –       –     8
    └── CatalogError                  CATALOG_INVALID              –       –     8

The class attributes below are that table; nothing else in the program invents a code.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar


class GatewayError(Exception):
    """The root. `message` says what happened and what to do next; it never carries a secret."""

    code: ClassVar[str] = "INTERNAL"
    rpc: ClassVar[int] = -32603
    status: ClassVar[int] = 500
    exit: ClassVar[int] = 7
    retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = dict(details) if details else None
        self.retry_after = retry_after

    def told(self) -> str:
        """The message, and on a line of its own the reason that a rule gives for it."""
        reason = (self.details or {}).get("reason")
        return f"{self.message}\n{reason}" if isinstance(reason, str) and reason else self.message

    def as_dict(self) -> dict[str, Any]:
        """The one outward form: `code`, `message`, `retryable`, and `details` where there are any."""
        out: dict[str, Any] = {"code": self.code, "message": self.message, "retryable": self.retryable}
        if self.details:
            out["details"] = self.details
        return out


ERROR_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "retryable"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "retryable": {"type": "boolean"},
                "details": {"type": "object"},
            },
        }
    },
}
"""An answer over HTTP that is an error, as both OpenAPI documents describe it."""


class InvalidArgs(GatewayError):
    code, rpc, status, exit = "INVALID_ARGS", -32600, 400, 4


class PathInvalid(InvalidArgs):
    code = "PATH_INVALID"


class PathNotFound(InvalidArgs):
    code, status = "PATH_NOT_FOUND", 404


class ViewFailed(InvalidArgs):
    code, status = "VIEW_FAILED", 404


class ToolNotFound(GatewayError):
    code, rpc, status, exit = "TOOL_NOT_FOUND", -32004, 404, 4


class Unauthorized(GatewayError):
    code, rpc, status, exit = "UNAUTHORIZED", -32005, 401, 3


class Unreachable(GatewayError):
    """The client could not reach the gateway."""

    code, exit, retryable = "UNREACHABLE", 3, True


class Forbidden(GatewayError):
    code, rpc, status, exit = "FORBIDDEN", -32003, 403, 1


class ApprovalDenied(GatewayError):
    code, rpc, status, exit = "APPROVAL_DENIED", -32001, 403, 1


class ApprovalTimeout(GatewayError):
    code, rpc, status, exit = "APPROVAL_TIMEOUT", -32002, 504, 2


class CallTimeout(GatewayError):
    code, rpc, status, exit = "TIMEOUT", -32004, 504, 2


class RateLimited(GatewayError):
    code, rpc, status, exit, retryable = "RATE_LIMITED", -32006, 429, 6, True


class UpstreamError(GatewayError):
    code, rpc, status, exit = "UPSTREAM_ERROR", -32004, 502, 5


class HTTPServiceError(UpstreamError):
    """An HTTP service answered with an error, or with something that is not JSON."""


class DependencyUnavailable(GatewayError):
    code, rpc, status, exit, retryable = "DEPENDENCY_UNAVAILABLE", -32004, 503, 5, True


class OutcomeUnknown(GatewayError):
    """Something may have run. `came` is what an upstream sent instead of a result: for the record, not for the caller."""

    came: bytes = b""
    code, rpc, status, exit = "OUTCOME_UNKNOWN", -32004, 502, 9


class PairingRequired(GatewayError):
    code, rpc, status, exit = "PAIRING_REQUIRED", -32004, 503, 5


class PairingFailed(GatewayError):
    code, rpc, status, exit = "PAIRING_FAILED", -32004, 502, 5


class Internal(GatewayError):
    code, rpc, status, exit = "INTERNAL", -32603, 500, 7


class ConfigError(GatewayError):
    """A configuration file is wrong. `where` is `file:line:column`, as far as it is known.

    `files` are those that were read or looked for until then; the mistake may be mended in any of them. `also` are the
    other faults that were found with it.
    """

    code, exit = "CONFIG_INVALID", 8
    files: tuple[Path, ...] = ()
    also: "tuple[ConfigError, ...]" = ()

    def __init__(self, message: str, *, where: str | None = None) -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.where = where


class CatalogError(GatewayError):
    """A tool id is malformed, or two tools resolve to one id."""

    code, exit = "CATALOG_INVALID", 8


def leaves() -> list[type[GatewayError]]:
    """Every class of the tree above, root included, in a stable order; for the tests that map them all."""
    found: list[type[GatewayError]] = [GatewayError]
    for cls in found:
        drawn = [sub for sub in cls.__subclasses__() if sub.__module__ == __name__]
        found.extend(sorted(drawn, key=lambda sub: sub.__name__))
    return found


def by_code() -> dict[str, type[GatewayError]]:
    """The class for each outward code, so that a client can raise what the gateway meant."""
    return {cls.code: cls for cls in reversed(leaves())}
