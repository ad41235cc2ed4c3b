"""How a server's failures become the gateway's errors: what was certain, what was not, and whose fault."""

from agent_gate.core.credentials import SignInNeeded
from agent_gate.errors import (
    CallTimeout,
    DependencyUnavailable,
    GatewayError,
    OutcomeUnknown,
    RateLimited,
    Unauthorized,
    UpstreamError,
)
from agent_gate.mcp.errors import RpcError, Unanswered
from agent_gate.mcp.names import CALL_TOOL
from agent_gate.sources.mcp.clean import clean
from agent_gate.sources.mcp.wire.problems import Broken, StaleSession, Throttled, TurnedAway

FAILURES = (RpcError, Throttled, Broken, StaleSession, TimeoutError)
UNAUTHENTICATED = 401
CREDENTIAL = (UNAUTHENTICATED, 403)
LONGEST_WHY = 300


def call_error(error: Exception, title: str, method: str) -> GatewayError:
    """For the caller whose request failed."""
    if isinstance(error, TurnedAway) and error.status == UNAUTHENTICATED:
        return SignInNeeded(refusal(error, title))
    if isinstance(error, TurnedAway) and error.status in CREDENTIAL:
        return DependencyUnavailable(refusal(error, title))
    if isinstance(error, Unanswered) and method == CALL_TOOL:
        return no_result(title, method, error.message, error.came)
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


def refusal(error: TurnedAway, title: str) -> str:
    return (
        f"{title} refuses the gateway: {error.message}; check its auth. When it is right, reload, "
        "or reconnect it by the name that `agent-gate sources` lists"
    )


def no_result(title: str, method: str, why: str, came: bytes) -> OutcomeUnknown:
    """For a request that was taken, and answered with something else than its result."""
    unknown = OutcomeUnknown(
        f"{title} did not answer {method} with a result: {clean(why, LONGEST_WHY)}. Check whether it took effect"
    )
    unknown.came = came
    return unknown


def connect_error(error: Exception, title: str) -> GatewayError:
    """For the operator, when connecting, listing or watching failed."""
    if isinstance(error, TurnedAway) and error.status in CREDENTIAL:
        return Unauthorized(refusal(error, title))
    if isinstance(error, Throttled):
        return DependencyUnavailable(f"{title} is busy", retry_after=error.after)
    if isinstance(error, RpcError):
        return DependencyUnavailable(f"{title} cannot be used: {error.message}")
    if isinstance(error, Broken):
        return DependencyUnavailable(f"{title} is not available: {error.reason}")
    return DependencyUnavailable(f"{title} did not answer in time")
