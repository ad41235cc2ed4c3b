"""How a request to a server fails, other than with a JSON-RPC error."""

from collections.abc import Callable

from agent_gate.mcp.errors import INVALID_REQUEST, RpcError


class Broken(Exception):
    """The connection failed. `sent` says whether the request may have reached the server."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sent = sent

    @property
    def brief(self) -> str:
        """The reason without what the server printed."""
        return self.reason.partition("\n")[0]


class InputClosed(Broken):
    """A child takes nothing any more; that it has ended is heard of in a moment."""

    def __init__(self) -> None:
        super().__init__("its input is closed", sent=False)


class TurnedAway(RpcError):
    """The server turned the request away with an HTTP status, before looking at it."""

    def __init__(self, status: int) -> None:
        super().__init__(INVALID_REQUEST, f"it answered with HTTP status {status}")
        self.status = status


class Moved(TurnedAway):
    """The server sends the request elsewhere, where it is not sent: a credential goes to the address of the entry."""

    def __init__(self, status: int, where: str) -> None:
        super().__init__(status)
        self.message = f"it redirects to {where or 'no address'}, which is not followed: write its own address as its url"


class StaleSession(Exception):
    """The server no longer knows the session; it did not look at the request.

    `current` tells whether the forgotten session is still the one in use, or another request renewed it.
    """

    def __init__(self, current: Callable[[], bool]) -> None:
        super().__init__("the server forgot the session")
        self.current = current


class Throttled(Exception):
    """The server refused to take the request now; `after` is the number of seconds it asks to wait."""

    def __init__(self, after: float) -> None:
        super().__init__("the server limits how often it is called")
        self.after = after
