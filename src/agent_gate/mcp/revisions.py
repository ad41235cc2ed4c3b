"""The revisions of the protocol and what each of them does: the only module that knows their dates.

Every other module asks a `Revision` for the feature it means. A new revision is one entry here, with its features.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, eq=False)
class Revision:
    """One revision by its features; compared by identity, since there is one object of each."""

    name: str
    has_sessions: bool = True
    """It begins with `initialize`, and the server may keep what was said there; else each request says all itself."""
    repeats_in_headers: bool = False
    """Over HTTP, headers repeat the method, the name and annotated arguments of each request."""
    asks_by_result: bool = False
    """A question to the client is an unfinished result, with whose answers the request is made again."""
    types_results: bool = False
    """Results say their `resultType`, lists how long they hold, and both which server they are from."""
    levels_in_requests: bool = False
    """The log level stands in each request's `_meta`, not in a session."""
    listens_by_request: bool = False
    """Changes are told on `subscriptions/listen`, not on a stream of the session."""
    cancels_by_closing: bool = False
    """Over HTTP a request is cancelled by closing its connection, not by a notification."""
    errors_have_statuses: bool = False
    """Over HTTP a JSON-RPC error has an HTTP status of its own."""
    any_output_schema: bool = False
    """An output schema may be of another type than object."""
    resumes_streams: bool = True
    """An event stream that broke goes on where a GET says it was left."""
    primes_streams: bool = False
    """An event stream begins with an event without data, from which it can be resumed."""
    not_found: int = -32002
    """The error code for a resource that there is not."""
    abolished: frozenset[int] = frozenset()
    """Error codes of other revisions that this one has no more."""
    header: bytes = field(init=False)
    """The name as a header carries it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "header", self.name.encode())


REVISIONS = (
    Revision("2024-11-05"),
    Revision("2025-03-26"),
    Revision("2025-06-18"),
    Revision("2025-11-25", primes_streams=True),
    Revision(
        "2026-07-28",
        has_sessions=False,
        repeats_in_headers=True,
        asks_by_result=True,
        types_results=True,
        levels_in_requests=True,
        listens_by_request=True,
        cancels_by_closing=True,
        resumes_streams=False,
        errors_have_statuses=True,
        any_output_schema=True,
        not_found=-32602,
        abolished=frozenset({-32002, -32042}),
    ),
)
"""The oldest first."""

BY_NAME: Mapping[str, Revision] = {revision.name: revision for revision in REVISIONS}
WITH_SESSIONS: Mapping[str, Revision] = {name: one for name, one in BY_NAME.items() if one.has_sessions}
WITHOUT_SESSIONS: Mapping[str, Revision] = {
    name: one for name, one in BY_NAME.items() if not one.has_sessions
}
NEWEST = REVISIONS[-1]
NEWEST_WITH_SESSIONS = list(WITH_SESSIONS.values())[-1]
NEWEST_WITHOUT_SESSIONS = list(WITHOUT_SESSIONS.values())[-1]
UNSAID = BY_NAME["2025-03-26"]
"""What a client speaks that names no revision over HTTP; the protocol says so."""
BY_HEADER: Mapping[bytes | None, Revision] = {None: UNSAID, **{one.header: one for one in REVISIONS}}


def agreed(wanted: str) -> Revision:
    """What a handshake settles on: the revision that was asked for, or else the newest that has a handshake."""
    return WITH_SESSIONS.get(wanted, NEWEST_WITH_SESSIONS)
