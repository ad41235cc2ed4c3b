"""What a call ended in, as the result object of `tools/call`, or as the protocol error that stands for it."""

from collections.abc import Mapping, Sequence

from msgspec import Raw

from agent_gate.core.call import Outcome, Pending
from agent_gate.core.tool import Json
from agent_gate.errors import GatewayError, Internal, ToolNotFound, UpstreamError
from agent_gate.mcp.errors import INTERNAL_ERROR, INVALID_PARAMS, RpcError
from agent_gate.mcp.messages import decode_members, decode_object, encode
from agent_gate.mcp.names import META_ERROR, META_PENDING, META_SERVER, META_SOURCE, META_UNKNOWN, SELF
from agent_gate.mcp.revisions import Revision

COMPLETE = Raw(b'"complete"')
TYPED_START = b'{"resultType":"complete","_meta":%b,' % encode({META_SERVER: SELF})
BARE_START = b'{"resultType":"complete","_meta":%b}' % encode({META_SERVER: SELF})


def completed(body: bytes) -> bytes:
    """A result as a revision that types results wants it: with its type, and with the name of this server."""
    if body.find(b'"resultType"') < 0 and body.find(b'"_meta"') < 0 and body[:1] == b"{":
        rest = body[1:].lstrip()
        return BARE_START if rest[:1] == b"}" else TYPED_START + rest
    members = decode_members(body)
    members.setdefault("resultType", COMPLETE)
    return with_meta(members, {META_SERVER: SELF})


def with_meta(members: dict[str, Raw], more: Mapping[str, Json]) -> bytes:
    """The result with members added to its `_meta`; everything else stays as it came."""
    # Not read any deeper: what a server wrote there may be beyond what we can read, and is passed on as it is.
    came = bytes(members.get("_meta", b""))
    found = decode_members(came) if came[:1] == b"{" else {}
    members["_meta"] = Raw(encode({**found, **more}))
    return encode(members)


def with_unknown(body: bytes, names: Sequence[str]) -> bytes:
    """The result with the arguments that the tool does not declare."""
    return with_meta(decode_members(body), {META_UNKNOWN: names}) if names else body


def with_state(body: bytes, state: str) -> bytes:
    members = decode_members(body)
    members["requestState"] = Raw(encode(state))
    return encode(members)


def text_result(text: str, meta: Mapping[str, Json], *, is_error: bool) -> bytes:
    content = [{"type": "text", "text": text}]
    return encode({"content": content, "isError": is_error, "_meta": meta})


def json_result(body: bytes) -> bytes:
    """A plain JSON value as a tool result: its text, and the value itself where it is an object."""
    start = body[:1]
    text = body if start == b'"' else encode(body.decode())
    structured = b',"structuredContent":%b' % body if start == b"{" else b""
    return b'{"content":[{"type":"text","text":%b}]%b}' % (text, structured)


def error_of(error: GatewayError, revision: Revision) -> bytes:
    """An error an agent can read and act on, or `RpcError` where the protocol has a word of its own for it."""
    if isinstance(error, ToolNotFound):
        raise RpcError(INVALID_PARAMS, error.message)
    if isinstance(error, Internal):
        raise RpcError(INTERNAL_ERROR, error.message)
    if isinstance(error, UpstreamError) and error.details is not None and "code" in error.details:
        raise upstream_error(error, revision)
    return error_result(error)


def error_result(error: GatewayError) -> bytes:
    return text_result(error.told(), {META_ERROR: error.as_dict()}, is_error=True)


def upstream_error(error: GatewayError, revision: Revision) -> RpcError:
    """An upstream's protocol error under its own code, unless the caller's revision has abolished that code."""
    details = error.details or {}
    code = details.get("code")
    if not isinstance(code, int) or code in revision.abolished:
        code = INVALID_PARAMS
    return RpcError(code, error.message, details.get("data"))


def outcome_result(outcome: Outcome, source: str, revision: Revision) -> bytes:
    """What a source answered, where a server's own error names that server; or why there is no answer."""
    result = outcome.result
    if result is None:
        error = outcome.error or Internal("The call ended without an answer; the log says why")
        return error_of(error, revision)
    if result.kind == "json":
        return json_result(result.body)
    if result.is_error and source:
        return with_meta(decode_members(result.body), {META_SOURCE: source})
    return result.body


def waiting_result(pending: Pending, later: str, *, is_error: bool) -> bytes:
    """What a client that cannot be asked to come back is told while a person decides; `later` gets the outcome."""
    what = f" ({pending.signature})" if pending.signature else ""
    text = (
        f"This call waits for a person to approve it{what}. It has not run yet. "
        f"To get its result, call {later}. "
        "Do not make the call again: it would be the same question."
    )
    meta = {META_PENDING: {"call": pending.call_id, "expires_at": pending.expires_at}}
    return text_result(text, meta, is_error=is_error)


def cleaned(body: bytes, revision: Revision, *, ttl: bool = False) -> bytes:
    """A forwarded result: its server's own connection is not the caller's business."""
    members: dict[str, Json] = dict(decode_members(body))
    if not revision.types_results:
        return body
    members.setdefault("resultType", COMPLETE)
    if ttl and members["resultType"] is COMPLETE:
        members.setdefault("ttlMs", 0)
    if ttl:
        members["cacheScope"] = "private"
    meta = decode_object(members["_meta"]) if "_meta" in members else {}
    members["_meta"] = {**meta, META_SERVER: SELF}
    return encode(members)
