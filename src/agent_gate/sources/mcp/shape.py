"""What a raw result says about itself, read without decoding the rest of it."""

import msgspec
from msgspec import Raw

from agent_gate.sources.mcp.wire import INTERNAL_ERROR, META, UNREADABLE, RpcError, decode_json, encode

RESERVED = META.encode()


class Shape(msgspec.Struct, gc=False):
    """The few members of a result that decide where it goes."""

    is_error: bool = msgspec.field(default=False, name="isError")
    result_type: str = msgspec.field(default="", name="resultType")
    meta: Raw = msgspec.field(default=Raw(b""), name="_meta")

    @property
    def asks(self) -> bool:
        return self.result_type == "input_required"


decode_shape = msgspec.json.Decoder(Shape).decode


def shape_of(body: bytes) -> Shape:
    """The shape of `body`, which must be a JSON object in valid UTF-8."""
    try:
        if not body.isascii():
            body.decode()
        return decode_shape(body)
    except UNREADABLE:
        raise RpcError(INTERNAL_ERROR, "it sent a result that is not a JSON object of the protocol") from None


def without_reserved(body: bytes, shape: Shape) -> bytes:
    """`body` without the `_meta` members that speak for the server's side of the connection."""
    if not shape.meta or (RESERVED not in bytes(shape.meta) and b"\\" not in bytes(shape.meta)):
        return body
    raw = bytes(shape.meta)
    kept = kept_meta(raw)
    at = body.rfind(raw)
    spliced = body[:at] + kept + body[at + len(raw) :]
    if bytes(decode_shape(spliced).meta) == kept:
        return spliced
    whole = decode_json(body)
    whole["_meta"] = Raw(kept)
    return encode(whole)


def kept_meta(raw: bytes) -> bytes:
    meta = decode_json(raw)
    if not isinstance(meta, dict):
        return b"{}"
    return encode({name: value for name, value in meta.items() if not name.startswith(META)})
