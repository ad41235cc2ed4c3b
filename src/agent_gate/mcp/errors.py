"""`RpcError`, `Unanswered`, the codes of JSON-RPC and of the protocol, and the HTTP statuses that go with them."""

from typing import Any

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NO_SESSION = -32001
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

STATUSES = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
NO_MESSAGE_STATUSES = {code: STATUSES[code] for code in (PARSE_ERROR, INVALID_REQUEST, HEADER_MISMATCH)}
"""For revisions in which an error has no status of its own: what was no message is a bad request in each."""


class RpcError(Exception):
    """The peer answered with a JSON-RPC error, or is to be answered with one."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Unanswered(RpcError):
    """A reply came that is none to the request, which may have run; `came` is what was sent."""

    def __init__(self, message: str, came: bytes = b"") -> None:
        super().__init__(INTERNAL_ERROR, message)
        self.came = came
