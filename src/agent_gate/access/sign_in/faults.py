"""What an OAuth endpoint answers where it does not do what was asked (RFC 6749, 7591, 8707)."""

from agent_gate.errors import GatewayError, InvalidArgs


class SignInFault(InvalidArgs):
    """`error` is the code that clients know; the message is for people and says nothing that was sent to us."""

    def __init__(self, error: str, message: str, status: int = 400, retry_after: float | None = None) -> None:
        super().__init__(message, retry_after=retry_after)
        self.error, self.answers = error, status


def unknown_client() -> SignInFault:
    return SignInFault("invalid_client", "This client is not known here. Register it anew", 401)


def dead_grant() -> SignInFault:
    """One answer for every code and token that does not count, whatever the reason."""
    return SignInFault("invalid_grant", "This code or token does not count, or not any more. Sign in again")


def too_many(what: str, seconds: float) -> SignInFault:
    return SignInFault("temporarily_unavailable", f"{what} Try again later", 429, seconds)


def told(error: GatewayError) -> SignInFault:
    """Another fault as these endpoints tell it."""
    if isinstance(error, SignInFault):
        return error
    code = "temporarily_unavailable" if error.retryable else "invalid_request"
    return SignInFault(code, error.message, error.status, error.retry_after)
