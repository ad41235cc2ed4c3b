"""`Definition`: what a source declares. `Tool`: that definition with its id, names and compiled parts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from agent_gate.core.traits import NO_TRAITS, Traits

if TYPE_CHECKING:
    from agent_gate.core.declared import Declared

Json = Any
"""A JSON value as decoded: dict, list, str, int, float, bool or None."""

JsonSchema = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One tool as its source declares it, before it has an id. `own` is the server's name of one that was renamed.

    `template` is the signature template of a YAML tool (``""`` gives the bare name); None renders
    ``key=value`` pairs. `strict` refuses pattern characters in string arguments, as for all YAML tools.
    `declared` are the arguments that a YAML file lists; None means what the schema names (`declared_by`). `effect` is a
    digest of what a call of a YAML tool sends, so that a yes to one request is none to another. `method` names what
    a read asks of its MCP server (`resources/read`, `prompts/get`); tools have none. `wire` is the name on the wire
    where it is not made of the source's key and the tool's name. `consequences` are facts that an allow rule covers
    only where its `extra` names them, such as that a click submits a form. What is `kept` is stored whole whatever its
    size, and says under which handle; it takes a `budget` too.
    """

    name: str
    own: str = ""
    wire: str = ""
    description: str = ""
    input_schema: JsonSchema = field(default_factory=lambda: {"type": "object"})
    output_schema: JsonSchema | None = None
    title: str = ""
    version: str = ""
    traits: Traits = NO_TRAITS
    annotations: Mapping[str, Json] = field(default_factory=dict)
    meta: Mapping[str, Json] = field(default_factory=dict)
    icons: tuple[Json, ...] = ()
    tags: tuple[str, ...] = ()
    flat: bool = False
    template: str | None = None
    strict: bool = False
    declared: frozenset[str] | None = None
    text: frozenset[str] = frozenset()
    secret: frozenset[str] = frozenset()
    consequences: frozenset[str] = frozenset()
    patterns: Mapping[str, str] = field(default_factory=dict)
    timeout: float | None = None
    ask: str = ""
    budget: int | None = None
    kept: bool = False
    record: Literal["await", "behind"] = "await"
    effect: str = ""
    method: str = ""

    def pin(self) -> str:
        """SHA-256 over what is known of this tool; a change means the tool is not the one that was seen."""
        seen = [self.name, self.description, self.input_schema, self.output_schema, self.annotations]
        if self.effect:
            seen.append(self.effect)
        return sha256(msgspec.json.encode(seen, order="sorted")).hexdigest()


Validator = Callable[[Mapping[str, Json]], None]
"""Raises `InvalidArgs` where the arguments do not fit; returns None otherwise."""

Signer = Callable[[Mapping[str, Json]], str]
"""Renders the signature that policy matches, the person sees and the audit keeps."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tool:
    """A callable thing in the catalog. `id` is the only internal key; `wire` and `alias` are renderings of it.

    `full_wire` is the name on the wire before it was cut, or made unique by a digest; empty where nothing was done to it.
    """

    id: str
    namespace: str
    name: str
    wire: str
    alias: str
    source: str
    pin: str
    definition: Definition
    validate: Validator
    sign: Signer
    declared: "Declared"
    available: bool = True
    full_wire: str = ""
    defaults: Mapping[str, Json] = field(default_factory=dict)

    @property
    def upstream(self) -> str:
        return self.definition.name

    @property
    def description(self) -> str:
        return self.definition.description

    @property
    def input_schema(self) -> JsonSchema:
        return self.definition.input_schema

    @property
    def traits(self) -> Traits:
        return self.definition.traits
