"""What an MCP server can be asked for beside its tools: a resource or a prompt. Each read is a call like any other."""

from collections.abc import Sequence

from agent_gate.core.tool import Definition, JsonSchema
from agent_gate.core.traits import Traits

TEXT = {"type": "string"}
RESOURCE: JsonSchema = {"type": "object", "properties": {"uri": TEXT}, "required": ["uri"]}
PROMPT: JsonSchema = {
    "type": "object",
    "properties": {"name": TEXT, "arguments": {"type": ["object", "null"]}},
    "required": ["name"],
}


KINDS = (("resources/read", "Read a resource", RESOURCE), ("prompts/get", "Get a prompt", PROMPT))


def reads(*, trusted: bool = False, timeout: float | None = None) -> Sequence[Definition]:
    """Reads only by their name: that they change nothing is believed where the operator believes the server."""
    return tuple(
        Definition(
            name=method,
            method=method,
            effect=method,
            description=description,
            input_schema=schema,
            traits=Traits(read_only=True, idempotent=True, trusted=trusted),
            timeout=timeout,
        )
        for method, description, schema in KINDS
    )
