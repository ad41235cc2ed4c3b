"""Says in a few words what a tool's arguments take, for an agent that has seen only the tool's card.

`string`, `[integer]`, `a|b`, `{page_id: string, title?: string}`: one level of nesting is shown, with a question mark
at what may be left out. What is defined elsewhere in the schema (`$ref`) is looked up.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from agent_gate.core.tool import JsonSchema, Tool
from agent_gate.discovery.cards import CAP
from agent_gate.discovery.tokens import count
from agent_gate.errors import InvalidArgs

MOST_ARGUMENTS, MOST_KEYS, MOST_CHOICES, MOST_OPTIONS, LONGEST_TEXT = 40, 12, 12, 4, 120
DEEPEST = 3
INVALID = "Invalid value for "


def with_usage(error: InvalidArgs, tool: Tool) -> InvalidArgs:
    """The same error, saying what the tool takes: an agent that has seen only the card can then call it."""
    takes = usage(tool.input_schema)
    message = f"{error.message}{_instead(error.message, tool.input_schema)}"
    return InvalidArgs(message, details={**(error.details or {}), "takes": takes})


def _instead(message: str, schema: JsonSchema) -> str:
    """What a refused value must be, where the error does not say so itself."""
    if not message.startswith(INVALID) or "\n" in message:
        return ""
    name = message.removeprefix(INVALID).split(".")[0].strip(" .")
    known = _properties(schema).get(name)
    wanted = Words(schema).of(known, 2) if isinstance(known, dict) else "any"
    return f"\n{name} must be {wanted}" if wanted != "any" else ""


def usage(schema: JsonSchema) -> dict[str, str]:
    """Each argument in a few words, required ones first: `string, required: the text to post`."""
    entries, required = _properties(schema), _required(schema)
    ordered = sorted(entries, key=lambda name: name not in required)
    words = Words(schema)
    return {name: _argument(words, entries[name], name in required) for name in ordered[:MOST_ARGUMENTS]}


def _argument(words: "Words", schema: Any, required: bool) -> str:
    known = words.resolved(schema if isinstance(schema, dict) else {})
    said = known.get("description")
    text = " ".join(said.split())[:LONGEST_TEXT] if isinstance(said, str) else ""
    head = f"{words.brief(known)}{', required' if required else ''}"
    return f"{head}: {text}" if text else head


class Words:
    """Puts the parts of one schema into words."""

    def __init__(self, root: JsonSchema) -> None:
        self._root = root

    def brief(self, schema: JsonSchema) -> str:
        """With one level of nesting where a card's budget has room for it, else without."""
        full = self.of(schema, 2)
        return full if count(full, CAP) <= CAP else self.of(schema, 1)

    def of(self, schema: JsonSchema, nested: int, depth: int = DEEPEST) -> str:
        """`nested` is how many levels of objects are opened: 2 shows what kind each key takes, 1 only the keys."""
        schema = self.resolved(schema)
        if "const" in schema:
            return str(schema["const"])
        if isinstance(schema.get("enum"), list):
            return "|".join(str(value) for value in schema["enum"][:MOST_CHOICES])
        options = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(options, list) and depth:
            kinds = [
                self.of(option, nested, depth - 1)
                for option in options[:MOST_OPTIONS]
                if isinstance(option, dict)
            ]
            return "|".join(dict.fromkeys(kinds))
        return self._typed(schema, nested, depth)

    def _typed(self, schema: JsonSchema, nested: int, depth: int) -> str:
        kind = schema.get(
            "type", "object" if _properties(schema) else "array" if "items" in schema else "any"
        )
        if kind == "array" and depth:
            items = schema.get("items")
            return f"[{self.of(items if isinstance(items, dict) else {}, nested, depth - 1)}]"
        if kind == "object" and nested and _properties(schema):
            return f"{{{', '.join(self._members(schema, nested, depth))}}}"
        return "|".join(map(str, kind)) if isinstance(kind, list) else str(kind)

    def _members(self, schema: JsonSchema, nested: int, depth: int) -> Iterator[str]:
        entries, required = _properties(schema), _required(schema)
        for name in sorted(entries, key=lambda name: name not in required)[:MOST_KEYS]:
            mark = "" if name in required or not required else "?"
            inner = entries[name] if isinstance(entries[name], dict) else {}
            kind = self.of(inner, 0, max(depth - 1, 0)) if nested > 1 else "any"
            yield f"{name}{mark}: {kind}" if kind != "any" else f"{name}{mark}"
        if len(entries) > MOST_KEYS:
            yield "…"

    def resolved(self, schema: JsonSchema) -> JsonSchema:
        """The schema with what it refers to and all of its `allOf` in one; not where that goes round in circles."""
        for _ in range(DEEPEST):
            parts = [schema]
            if isinstance(schema.get("$ref"), str):
                parts.append(self._referred(schema["$ref"]))
            if isinstance(schema.get("allOf"), list):
                parts += [part for part in schema["allOf"] if isinstance(part, dict)]
            if len(parts) == 1:
                break
            schema = _merged(parts)
        return schema

    def _referred(self, reference: str) -> JsonSchema:
        found: Any = self._root
        for step in reference.removeprefix("#").strip("/").split("/") if reference != "#" else ():
            key = step.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else {}


def _merged(parts: list[JsonSchema]) -> dict[str, Any]:
    """The first that says something is heard; properties and what is required come together."""
    merged: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            merged.setdefault(key, value)
    first = parts[0]
    for key in ("$ref", "allOf"):
        inner = [part[key] for part in parts[1:] if key in part]
        merged.pop(key, None)
        if inner and key not in first:
            merged[key] = inner[0]
    properties = {name: value for part in reversed(parts) for name, value in _properties(part).items()}
    required = [name for part in parts for name in sorted(_required(part))]
    return (
        merged
        | ({"properties": properties} if properties else {})
        | ({"required": required} if required else {})
    )


def _properties(schema: JsonSchema) -> Mapping[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _required(schema: JsonSchema) -> set[str]:
    found = schema.get("required")
    return {name for name in found if isinstance(name, str)} if isinstance(found, list) else set()
