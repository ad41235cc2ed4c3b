"""How a server's failures become the gateway's errors: what was certain, what was not, and whose fault."""

from agent_gate.errors import (
    CallTimeout,
    DependencyUnavailable,
    GatewayError,
    OutcomeUnknown,
    RateLimited,
    Unauthorized,
    UpstreamError,
)
from agent_gate.sources.mcp.wire import Broken, Refused, RpcError, StaleSession, Throttled

FAILURES = (RpcError, Throttled, Broken, StaleSession, TimeoutError)
CREDENTIAL = (401, 403)


def call_error(error: Exception, title: str, method: str) -> GatewayError:
    """For the caller whose request failed."""
    if isinstance(error, Refused) and error.status in CREDENTIAL:
        return DependencyUnavailable(f"{title} refuses the gateway: {error.message}; check its auth")
    if isinstance(error, RpcError):
        details = {"server": title, "code": error.code, "data": error.data}
        return UpstreamError(f"{title}: {error.message}", details=details)
    if isinstance(error, Throttled):
        return RateLimited(f"{title} limits how often it is called; try again later", retry_after=error.after)
    if isinstance(error, Broken):
        if error.sent:
            return OutcomeUnknown(
                f"{title} was lost during {method}: {error.brief}. Check whether it took effect"
            )
        return DependencyUnavailable(f"{title} is not available: {error.brief}")
    return CallTimeout(f"{title} did not answer {method} in time; it was told to stop")


def connect_error(error: Exception, title: str) -> GatewayError:
    """For the operator, when connecting, listing or watching failed."""
    if isinstance(error, Refused) and error.status in CREDENTIAL:
        return Unauthorized(f"{title} refuses the gateway: {error.message}; check its auth")
    if isinstance(error, Throttled):
        return DependencyUnavailable(f"{title} is busy", retry_after=error.after)
    if isinstance(error, RpcError):
        return DependencyUnavailable(f"{title} cannot be used: {error.message}")
    if isinstance(error, Broken):
        return DependencyUnavailable(f"{title} is not available: {error.reason}")
    return DependencyUnavailable(f"{title} did not answer in time")
