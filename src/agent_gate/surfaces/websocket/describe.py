"""Tools and kept results as the WebSocket methods show them."""

from typing import Any

import msgspec

from agent_gate.core.call import Outcome, State
from agent_gate.core.tool import Tool
from agent_gate.errors import GatewayError, Internal
from agent_gate.results.data import data_of
from agent_gate.results.kept import Kept

encode = msgspec.json.encode
MOST_TOOLS = 20_000
REFUSED = frozenset({State.DENIED, State.EXPIRED, State.WITHDRAWN})


class Descriptions(dict[tuple[str, str], bytes]):
    """What `list_tools` says of each tool, encoded once per definition."""

    def of(self, tool: Tool) -> bytes:
        key = (tool.id, tool.pin)
        found = self.get(key)
        if found is None:
            if len(self) >= MOST_TOOLS:
                self.clear()
            found = self[key] = encode(describe(tool))
        return found


def describe(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.wire,
        "description": tool.description,
        "service": tool.namespace,
        "args": arguments(tool),
        "id": tool.id,
        "input_schema": tool.input_schema,
    }


def arguments(tool: Tool) -> dict[str, dict[str, Any]]:
    """Each top-level argument with `required`, and `validate` as its author wrote it."""
    schema, patterns = tool.input_schema, tool.definition.patterns
    properties, required = schema.get("properties") or {}, schema.get("required") or ()
    out: dict[str, dict[str, Any]] = {}
    for name, declared in properties.items():
        out[name] = {"required": name in required}
        pattern = patterns.get(name) or (declared.get("pattern") if isinstance(declared, dict) else None)
        if pattern is not None:
            out[name]["validate"] = pattern
    return out


def executed(outcome: Outcome) -> bytes | None:
    """The result of a call that was executed, or None where it ended in an error."""
    if outcome.error is not None or outcome.result is None:
        return None
    ident = encode(outcome.call_id)
    return b'{"status":"executed","data":%b,"request_id":%b}' % (data_of(outcome.result), ident)


def error_of(outcome: Outcome) -> GatewayError:
    return outcome.error or Internal("The call ended without a result")


def pending_row(kept: Kept, before: str = "") -> dict[str, Any]:
    """A kept result in the columns that agents have always read; both JSON columns are strings.

    An agent that does not acknowledge knows the rows of the session `before` by their JSON-RPC ids.
    """
    known = before and kept.session == before and kept.client_id is not None
    return {
        "request_id": kept.client_id if known else kept.call_id,
        "client_id": kept.client_id,
        "session": kept.session,
        "tool_name": kept.tool,
        "args": kept.arguments,
        "signature": kept.signature,
        "message_id": None,
        "chat_id": None,
        "result": kept_result(kept.outcome),
        "created_at": kept.created_at,
        "expires_at": kept.expires_at,
    }


def kept_result(outcome: Outcome) -> str:
    if outcome.error is None and outcome.result is not None:
        return (b'{"status":"executed","data":%b}' % data_of(outcome.result)).decode()
    error = error_of(outcome)
    status = "denied" if outcome.state in REFUSED else "error"
    return encode({"status": status, "data": error.message, "error": error.as_dict()}).decode()
