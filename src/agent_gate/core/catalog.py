"""The catalog: an immutable snapshot of all tools, built from what each source listed, swapped whole."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

import msgspec

from agent_gate.core.declared import declared_by
from agent_gate.core.ids import parse_tool_id, tool_id
from agent_gate.core.schema import compile_schema
from agent_gate.core.signature import compile_signer
from agent_gate.core.tool import Definition, Json, Tool
from agent_gate.core.validate import compile_validator
from agent_gate.errors import CatalogError, ToolNotFound

LONGEST_WIRE = 46
META_TOOLS = frozenset({"tool_browse", "tool_hydrate", "tool_execute", "tool_view", "gate_result"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What one source has, as the supervisor last knew it."""

    key: str
    namespace: str
    title: str = ""
    description: str = ""
    kind: str = ""
    definitions: Sequence[Definition] = ()
    reads: Sequence[Definition] = ()
    available: bool = True
    prefix: bool = True


@dataclass(frozen=True, slots=True)
class Excluded:
    """A tool that was left out, and why; its siblings stay."""

    source: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Catalog:
    """`find` takes a tool id, a wire name or an unambiguous alias. Clients see `digest`, never `generation`.

    `reads` are the reads of the sources by id and by `server__method`, a name that no tool can have; they are never listed.
    """

    generation: int = 0
    digest: str = ""
    tools: tuple[Tool, ...] = ()
    listings: Mapping[str, Listing] = field(default_factory=dict)
    excluded: tuple[Excluded, ...] = ()
    names: Mapping[str, Tool] = field(default_factory=dict)
    reads: Mapping[str, Tool] = field(default_factory=dict)

    def find(self, name: str) -> Tool | None:
        return self.names.get(name) or self.reads.get(name)

    def renewed(self, name: str) -> Tool | None:
        """The tool that an id of an earlier definition of it meant."""
        bare = name.partition("#")[0].partition("@")[0]
        return self.names.get(bare) if bare != name else None

    def titles(self) -> dict[str, str]:
        return {entry.namespace: entry.description or entry.title for entry in self.listings.values()}


def unknown_tool(name: str, renewed: Tool | None, hint: str = "") -> ToolNotFound:
    """What is told to whoever names a tool that there is not; `renewed` is what its name meant before."""
    if renewed is not None:
        hint = f"The definition of {renewed.alias} changed: its id is {renewed.id} now. Look at it again before you call it"
    return ToolNotFound(f"Unknown tool: {name[:120]}" + (f". {hint}" if hint else ""))


def wire_part(text: str) -> str:
    """A key or name in the characters every client accepts; a leading digit gets an underscore."""
    converted = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return f"_{converted}" if converted[:1].isdigit() else converted


def wire_digest(namespace: str, name: str) -> str:
    return sha256(f"{namespace}\n{name}".encode()).hexdigest()[:8]


def wanted_wire(listing: Listing, definition: Definition) -> str:
    if definition.flat or definition.wire:
        return definition.wire or definition.name
    tool = wire_part(definition.name)
    return f"{wire_part(listing.key)}__{tool}" if listing.prefix else tool


def suffixed(wire: str, namespace: str, name: str) -> str:
    return f"{wire[: LONGEST_WIRE - 9]}_{wire_digest(namespace, name)}"


ListedDefinition = tuple["Listing", Definition]


