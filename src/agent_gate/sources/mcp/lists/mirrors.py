"""Which arguments a tool wants repeated in headers, and those headers of one call."""

from collections.abc import Iterator, Mapping
from typing import Any

from agent_gate.core.tool import Json
from agent_gate.mcp.headers import ANNOTATION, PARAM, TOKEN, Path, plain_text, value_at, wrap

MIRRORED_TYPES = frozenset({"string", "integer", "boolean"})
ONE_SCHEMA = frozenset(
    [
        "items",
        "contains",
        "unevaluatedItems",
        "additionalProperties",
        "propertyNames",
        "unevaluatedProperties",
        "not",
        "if",
        "then",
        "else",
        "contentSchema",
    ]
)
MANY_SCHEMAS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
NAMED_SCHEMAS = frozenset({"patternProperties", "dependentSchemas", "$defs", "definitions"})

HeaderMap = Mapping[Path, str]
"""Where in the arguments each `Mcp-Param-` header's value stands."""


def positions(schema: Json) -> Iterator[tuple[Path | None, dict[str, Any]]]:
    """Every schema inside `schema`; its path is None where other keywords than `properties` lead to it."""
    stack: list[tuple[Path | None, Json]] = [((), schema)]
    while stack:
        here, node = stack.pop()
        if not isinstance(node, dict):
            continue
        yield here, node
        for keyword, value in node.items():
            if keyword == "properties" and isinstance(value, dict):
                stack.extend(
                    ((*here, name) if here is not None else None, sub) for name, sub in value.items()
                )
            elif keyword in ONE_SCHEMA:
                stack.append((None, value))
            elif keyword in MANY_SCHEMAS and isinstance(value, list):
                stack.extend((None, sub) for sub in value)
            elif keyword in NAMED_SCHEMAS and isinstance(value, dict):
                stack.extend((None, sub) for sub in value.values())


def header_map(schema: Json) -> HeaderMap:
    """The headers a tool asks for; `ValueError` names the annotation that breaks the rules."""
    found: dict[Path, str] = {}
    for path, node in positions(schema):
        if ANNOTATION not in node:
            continue
        name = node[ANNOTATION]
        if not path:
            raise ValueError(f"its {ANNOTATION} stands where no argument is")
        if not isinstance(name, str) or not TOKEN.fullmatch(name):
            raise ValueError(f"its {ANNOTATION} on {'.'.join(path)} is not a header name")
        if node.get("type") not in MIRRORED_TYPES:
            raise ValueError(f"its {ANNOTATION} on {'.'.join(path)} needs a string, integer or boolean")
        if name.lower() in (other.lower() for other in found.values()):
            raise ValueError(f"two arguments share the {ANNOTATION} {name}")
        found[path] = name
    return found


def param_headers(wanted: HeaderMap, arguments: Mapping[str, Json]) -> dict[str, str]:
    """The `Mcp-Param-` headers of one call; an absent argument has none."""
    out: dict[str, str] = {}
    for path, name in wanted.items():
        if (text := plain_text(value_at(arguments, path))) is not None:
            out[PARAM + name] = wrap(text)
    return out
