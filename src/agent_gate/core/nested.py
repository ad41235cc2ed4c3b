"""Slips inside of arguments: members of objects that their schema does not name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_gate.core.declared import OTHERS, Declared, about_one_value, named_by
from agent_gate.core.tool import Json, JsonSchema

Schemas = tuple[JsonSchema, ...]


@dataclass(frozen=True, slots=True)
class Slip:
    """A member that nobody declared, and those that are declared where it stands."""

    path: tuple[str, ...]
    known: frozenset[str]


def first_slip(root: JsonSchema, arguments: Mapping[str, Json]) -> Slip | None:
    """The first one below the arguments themselves; a schema that says a word about other members takes them all."""
    looking = Looking(root)
    whole = looking.about([root])
    inner = (looking.into(whole, name, value) for name, value in arguments.items())
    return next(filter(None, inner), None)


class Looking:
    """Values beside the schemas that are about them. What schemas declare together is worked out once for each set."""

    def __init__(self, root: JsonSchema) -> None:
        self._root = root
        self._declared: dict[tuple[int, ...], Declared | None] = {}

    def about(self, schemas: Sequence[Any]) -> Schemas:
        return tuple(about_one_value(schemas, self._root))

    def into(self, schemas: Schemas, key: str | int, value: Json) -> Slip | None:
        """The first slip in a member or an item of what these schemas are about."""
        if not isinstance(value, Mapping | list):
            return None
        below = self.about([one for schema in schemas for one in schemas_of(schema, key)])
        slip = self._own(below, value) if isinstance(value, Mapping) else None
        parts = value.items() if isinstance(value, Mapping) else enumerate(value)
        slip = slip or next(filter(None, (self.into(below, *part) for part in parts)), None)
        return slip and Slip((str(key), *slip.path), slip.known)

    def _own(self, schemas: Schemas, value: Mapping[str, Json]) -> Slip | None:
        place = tuple(map(id, schemas))
        if place not in self._declared:
            self._declared[place] = closed(schemas)
        declared = self._declared[place]
        others = declared.others(value) if declared is not None else ()
        return Slip((min(others),), declared.names) if others and declared is not None else None


def closed(schemas: Schemas) -> Declared | None:
    """What they declare; None where they name nothing, or say what becomes of other members."""
    declared = named_by(schemas)
    said = declared.invites or any(
        schema.get(key, False) is not False for schema in schemas for key in OTHERS
    )
    return declared if declared.names and not said else None


def schemas_of(schema: JsonSchema, key: str | int) -> Iterator[Any]:
    """Those that a schema has for one member of an object, or for one item of a list."""
    if isinstance(key, str):
        named = schema.get("properties")
        if isinstance(named, Mapping) and key in named:
            yield named[key]
        else:
            yield from (schema[other] for other in OTHERS if other in schema)
        return
    first = schema.get("prefixItems")
    if isinstance(first, list) and key < len(first):
        yield first[key]
    else:
        yield schema.get("items")