def wire_names(entries: Sequence[ListedDefinition], before: Mapping[str, str]) -> list[str | None]:
    """One wire name per entry. Names that are cut, or that two tools want, end in a digest of where they come from.

    Only tools of one source can want one name: no source may move a tool of another from under its rules. Of tools
    without a prefix that want one name only one has it, that of the source that had it `before`; the others have none.
    """
    wanted = [wanted_wire(listing, definition) for listing, definition in entries]
    counts, owners = Counter(wanted), dict[str, str]()
    keepers = {
        wire: keeper_of(
            wire, [entry for entry, want in zip(entries, wanted, strict=True) if want == wire], before
        )
        for wire, count in counts.items()
        if count > 1 or wire in META_TOOLS
    }
    out: list[str | None] = []
    for (listing, definition), wire in zip(entries, wanted, strict=True):
        clash = wire in keepers
        if clash and gives_way(listing, definition):
            out.append(wire if keepers[wire] == listing.key else None)
            continue
        if clash and definition.flat and firm_claims(wire, entries, wanted) > 1:
            raise CatalogError(f"Two tools are named {wire}; one is in {listing.key}. Rename one of them")
        owner = owners.setdefault(wire, listing.key)
        if owner != listing.key or (clash and keepers[wire] != listing.key):
            other = owner if owner != listing.key else keepers[wire]
            raise CatalogError(
                f"{other} and {listing.key} both have a tool named {wire}. Rename one of the two"
            )
        cut = (clash and firm_claims(wire, entries, wanted) > 1) or len(wire) > LONGEST_WIRE
        out.append(
            suffixed(wire, listing.namespace, definition.name) if cut and not definition.flat else wire
        )
    check_unique((wire for wire in out if wire is not None), "name on the wire")
    return out


def gives_way(listing: Listing, definition: Definition) -> bool:
    """Whether a tool is left out where another has its name: it is of a server whose entry asks for no prefix."""
    return not listing.prefix and not definition.flat


def firm_claims(wire: str, entries: Sequence[ListedDefinition], wanted: Sequence[str]) -> int:
    claims = (entry for entry, want in zip(entries, wanted, strict=True) if want == wire)
    return (wire in META_TOOLS) + sum(not gives_way(*entry) for entry in claims)


def keeper_of(wire: str, claims: Sequence[ListedDefinition], before: Mapping[str, str]) -> str:
    """The source that has a name which several tools want; nobody where one source wants it twice, or it is ours."""
    if wire in META_TOOLS:
        return ""
    had = before.get(wire)
    firm = [listing.key for listing, definition in claims if not gives_way(listing, definition)]
    if firm:
        return had if had is not None and any(listing.key == had for listing, _ in claims) else firm[0]
    counts = Counter(listing.key for listing, _ in claims)
    once = [key for key, count in counts.items() if count == 1]
    return had if had in once else next(iter(once), "")


def clash_reason(listing: Listing, definition: Definition, entries: Sequence[ListedDefinition]) -> str:
    """Why a tool of a source without a prefix has no name."""
    wire = wanted_wire(listing, definition)
    others = {
        other.key for other, one in entries if wanted_wire(other, one) == wire and one is not definition
    }
    owner = "the gateway itself" if wire in META_TOOLS else " and ".join(sorted(others)) or listing.key
    return f"{owner} has a tool named {wire} too; rename it, or give {listing.key} its prefix"


def aliases(tool: Tool) -> Iterable[str]:
    """`namespace:name`, and the same without a redundant `namespace-` or `namespace_` before the name."""
    yield tool.alias
    for separator in "-", "_":
        prefix = tool.namespace + separator
        if tool.name.startswith(prefix) and len(tool.name) > len(prefix):
            yield f"{tool.namespace}:{tool.name[len(prefix) :]}"


def lookup(tools: Sequence[Tool]) -> dict[str, Tool]:
    """Every name a tool answers to. An alias that two tools share belongs to neither."""
    names: dict[str, Tool] = {}
    shared = Counter(alias for tool in tools for alias in set(aliases(tool)))
    for tool in tools:
        names.update({alias: tool for alias in aliases(tool) if shared[alias] == 1})
    for tool in tools:
        names[tool.id] = names[tool.wire] = tool
    return names


def make_tool(listing: Listing, definition: Definition, wire: str) -> Tool:
    ident = tool_id(listing.namespace, definition)
    name = parse_tool_id(ident).name
    wanted = wanted_wire(listing, definition)
    declared = declared_by(definition)
    return Tool(
        id=ident,
        namespace=listing.namespace,
        name=name,
        wire=wire,
        alias=f"{listing.namespace}:{name}",
        source=listing.key,
        pin=definition.pin(),
        definition=definition,
        validate=compile_validator(definition, declared),
        sign=compile_signer(wire, definition),
        declared=declared,
        available=listing.available,
        defaults=defaults(definition),
        full_wire=wanted if wanted != wire else "",
    )


