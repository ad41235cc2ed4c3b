"""A result that an agent sees as it is, and that says under which handle it is kept as well."""

from typing import Any

import msgspec

from agent_gate.core.call import Result
from agent_gate.results.envelope import Artifact


def blocks_of(result: Result) -> list[dict[str, Any]]:
    """The blocks of an MCP result; none where it is of another kind."""
    if result.kind != "mcp":
        return []
    content = msgspec.json.decode(result.body).get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def is_seen(result: Result) -> bool:
    """Whether a client shows all of it: text and pictures, which cost a model no tokens by their bytes."""
    blocks = blocks_of(result)
    return any(block.get("type") == "image" for block in blocks) and all(
        block.get("type") in ("text", "image") for block in blocks
    )


def name_handle(result: Result, artifact: Artifact) -> Result:
    """The result with the handle of what is kept in its first text."""
    body = msgspec.json.decode(result.body)
    said = next((block for block in body.get("content") or () if block.get("type") == "text"), None)
    if result.kind != "mcp" or said is None:
        return result
    said["text"] = f"{said['text']}\nKept as {artifact.handle} ({artifact.size} bytes)"
    return Result(msgspec.json.encode(body), result.kind, result.is_error)
