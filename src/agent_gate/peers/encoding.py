"""How pairing writes things down: canonical JSON, base64 and times, each in exactly one form."""

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

# All values are strings and all keys ASCII, so sorted compact JSON is the canonical form of RFC 8785.
canonical: Callable[[Mapping[str, Any]], bytes] = msgspec.json.Encoder(order="sorted").encode


class Malformed(ValueError):
    """A value is not in the one form that counts; the message says which form that is."""


def to_base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def from_base64(text: str, size: int | None = None) -> bytes:
    """The bytes; standard base64 with padding and nothing else, of `size` bytes where one is named."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise Malformed("it is not base64") from None
    if to_base64(raw) != text:
        raise Malformed("it is not canonical base64")
    if size is not None and len(raw) != size:
        raise Malformed(f"it has {len(raw)} bytes instead of {size}")
    return raw


def to_time(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def from_time(text: str) -> float:
    """Seconds since 1970 of an RFC 3339 time in UTC."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise Malformed("it is not a time such as 2026-02-13T16:00:00Z") from None
    if not text.endswith("Z") or found.tzinfo is None:
        raise Malformed("a time is given in UTC and ends in Z")
    return found.timestamp()