def defaults(definition: Definition) -> dict[str, Json]:
    """What counts for arguments that are left out: of a tool declared in YAML every default, of any other those that
    its schema also requires, since the server takes a call without them."""
    properties = definition.input_schema.get("properties") or {}
    given = {
        name: schema["default"]
        for name, schema in properties.items()
        if isinstance(schema, Mapping) and "default" in schema
    }
    if definition.strict:
        return given
    required = definition.input_schema.get("required") or ()
    return {
        name: value for name, value in given.items() if name in required and fits(definition, name, value)
    }


def fits(definition: Definition, name: str, value: Json) -> bool:
    """Whether the schema itself takes the default that it gives for an argument."""
    alone = {key: held for key, held in definition.input_schema.items() if key != "required"}
    return bool(compile_schema(alone).is_valid({name: value}))


def reuse(tool: Tool | None, listing: Listing, definition: Definition, wire: str) -> Tool | None:
    """The tool of the previous catalog, where nothing but its availability changed."""
    if tool is None or tool.wire != wire or tool.source != listing.key or tool.definition != definition:
        return None
    return tool if tool.available == listing.available else replace(tool, available=listing.available)


def check_unique(names: Iterable[str], kind: str) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise CatalogError(f"{count} tools resolve to the {kind} {name}; the catalog keeps what it had")


def read_name(key: str, method: str) -> str:
    return f"{wire_part(key)}__{method}"


def lookup_reads(listings: Iterable[Listing], before: Catalog) -> dict[str, Tool]:
    found: dict[str, Tool] = {}
    for listing in listings:
        for definition in listing.reads:
            wire = read_name(listing.key, definition.name)
            tool = reuse(before.reads.get(wire), listing, definition, wire)
            tool = tool or replace(make_tool(listing, definition, wire), full_wire="")
            found[wire] = found[tool.id] = tool
    return found


def digest(tools: Sequence[Tool]) -> str:
    """A name for what clients can see; equal across restarts while nothing visible changed."""
    seen = [(tool.id, tool.wire, tool.pin) for tool in tools]
    return sha256(msgspec.json.encode(seen)).hexdigest()[:16]


def build(listings: Iterable[Listing], previous: Catalog | None = None) -> Catalog:
    """Turn what the sources listed into a catalog; tools whose schema cannot be used are left out with the reason."""
    before = previous or Catalog()
    ordered = {entry.key: entry for entry in sorted(listings, key=lambda entry: entry.key)}
    entries = [(entry, definition) for entry in ordered.values() for definition in entry.definitions]
    old = {(tool.source, tool.upstream): tool for tool in before.tools}
    tools, excluded, clashes = [], [], []
    for (listing, definition), wire in zip(
        entries, wire_names(entries, {tool.wire: tool.source for tool in before.tools}), strict=True
    ):
        if wire is None:
            reason = clash_reason(listing, definition, entries)
            clashes.append(Excluded(listing.key, definition.name, reason))
            continue
        kept = reuse(old.get((listing.key, definition.name)), listing, definition, wire)
        try:
            tools.append(kept or make_tool(listing, definition, wire))
        except CatalogError as error:
            excluded.append(Excluded(listing.key, definition.name, error.message))
    tools.sort(key=lambda tool: tool.id)
    check_unique((tool.id for tool in tools), "id")
    return Catalog(
        generation=before.generation + 1,
        digest=digest(tools),
        tools=tuple(tools),
        listings=ordered,
        excluded=(*excluded, *clashes),
        names=lookup(tools),
        reads=lookup_reads(ordered.values(), before),
    )


class Shelf:
    """Holds the current catalog. Only the supervisor swaps it; everybody else reads it and hears of changes."""

    def __init__(self) -> None:
        self.catalog = Catalog()
        self._listeners: list[Callable[[Catalog, Catalog], None]] = []

    def subscribe(self, listener: Callable[[Catalog, Catalog], None]) -> Callable[[], None]:
        """Call `listener(before, now)` after each swap; returns the undo."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def swap(self, catalog: Catalog) -> None:
        before, self.catalog = self.catalog, catalog
        for listener in list(self._listeners):
            listener(before, catalog)
