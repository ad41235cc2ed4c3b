"""A `Result` as plain JSON for callers that do not speak MCP: one value, and the content parts where there are some."""

import msgspec

from agent_gate.core.call import Result

NULL = b"null"


class Parts(msgspec.Struct, rename="camel"):
    """The two members of an MCP tool result that carry data; the rest stays unread."""

    content: msgspec.Raw = msgspec.Raw()
    structured_content: msgspec.Raw = msgspec.Raw()


class InPart(msgspec.Struct):
    """A resource that came along; the members that say no words stay unread, whatever they hold."""

    text: str | None = None


class ResultPart(msgspec.Struct):
    """One part of the content. Of a type that we do not know, a member may be anything."""

    type: str = ""
    text: msgspec.Raw = msgspec.Raw()
    resource: msgspec.Raw = msgspec.Raw()

    def words(self) -> str | None:
        """Its text, or that of the resource which came along. A text that is none makes the whole result unreadable."""
        if self.type == "text":
            return as_text(self.text) if self.text else None
        try:
            return in_part(self.resource).text if self.type == "resource" and self.resource else None
        except msgspec.ValidationError:
            return None


as_text = msgspec.json.Decoder(str).decode
in_part = msgspec.json.Decoder(InPart).decode
parts_of = msgspec.json.Decoder(Parts).decode
content_parts = msgspec.json.Decoder(list[ResultPart]).decode


def data_of(result: Result) -> bytes:
    """The result as one JSON value: the body itself, the structured content, or else the text."""
    if result.kind == "json":
        return result.body or NULL
    parts = parts_of(result.body)
    structured = bytes(parts.structured_content)
    if structured and structured != NULL:
        return structured
    return msgspec.json.encode(joined_text(bytes(parts.content)))


def joined_text(content: bytes) -> str:
    found = content_parts(content) if content and content != NULL else []
    return "\n".join(words for part in found if (words := part.words()) is not None)


def content_of(result: Result) -> bytes | None:
    """The MCP content parts as they came, or None where the result is plain JSON."""
    if result.kind == "json":
        return None
    return bytes(parts_of(result.body).content) or b"[]"
