"""What stands above each request over HTTP: the proof, the revision, the session, and what a revision repeats there."""

from collections.abc import Mapping

from agent_gate.core.credentials import Header, Proof
from agent_gate.mcp import headers
from agent_gate.mcp.names import INITIALIZE, NAMED_BY
from agent_gate.mcp.revisions import Revision
from agent_gate.net.pool import Target, request_head
from agent_gate.sources.mcp.wire.order import Order
from agent_gate.sources.mcp.wire.replies import JSON

ACCEPT = (
    (b"accept", headers.ACCEPT.encode()),
    (b"content-type", JSON),
)
SESSION, VERSION, METHOD, NAME = map(
    headers.field, (headers.SESSION, headers.VERSION, headers.METHOD, headers.NAME)
)
MOST_HEADS = 1024
LONGEST_NAMED = 256


def header_pairs(fields: Mapping[str, str]) -> tuple[Header, ...]:
    return tuple((name.encode(), value.encode()) for name, value in fields.items())


class RequestHeads:
    """The heads of one server's requests, kept encoded until what they say changes."""

    def __init__(self, target: Target, path: bytes) -> None:
        self.target, self.path = target, path
        self.fixed: tuple[Header, ...] = ACCEPT
        self.head: tuple[Header, ...] = ACCEPT
        self.revision: Revision | None = None
        self.repeats = False
        self.session_id = b""
        self.encoded: dict[tuple[str, str | None], bytes] = {}

    def move(self, path: bytes) -> None:
        self.path = path
        self.encoded.clear()

    def speak(self, revision: Revision | None, session_id: bytes) -> None:
        self.revision = revision
        self.repeats = revision is not None and revision.repeats_in_headers
        self.session_id = session_id
        version = ((VERSION, revision.header),) if revision is not None else ()
        session = ((SESSION, session_id),) if session_id else ()
        self.head = (*self.fixed, *version, *session)
        self.encoded.clear()

    def present(self, proof: Proof) -> None:
        """Prove every request with this, until there is another."""
        self.fixed = (*ACCEPT, *proof.headers)
        self.speak(self.revision, self.session_id)

    def of(self, order: Order) -> bytes:
        """The encoded head of a request; those that say the same are encoded once."""
        named: str | None = None
        if self.repeats and (member := NAMED_BY.get(order.method)) is not None:
            named = str(order.params.get(member, ""))
        key = (order.method, named)
        # A uri can be as long as a request; only what is short is kept.
        kept = order.headers is None and len(named or "") <= LONGEST_NAMED
        head = self.encoded.get(key) if kept else None
        if head is None:
            path, tail = self.target.base + self.path, self.target.tail
            head = request_head("POST", path, tail, self._fields(order, named))
            if kept and len(self.encoded) < MOST_HEADS:
                self.encoded[key] = head
        return head

    def _fields(self, order: Order, named: str | None) -> tuple[Header, ...]:
        if order.method == INITIALIZE:
            return self.fixed
        if not self.repeats:
            return self.head
        name = ((NAME, headers.wrap(named).encode()),) if named is not None else ()
        return (*self.head, (METHOD, order.method.encode()), *name, *header_pairs(order.headers or {}))
