"""A request's parsed head, checked: what two programs could read differently is refused here.

The parser below already refuses bare line breaks, folded headers, odd or repeated lengths and a length
beside a transfer coding. What it lets through and must not pass is refused by these functions.
"""

from collections.abc import Sequence

from agent_gate.net.http import Header, Response, refusal

METHODS = {
    name.encode("ascii"): name for name in ("GET", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS")
}
ONCE = frozenset(
    {
        b"host",
        b"content-length",
        b"transfer-encoding",
        b"authorization",
        b"content-type",
        b"origin",
        b"expect",
        b"upgrade",
        b"idempotency-key",
        b"agent-session",
        b"mcp-session-id",
        b"mcp-protocol-version",
    }
)


class RefusedError(Exception):
    """The request gets this answer, then the connection ends."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


def refuse(status: int, code: str, message: str, headers: Sequence[Header] = ()) -> RefusedError:
    return RefusedError(refusal(status, code, message, headers))


def bad(message: str) -> RefusedError:
    return refuse(400, "INVALID_ARGS", message)


def merged(headers: list[Header]) -> dict[bytes, bytes]:
    """One value per name: lists joined by commas, a repeated single-valued header refused."""
    fields: dict[bytes, bytes] = {}
    for name, value in headers:
        if name not in fields:
            fields[name] = value
        elif name in ONCE:
            raise bad(f"the header {name.decode('ascii')} is given twice; send it once")
        else:
            fields[name] = fields[name] + b", " + value
    return fields


def check_count(headers: list[Header], limit: int) -> None:
    if len(headers) > limit:
        raise refuse(431, "INVALID_ARGS", f"the request has more than {limit} headers")


def check_size(target: bytes, headers: list[Header], limit: int) -> None:
    """The exact size of a head that arrived in a read longer than the limit."""
    size = len(target) + sum(len(name) + len(value) + 4 for name, value in headers)
    if size > limit:
        raise too_long(limit)


def too_long(limit: int) -> RefusedError:
    return refuse(431, "INVALID_ARGS", f"the request's head is longer than {limit} bytes")


def overframed() -> RefusedError:
    return bad("the body's chunks carry more framing than data; send larger chunks, without extensions")


def too_large(limit: int) -> RefusedError:
    return refuse(413, "INVALID_ARGS", f"the request's body is longer than {limit} bytes")


def check_target(method: str, target: bytes) -> None:
    """Only a path is answered: an absolute URL here would name a second host beside Host."""
    if target[:1] != b"/" and not (method == "OPTIONS" and target == b"*"):
        raise bad("the request target must be a path that starts with /")
    if b"#" in target:
        raise bad("the request target has a fragment (#); a fragment is never sent")


def check_version(version: str, fields: dict[bytes, bytes]) -> None:
    """HTTP/1.0 is answered once per connection and may neither chunk nor upgrade."""
    if version == "1.1":
        if b"host" not in fields:
            raise bad("the Host header is missing")
    elif version != "1.0":
        raise refuse(505, "INVALID_ARGS", "only HTTP/1.1 and HTTP/1.0 are spoken here")
    elif b"transfer-encoding" in fields or b"upgrade" in fields:
        raise bad("HTTP/1.0 has no Transfer-Encoding and no Upgrade")


def check_upgrade(fields: dict[bytes, bytes]) -> None:
    """A WebSocket's handshake has no body: its bytes would be read as frames."""
    if b"transfer-encoding" in fields or int(fields.get(b"content-length", 0)):
        raise bad("a WebSocket's upgrade request must not have a body")


def check_body(fields: dict[bytes, bytes], limit: int) -> None:
    """The announced body: its coding, its length and what the client expects before sending it."""
    length = fields.get(b"content-length")
    if length is not None and int(length) > limit:
        raise too_large(limit)
    coding = fields.get(b"transfer-encoding")
    if coding is not None and coding.strip(b" \t").lower() != b"chunked":
        raise refuse(501, "INVALID_ARGS", "the only transfer coding understood here is chunked")
    expected = fields.get(b"expect")
    if expected is not None and expected.strip(b" \t").lower() != b"100-continue":
        raise refuse(417, "INVALID_ARGS", "the only expectation understood here is 100-continue")
