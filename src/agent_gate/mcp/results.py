"""What a server answers to `tools/call`, checked when it arrives, and read without decoding what it carries.

A text of a megabyte stays the bytes that came: only the members that give a result its shape are looked at.
"""

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from agent_gate.core.tool import Json
from agent_gate.mcp.messages import UNREADABLE, decode_members, encode
from agent_gate.mcp.names import INPUT_REQUIRED, OURS, RESERVED

NOT_A_SERVERS = (RESERVED, OURS)
"""How the `_meta` members begin that speak for one side of a connection, or for this gateway."""
ASKS = INPUT_REQUIRED.encode()
STRING, OBJECT, NULL = b'"{n'
"""How the JSON values of these kinds begin."""


class NoResult(Exception):
    """What came is no result; `str` says what is wrong with it."""


class Envelope(msgspec.Struct, gc=False):
    """The few members that every result may have, whatever was asked."""

    result_type: str = msgspec.field(default="", name="resultType")
    meta: Raw = msgspec.field(default=Raw(b""), name="_meta")

    @property
    def asks(self) -> bool:
        return self.result_type == INPUT_REQUIRED


class Question(Envelope, gc=False):
    """An unfinished result: the client is asked, and makes its request again with the answers and this state."""

    request_state: str | None = msgspec.field(default=None, name="requestState")


class ContentPart(msgspec.Struct, gc=False):
    """One part of a tool's content. Its members stay raw; `NEEDED` says which it must have."""

    type: str
    text: Raw = Raw(b"")
    data: Raw = Raw(b"")
    mime_type: Raw = msgspec.field(default=Raw(b""), name="mimeType")
    uri: Raw = Raw(b"")
    name: Raw = Raw(b"")
    resource: Raw = Raw(b"")
    meta: Raw = msgspec.field(default=Raw(b""), name="_meta")


class ToolResult(Envelope, gc=False):
    """What decides where a tool's result goes, and whether it is one."""

    content: list[ContentPart] | UnsetType = UNSET
    structured: Raw = msgspec.field(default=Raw(b""), name="structuredContent")
    error: bool | None = msgspec.field(default=None, name="isError")


class EmbeddedResource(msgspec.Struct, gc=False):
    uri: str
    text: str | UnsetType = UNSET
    blob: str | UnsetType = UNSET


PartMember = Literal["text", "data", "mime_type", "uri", "name"]
NEEDED: Mapping[str, tuple[PartMember, ...]] = {
    "text": ("text",),
    "image": ("data", "mime_type"),
    "audio": ("data", "mime_type"),
    "resource_link": ("uri", "name"),
}
"""The strings without which a part of a type that we know is none. Of other types, nothing is known."""

decode_envelope = msgspec.json.Decoder(Envelope).decode
decode_question = msgspec.json.Decoder(Question).decode
decode_tool_result = msgspec.json.Decoder(ToolResult).decode
decode_resource = msgspec.json.Decoder(EmbeddedResource).decode
decode_parts = msgspec.json.Decoder(list[dict[str, Raw]]).decode


def takes_none(result_type: str) -> bool:
    del result_type
    return False


def read_envelope(body: bytes) -> Envelope:
    """The envelope of a result that is not a tool's; `NoResult` where it is no JSON object in valid UTF-8."""
    try:
        if not body.isascii():
            body.decode()
        return decode_envelope(body)
    except UNREADABLE as error:
        raise NoResult(f"it is not a JSON object of the protocol ({error})") from None


def question_in(body: bytes) -> Question | None:
    """What an unfinished result says of itself; None for every other result."""
    if body.find(ASKS) < 0:
        return None
    question = decode_question(body)
    return question if question.asks else None


def read_tool_result(body: bytes, takes: Callable[[str], bool] = takes_none) -> ToolResult:
    """The shape of a tool's result, or `NoResult`. `takes` says which result types without content are welcome."""
    try:
        if not body.isascii():
            body.decode()
        result = decode_tool_result(body)
        if result.content is UNSET:
            check_instead(result, takes)
        else:
            for part in result.content:
                if part.type != "text" or not part.text or memoryview(part.text)[0] != STRING:
                    check_part(part)
    except UNREADABLE as error:
        raise NoResult(f"{error}") from None
    if result.meta and not starts(result.meta, OBJECT) and not starts(result.meta, NULL):
        raise NoResult("its _meta is not an object")
    return result


def starts(raw: Raw, kind: int) -> bool:
    """What kind of value it is, without a copy of the value."""
    return bool(raw) and memoryview(raw)[0] == kind


def check_instead(result: ToolResult, takes: Callable[[str], bool]) -> None:
    """A result without content has structured content, or says what it is instead."""
    if result.structured and not starts(result.structured, NULL):
        return
    if result.result_type in ("", "complete") or not takes(result.result_type):
        raise NoResult("it has neither content nor structuredContent")


def check_part(part: ContentPart) -> None:
    if part.type == "resource":
        check_resource(part.resource)
        return
    for member in NEEDED.get(part.type, ()):
        if not starts(getattr(part, member), STRING):
            raise NoResult(f"a part of type {part.type} has no {member} that is a string")


def check_resource(raw: Raw) -> None:
    resource = decode_resource(raw) if raw else None
    if resource is None or (resource.text is UNSET and resource.blob is UNSET):
        raise NoResult("a part of type resource holds neither text nor a blob")


def without_reserved(body: bytes, result: Envelope) -> bytes:
    """`body` without the `_meta` members that a server may not set: of the result, and our own of its parts."""
    content = result.content if isinstance(result, ToolResult) and result.content is not UNSET else ()
    for part in content:
        if part.meta:
            break
    else:
        if not result.meta:
            return body
    own, metas = bytes(result.meta), [bytes(part.meta) for part in content if part.meta]
    if not (
        names(own, NOT_A_SERVERS) or any(names(meta, (OURS,)) for meta in metas) or repeats(body, len(metas))
    ):
        return body
    members = decode_members(body)
    if own:
        members["_meta"] = kept_meta(members["_meta"], NOT_A_SERVERS)
    if content:
        members["content"] = Raw(encode([kept_part(part) for part in decode_parts(members["content"])]))
    return encode(members)


def without_protocol(meta: Mapping[str, Json]) -> dict[str, Json]:
    """`_meta` without what speaks for one connection only."""
    return {name: value for name, value in meta.items() if not name.startswith(RESERVED)}


def names(meta: bytes, prefixes: tuple[str, ...]) -> bool:
    """Whether a name with one of the prefixes may be in it, in whatever spelling."""
    return b"\\" in meta or any(prefix.encode() in meta for prefix in prefixes)


def repeats(body: bytes, parts: int) -> bool:
    """Whether a `_meta` may stand twice in one object, of which a reader might take the other."""
    return OURS.encode() in body and body.count(b'"_meta"') > parts + 1


def kept_part(part: dict[str, Raw]) -> dict[str, Raw]:
    return {**part, "_meta": kept_meta(part["_meta"], (OURS,))} if "_meta" in part else part


def kept_meta(raw: Raw, prefixes: tuple[str, ...]) -> Raw:
    try:
        members = decode_members(raw)
    except msgspec.ValidationError:
        return Raw(b"{}")
    return Raw(encode({name: value for name, value in members.items() if not name.startswith(prefixes)}))
