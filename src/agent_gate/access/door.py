"""The door every public request passes: its token says who calls, and guessing gets slow."""

from collections.abc import Awaitable, Callable

from agent_gate.access.tokens import Tokens, bearer, digest
from agent_gate.core.call import Caller
from agent_gate.core.ports import Clock
from agent_gate.errors import Unauthorized
from agent_gate.net.guard import Backoff
from agent_gate.net.http import Request, Response, error_response

CatchUp = Callable[[], Awaitable[object]]
GIVEN = b"bearer ag"
"""How the header of a token begins that a gateway gave."""
MCP = b"/mcp"
CHALLENGE = (b"www-authenticate", b'Bearer realm="agent-gate"')


def check_audience(caller: Caller, path: str) -> None:
    """A token that was given for one path is good for nothing else."""
    if path != caller.audience and not path.startswith(f"{caller.audience}/"):
        raise Unauthorized(f"This token is for {caller.audience} alone")


class Door:
    """Turns a request into its caller."""

    def __init__(self, tokens: Tokens, clock: Clock, catch_up: CatchUp | None = None) -> None:
        self.tokens, self._clock, self._catch_up = tokens, clock, catch_up
        self.shared = catch_up is not None
        """Whether other gateways give tokens that are good here."""
        self.backoff = Backoff()

    def enter(self, request: Request) -> Caller:
        """Raises `Unauthorized`, or `RateLimited` for an address that guessed wrong too often."""
        header = request.fields.get(b"authorization")
        caller = self.tokens.remembered.get(header)
        if caller is None:
            try:
                caller = self.tokens.from_header(header)
            except Unauthorized:
                if header is not None:
                    self.failed(request.peer)
                raise
        if caller.audience and (request.target != MCP or caller.audience != "/mcp"):
            check_audience(caller, request.path)
        return caller

    def needs(self, request: Request) -> CatchUp | None:
        """What to wait for before this request can be judged: keys of its token's issuer, or, where nobody here knows
        the token, what other gateways did, one of which may have given it a moment ago."""
        header = request.fields.get(b"authorization")
        if header is None or header in self.tokens.remembered:
            return None
        if header[: len(GIVEN)].lower() == GIVEN:
            guesses = self.backoff.wait(request.peer, self._clock.monotonic()) > 0
            return None if guesses or self.tokens.knows(header) else self._catch_up
        issuers = self.tokens.issuers
        keys = issuers.wants_keys(header, digest) if issuers is not None else None
        return keys.fetch if keys is not None else None

    def proof(self, request: Request) -> bytes:
        """What to keep of the token that a request came with, to see later whether it still counts."""
        header = request.header(b"authorization")
        return self.tokens.proof(bearer(header)) if header is not None else b""

    def failed(self, peer: str) -> None:
        """Count a wrong token; too many in a row have to wait."""
        now = self._clock.monotonic()
        self.backoff.refuse(peer, now, "wrong tokens")
        self.backoff.failed(peer, now)

    def refusal(self, error: Unauthorized) -> Response:
        return error_response(error, (CHALLENGE,))
