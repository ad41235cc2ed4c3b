"""What a host answers instead of a result, as the error that the agent is told."""

import msgspec

from agent_gate.errors import (
    CallTimeout,
    DependencyUnavailable,
    Forbidden,
    GatewayError,
    Internal,
    InvalidArgs,
    PairingFailed,
    PairingRequired,
    RateLimited,
    ToolNotFound,
    Unauthorized,
    UpstreamError,
)
from agent_gate.net.pool import WholeReply
from agent_gate.peers.toolwire import HostError, HostReply

LONGEST_SAID = 500
BY_CODE: dict[str, type[GatewayError]] = {
    cls.code: cls
    for cls in (
        ToolNotFound,
        InvalidArgs,
        Unauthorized,
        Forbidden,
        RateLimited,
        DependencyUnavailable,
        CallTimeout,
        Internal,
        PairingRequired,
        PairingFailed,
    )
}


class Refusing(msgspec.Struct):
    """The body of an answer that is no 200."""

    error: HostError


def told(host: str, error: HostError | msgspec.UnsetType, otherwise: str) -> GatewayError:
    """The host's own code and words, said to be its own."""
    if not isinstance(error, HostError):
        return UpstreamError(f"{host} {otherwise}")
    said = str(error.message or otherwise)[:LONGEST_SAID]
    kind = BY_CODE.get(str(error.code or ""), UpstreamError)
    return kind(f"{host} answered: {said}", details=error.details or None)


def refused(host: str, reply: WholeReply) -> GatewayError:
    """An answer that is no 200: the request was not taken, so nothing ran."""
    try:
        return told(host, msgspec.json.decode(reply.body, type=Refusing).error, "refused the request")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return UpstreamError(f"{host} answered with HTTP status {reply.status}")


def failure(host: str, reply: HostReply) -> GatewayError:
    if reply.status == "timeout":
        said = reply.error.message if isinstance(reply.error, HostError) else ""
        return CallTimeout(f"{host} stopped it at its deadline. {said or 'It may have run'}"[:LONGEST_SAID])
    return told(host, reply.error, "failed without a reason")
