"""The arguments that a tool declares: those that its schema names for the object as a whole, wherever it does."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from agent_gate.core.schema import compile_schema
from agent_gate.core.tool import Definition, JsonSchema

BRANCHES = ("allOf", "anyOf", "oneOf")
PARTS = ("if", "then", "else")
OTHERS = ("additionalProperties", "unevaluatedProperties")
BY_NAME = ("dependentSchemas", "dependencies")
ANYBODY = ("", "\u0001", "~ 7\u00e9", "agent-gate/none")
"""No tool has arguments of these names: a pattern that fits them all fits every name, and so names none."""


class Declared:
    """Names, and patterns of names. `additionalProperties` names nothing, whatever it holds; a schema that it gives
    for other arguments invites them."""

    __slots__ = ("fits", "invites", "names")

    def __init__(
        self,
        names: Iterable[str] = (),
        fits: Callable[[str], bool] | None = None,
        *,
        invites: bool = False,
    ) -> None:
        self.names, self.fits, self.invites = frozenset(names), fits, invites

    def __contains__(self, name: str) -> bool:
        return name in self.names or (self.fits is not None and self.fits(name))

    def others(self, arguments: Iterable[str]) -> frozenset[str]:
        """Those of the arguments that are not declared."""
        found = frozenset(arguments) - self.names
        return frozenset(name for name in found if not self.fits(name)) if found and self.fits else found


EVERYTHING = Declared((), lambda _name: True)


def declared_by(definition: Definition) -> Declared:
    """What a tool declares: in YAML what its file lists, elsewhere what its schema names."""
    if definition.declared is not None:
        return Declared(definition.declared)
    root = definition.input_schema
    return named_by(list(about_one_value([root], root)))


def named_by(schemas: Iterable[JsonSchema]) -> Declared:
    """What schemas that are about one object declare together."""
    names, patterns, invites = set[str](), set[str](), False
    for schema in schemas:
        invites = invites or any(isinstance(schema.get(key), Mapping) and schema[key] for key in OTHERS)
        names.update(members(schema, "properties"))
        patterns.update(members(schema, "patternProperties"))
    telling = [pattern for pattern in sorted(patterns) if not all(map(fitting([pattern]), ANYBODY))]
    invites = invites or len(telling) < len(patterns)
    return Declared(names, fitting(telling) if telling else None, invites=bool(invites))


def members(schema: JsonSchema, key: str) -> Iterable[str]:
    found = schema.get(key)
    return found if isinstance(found, Mapping) else ()


def fitting(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Whether a name fits one of the patterns, as the schema's own check would say."""
    is_valid = compile_schema({"patternProperties": dict.fromkeys(patterns, False)}).is_valid
    return lambda name: not is_valid({name: None})


def about_one_value(schemas: Iterable[JsonSchema], root: JsonSchema) -> Iterator[JsonSchema]:
    """These schemas of the document `root`, and every one inside them that is about the same value as they are."""
    seen, waiting = set[int](), list(schemas)
    while waiting:
        schema = waiting.pop()
        if not isinstance(schema, Mapping) or id(schema) in seen:
            continue
        seen.add(id(schema))
        yield schema
        waiting.extend(about_the_same(schema, root))


def about_the_same(schema: JsonSchema, root: JsonSchema) -> Iterator[Any]:
    for key in BRANCHES:
        found = schema.get(key)
        yield from found if isinstance(found, list | tuple) else ()
    yield from (schema[key] for key in PARTS if key in schema)
    for key in BY_NAME:
        found = schema.get(key)
        yield from found.values() if isinstance(found, Mapping) else ()
    for key in ("$ref", "$dynamicRef"):
        if isinstance(reference := schema.get(key), str):
            yield referred(reference, root)


def referred(reference: str, root: JsonSchema) -> Any:
    """What a reference within the document points to; None where it points elsewhere."""
    if not reference.startswith("#"):
        own = root.get("$id")
        if not isinstance(own, str) or not reference.startswith(own.rstrip("#")):
            return None
        reference = reference[len(own.rstrip("#")) :] or "#"
    pointer = unquote(reference[1:])
    if pointer and not pointer.startswith("/"):
        return anchored(pointer, root)
    found: Any = root
    for step in pointer.split("/")[1:]:
        found = stepped(found, step.replace("~1", "/").replace("~0", "~"))
    return found


def stepped(value: Any, step: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(step)
    return (
        value[int(step)] if isinstance(value, list) and step.isdecimal() and int(step) < len(value) else None
    )


def anchored(name: str, root: JsonSchema) -> Any:
    """The schema with this `$anchor`."""
    waiting: list[Any] = [root]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            if name in (one.get("$anchor"), one.get("$dynamicAnchor")):
                return one
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return None
