"""How a server's failures become the gateway's errors: what was certain, what was not, and whose fault."""

from collections.abc import Iterator
from contextlib import contextmanager

from agent_gate.errors import (
    CallTimeout,
    DependencyUnavailable,
    OutcomeUnknown,
    RateLimited,
    Unauthorized,
    UpstreamError,
)
from agent_gate.sources.mcp.wire import Broken, Refused, RpcError, Throttled


@contextmanager
def failing(title: str, method: str) -> Iterator[None]:
    """Around one request of a caller."""
    try:
        yield
    except Refused as refusal:
        if refusal.status in (401, 403):
            raise DependencyUnavailable(
                f"{title} refuses the gateway: {refusal.message}; check its auth"
            ) from None
        raise UpstreamError(f"{title}: {refusal.message}") from None
    except RpcError as error:
        details = {"server": title, "code": error.code, "data": error.data}
        raise UpstreamError(f"{title}: {error.message}", details=details) from None
    except Throttled as limit:
        raise RateLimited(
            f"{title} limits how often it is called; try again later", retry_after=limit.after
        ) from None
    except Broken as broken:
        first = broken.reason.partition("\n")[0]
        if not broken.sent:
            raise DependencyUnavailable(f"{title} is not available: {first}") from None
        raise OutcomeUnknown(
            f"{title} was lost during {method}: {first}. Check whether it took effect"
        ) from None
    except TimeoutError:
        raise CallTimeout(f"{title} did not answer {method} in time; it was told to stop") from None


@contextmanager
def meeting(title: str) -> Iterator[None]:
    """Around connecting, listing and watching; the reason is for the operator."""
    try:
        yield
    except Refused as refusal:
        if refusal.status in (401, 403):
            raise Unauthorized(f"{title} refuses the gateway: {refusal.message}; check its auth") from None
        raise DependencyUnavailable(f"{title} cannot be used: {refusal.message}") from None
    except RpcError as error:
        raise DependencyUnavailable(f"{title} cannot be used: {error.message}") from None
    except Throttled as limit:
        raise DependencyUnavailable(f"{title} is busy", retry_after=limit.after) from None
    except Broken as broken:
        raise DependencyUnavailable(f"{title} is not available: {broken.reason}") from None
    except TimeoutError:
        raise DependencyUnavailable(f"{title} did not answer in time") from None
