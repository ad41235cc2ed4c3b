"""Tool ids: the grammar `namespace:name[@version][#hash8]`, its two helpers, and the id of a source's tool."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from agent_gate.core.tool import Definition
from agent_gate.errors import CatalogError

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")
VERSION = re.compile(r"[A-Za-z0-9._-]{1,32}")
TOOL_ID = re.compile(
    r"(?P<namespace>[a-z][a-z0-9_-]{0,63}):(?P<name>[A-Za-z_][A-Za-z0-9_.-]{0,127})"
    r"(?:@(?P<version>[A-Za-z0-9._-]{1,32}))?(?:#(?P<hash8>[0-9a-f]{8}))?"
)
MAX_TOOL_ID = 240


class ToolIdParts(NamedTuple):
    namespace: str
    name: str
    version: str | None = None
    hash8: str | None = None


def parse_tool_id(text: str) -> ToolIdParts:
    """Split a tool id into its parts; `CatalogError` where it does not fit the grammar."""
    found = TOOL_ID.fullmatch(text) if len(text) <= MAX_TOOL_ID else None
    if found is None or not (found["version"] or found["hash8"]):
        raise CatalogError(
            f"Not a tool id: {text[:80]!r}. The form is namespace:name@version or namespace:name#hash8"
        )
    return ToolIdParts(found["namespace"], found["name"], found["version"], found["hash8"])


def format_tool_id(parts: ToolIdParts) -> str:
    """The inverse of `parse_tool_id`; the parts are checked by parsing the result."""
    version = f"@{parts.version}" if parts.version is not None else ""
    hash8_ = f"#{parts.hash8}" if parts.hash8 is not None else ""
    text = f"{parts.namespace}:{parts.name}{version}{hash8_}"
    if parse_tool_id(text) != parts:
        raise CatalogError(f"Not the parts of a tool id: {text[:80]!r}")
    return text


def canonical_shape(input_schema: Mapping[str, Any] | None) -> str:
    """The part of a schema that the hash covers: top-level property names and required names, sorted."""
    schema = input_schema or {}
    try:
        shape = {
            "properties": sorted(schema.get("properties") or {}),
            "required": sorted(schema.get("required") or []),
        }
    except TypeError:
        raise CatalogError("The schema cannot be used: its properties or required are not names") from None
    return json.dumps(shape, sort_keys=True, separators=(",", ":"))


def hash8(upstream_name: str, input_schema: Mapping[str, Any] | None) -> str:
    canonical = upstream_name + "\n" + canonical_shape(input_schema)
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()[:8]


def fold_namespace(key: str) -> str:
    """A configured key as a namespace: lower case, other characters to `_`, a bad first character prefixed."""
    folded = re.sub(r"[^a-z0-9_-]", "_", key.lower())[:64]
    return folded if folded[:1].isalpha() and folded.isascii() else f"n{folded}"[:64]


def fold_name(name: str) -> str:
    folded = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:128]
    return folded if NAME.fullmatch(folded) else f"n{folded}"[:128]


def tool_id(namespace: str, definition: Definition) -> str:
    """The id of a tool of a configured source.

    A folded name always carries its hash, because the hash covers the upstream name and the fold loses it.
    """
    name = definition.name
    for separator in ".", "/":
        head, found, tail = name.partition(separator)
        if found and tail and fold_namespace(head) == namespace:
            name = tail
            break
    folded = name if NAME.fullmatch(name) else fold_name(name)
    version = definition.version if VERSION.fullmatch(definition.version) else None
    needs_hash = version is None or folded != name
    digest = hash8(definition.name, definition.input_schema) if needs_hash else None
    return format_tool_id(ToolIdParts(namespace, folded, version, digest))
