"""What the operator writes into HTTP requests: it must be able to stand there, or every call would break."""

import re
from urllib.parse import urlsplit

from agent_gate.config.decode import require_address
from agent_gate.config.files.nodes import Mark, Node, entries, fail, join

TARGET = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:@%/?]*")
BASE = re.compile(r"[!-\"$-~]*")
HOST = re.compile(r"[A-Za-z0-9_.-]+|[0-9A-Fa-f:.]+")
FIELD_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
FIELD_VALUE = re.compile(r"[\x20-\x7e\x80-\xff]*")
CREDENTIAL = re.compile(r"[^\x00-\x1f\x7f]*")
FRAMING = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
PLACEHOLDER = re.compile(r"\{[^{}]*\}")


def check_base(node: Node, path: str) -> None:
    """The address below which requests are made; it may hold a password, so it is not repeated."""
    require_address(node, path)
    parts = urlsplit(str(node.value))
    if parts.username is not None:
        fail(node.mark, path, "has a user or password; write them under `auth`, as type: basic")
    if parts.query or parts.fragment:
        fail(
            node.mark,
            path,
            "has a query or fragment; that stands in the `path` of a tool, or is `auth` of type: query",
        )
    if not HOST.fullmatch(parts.hostname or ""):
        fail(node.mark, path, "has a host name with other characters than a-z, 0-9, . _ and -")
    if not BASE.fullmatch(parts.path):
        fail(node.mark, path, "has a character that no address can have; write it percent-encoded, as %20")


def check_target(node: Node, path: str) -> None:
    """A path, which may have a query, as it goes onto the wire; placeholders are encoded when they are filled."""
    literal = PLACEHOLDER.sub("", str(node.value))
    if not literal.startswith("/"):
        fail(node.mark, path, 'must start with "/"')
    if not TARGET.fullmatch(literal):
        fail(node.mark, path, "has a character that no address can have; write it percent-encoded, as %20")


def check_headers(node: Node | None, path: str) -> None:
    for name, item in entries(node, path).items() if node is not None else ():
        check_header_name(name, node.key_mark(name) if node is not None else item.mark, join(path, name))
        check_header_value(item, join(path, name))


def check_header_name(name: str, mark: Mark, path: str) -> None:
    if not FIELD_NAME.fullmatch(name):
        fail(mark, path, "is no name of a header; it has letters, digits and - only")
    if name.lower() in FRAMING:
        fail(mark, path, "is a header that the gateway writes itself")


def check_header_value(node: Node, path: str, allowed: re.Pattern[str] = FIELD_VALUE) -> None:
    """The value may be a credential, so it is not repeated."""
    if not allowed.fullmatch(str(node.value)):
        fail(node.mark, path, "has a line break or another character that no header can have")
