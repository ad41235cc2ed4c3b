"""JSON Schema into TypeScript types.

Total: whatever an upstream sends becomes a type that compiles; what cannot be expressed becomes `unknown`. Targets of
`$ref` become named types, so that recursive schemas stay finite.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from json import dumps
from typing import Any, NamedTuple
from urllib.parse import unquote

from agent_gate.surfaces.typescript.comments import doc
from agent_gate.surfaces.typescript.names import IDENTIFIER, digest, pascal

DEEPEST = 24
MOST_NODES = 5_000
STEP = "  "
OBJECT_KEYS = ("properties", "additionalProperties", "patternProperties")
ARRAY_KEYS = ("items", "prefixItems")
SCALARS = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}


class Type(NamedTuple):
    """A type expression. `joined` is `|` or `&` where it must be bracketed inside another one."""

    text: str
    joined: str = ""

    def within(self, operator: str) -> str:
        return f"({self.text})" if self.joined and self.joined != operator else self.text


UNKNOWN = Type("unknown")
NEVER = Type("never")
NULL = Type("null")
OPEN = Type("{ [key: string]: unknown }")


def joined(parts: Iterable[Type], operator: str, none: Type, all_: Type) -> Type:
    """The parts with the operator between them; `none` adds nothing to it, and `all_` takes the place of the rest."""
    unique = [part for part in dict.fromkeys(parts) if part != none]
    if all_ in unique:
        return all_
    if len(unique) < 2:
        return unique[0] if unique else none
    return Type(f" {operator} ".join(part.within(operator) for part in unique), operator)


def union(parts: Iterable[Type]) -> Type:
    return joined(parts, "|", NEVER, UNKNOWN)


def intersection(parts: Iterable[Type]) -> Type:
    return joined(parts, "&", UNKNOWN, NEVER)


def array(item: Type) -> Type:
    return Type(f"{item.within('[]')}[]")


def literal(value: object) -> Type:
    """The type of exactly this JSON value."""
    if isinstance(value, float) and not math.isfinite(value):
        return Type("number")
    if value is None or isinstance(value, str | bool | int | float):
        return Type(dumps(value))
    return array(UNKNOWN) if isinstance(value, list) else OPEN


def key(name: str) -> str:
    return name if IDENTIFIER.fullmatch(name) else dumps(name)


def listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def mapped(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def resolve(root: object, pointer: str) -> object:
    """What `#/$defs/Node` points at; None where it points nowhere or out of the document."""
    if not pointer.startswith("#"):
        return None
    target = root
    for part in pointer.removeprefix("#").lstrip("/").split("/") if len(pointer) > 1 else []:
        step = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(target, Mapping):
            target = target.get(step)
        elif isinstance(target, list) and step.isdecimal() and int(step) < len(target):
            target = target[int(step)]
        else:
            return None
    return target


def exposed_refs(schema: object, depth: int = 0, *, own: bool = True, items: bool = False) -> Iterable[str]:
    """The references that stand in `schema` itself rather than inside one of its properties or items, and those of
    items where the compiler looks into them at once; `own` and `items` say of which of both this part is."""
    if not isinstance(schema, Mapping) or depth > DEEPEST:
        return
    if own and isinstance(schema.get("$ref"), str):
        yield schema["$ref"]
    for word in ("allOf", "anyOf", "oneOf"):
        for part in listed(schema.get(word)):
            yield from exposed_refs(part, depth + 1, own=own, items=items)
    places, needed, rest = parts_of(schema)
    for number, place in enumerate(places):
        yield from exposed_refs(place, depth + 1, own=items, items=items or number >= needed)
    yield from exposed_refs(rest, depth + 1, own=items, items=items or bool(places))


def parts_of(array: Mapping[str, Any]) -> tuple[list[Any], int, object]:
    """The places of a tuple, how many of them it needs, and what comes behind them; a list is all behind."""
    items = array.get("items", True)
    places = listed(array.get("prefixItems")) or listed(items)
    least = array.get("minItems", 0)
    rest = array.get("additionalItems", True) if isinstance(items, list) else items
    return places, least if isinstance(least, int) else 0, rest


@dataclass(slots=True)
class Printer:
    """Renders the schemas of one document; `named` are the types that its references need, by pointer."""

    root: object
    prefix: str
    named: dict[str, str] = field(default_factory=dict)
    declared: str = "#"
    nodes: int = 0

    def declare(self, name: str) -> str:
        """The root schema as `export interface` or `export type`, then every type it refers to."""
        self.named["#"] = name
        out: list[str] = []
        waiting = ["#"]
        while waiting:
            known = len(self.named)
            out += [self.declaration(self.named[pointer], pointer) for pointer in waiting]
            waiting = list(self.named)[known:]
        return "".join(out)

    def declaration(self, name: str, pointer: str) -> str:
        self.declared = pointer
        rendered = self.render(resolve(self.root, pointer), "", 0, pointer)
        if not rendered.joined and rendered.text.startswith("{\n") and rendered.text.endswith("}"):
            return f"export interface {name} {rendered.text}\n"
        return f"export type {name} = {rendered.text};\n"

    def render(self, schema: object, indent: str, depth: int, owner: str = "", items: str = "") -> Type:
        """`owner` is the named type whose own text this is, as opposed to that of a property or an item in it.
        `items` is the owner of items too where the compiler looks into arrays at once: in a tuple, behind what it
        needs."""
        self.nodes += 1
        if schema is False:
            return NEVER
        if not isinstance(schema, Mapping) or depth > DEEPEST or self.nodes > MOST_NODES:
            return UNKNOWN
        parts = [self.base(schema, indent, depth, items)]
        if isinstance(schema.get("$ref"), str):
            parts.append(self.reference(schema["$ref"], owner))
        parts += [self.render(part, indent, depth + 1, owner, items) for part in listed(schema.get("allOf"))]
        for word in ("anyOf", "oneOf"):
            if choices := listed(schema.get(word)):
                parts.append(union(self.render(part, indent, depth + 1, owner, items) for part in choices))
        whole = intersection(parts)
        return union([whole, NULL]) if schema.get("nullable") is True else whole

    def base(self, schema: Mapping[str, Any], indent: str, depth: int, owner: str) -> Type:
        """What the schema says without its references and combinations."""
        if "const" in schema:
            return literal(schema["const"])
        if isinstance(schema.get("enum"), list):
            return union(literal(value) for value in schema["enum"])
        kinds = schema.get("type")
        if isinstance(kinds, str):
            return self.kind(kinds, schema, indent, depth, owner)
        if isinstance(kinds, list):
            return union(self.kind(kind, schema, indent, depth, owner) for kind in kinds)
        if any(word in schema for word in OBJECT_KEYS):
            return self.apart(schema, indent, depth)
        known = any(word in schema for word in ARRAY_KEYS)
        return self.array(schema, indent, depth, owner) if known else UNKNOWN

    def kind(self, kind: object, schema: Mapping[str, Any], indent: str, depth: int, owner: str) -> Type:
        if kind == "object":
            return self.apart(schema, indent, depth)
        if kind == "array":
            return self.array(schema, indent, depth, owner)
        return Type(SCALARS[kind]) if isinstance(kind, str) and kind in SCALARS else UNKNOWN

    def array(self, schema: Mapping[str, Any], indent: str, depth: int, owner: str) -> Type:
        places, needed, rest = parts_of(schema)
        if not places:
            return array(self.render(rest, indent, depth + 1, owner, owner))
        shown = [
            self.render(place, indent, depth + 1, owner, owner).within("?")
            if n < needed
            else self.render(place, indent, depth + 1, owner, self.declared).within("?") + "?"
            for n, place in enumerate(places)
        ]
        tail = self.render(rest, indent, depth + 1, owner, self.declared)
        return Type(f"[{', '.join(shown if tail == NEVER else [*shown, f'...{array(tail).text}'])}]")

    def apart(self, schema: Mapping[str, Any], indent: str, depth: int) -> Type:
        """An object: the compiler does not look into one at once, so that a tuple in it may be of what is declared."""
        declared, self.declared = self.declared, ""
        rendered = self.object(schema, indent, depth)
        self.declared = declared
        return rendered

    def object(self, schema: Mapping[str, Any], indent: str, depth: int) -> Type:
        properties = {str(name): part for name, part in mapped(schema.get("properties")).items()}
        required = {name for name in listed(schema.get("required")) if isinstance(name, str)}
        inner = indent + STEP
        members = {name: self.render(part, inner, depth + 1) for name, part in properties.items()}
        if not members:
            return Type(f"{{ [key: string]: {union(self.others(schema, inner, depth)).text} }}")
        lines = [
            doc(mapped(properties[name]).get("description"), inner)
            + f"{inner}{key(name)}{'' if name in required else '?'}: {part.text};\n"
            for name, part in members.items()
        ]
        if schema.get("additionalProperties") or schema.get("patternProperties"):
            absent = [Type("undefined")] if members.keys() - required else []
            wide = union([*self.others(schema, inner, depth), *members.values(), *absent])
            # Repeating nested members in the signature would double the text at every level.
            lines.append(f"{inner}[key: string]: {'unknown' if '{' in wide.text else wide.text};\n")
        return Type("{\n" + "".join(lines) + indent + "}")

    def others(self, schema: Mapping[str, Any], indent: str, depth: int) -> list[Type]:
        """The types of the properties that are not named; none where there may be no others."""
        allowed = [
            schema.get("additionalProperties", True),
            *mapped(schema.get("patternProperties")).values(),
        ]
        return [self.render(part, indent, depth + 1) for part in allowed]

    def reference(self, pointer: str, owner: str) -> Type:
        target = resolve(self.root, pointer)
        if not isinstance(target, Mapping):
            return NEVER if target is False else UNKNOWN
        if owner and self.returns(pointer, owner):
            return UNKNOWN
        if pointer not in self.named:
            self.named[pointer] = self.name(pointer)
        return Type(self.named[pointer])

    def name(self, pointer: str) -> str:
        wanted = f"{self.prefix}_{pascal(unquote(pointer).rpartition('/')[2], 'Type')}"
        return wanted if wanted not in self.named.values() else f"{wanted}_{digest(pointer)}"

    def returns(self, pointer: str, owner: str) -> bool:
        """Whether the type at `pointer` is defined as `owner` itself; such an alias has no meaning."""
        seen: set[str] = set()
        queue: list[str] = [pointer]
        while queue:
            here = queue.pop()
            if here == owner:
                return True
            if here not in seen:
                seen.add(here)
                queue.extend(exposed_refs(resolve(self.root, here)))
        return False


def declare(name: str, schema: object) -> str:
    """`schema` as an exported type called `name`, with the types it refers to."""
    return Printer(schema, name).declare(name)
