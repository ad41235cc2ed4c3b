"""What a server lists, turned into definitions; a broken entry is left out with its reason, its siblings stay."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from agent_gate.config.servers.settings import ServerSettings
from agent_gate.core.catalog import Excluded
from agent_gate.core.ids import fold_namespace, tool_id
from agent_gate.core.tool import Definition, Json
from agent_gate.core.traits import TRAITS, Traits
from agent_gate.errors import CatalogError
from agent_gate.mcp.errors import INTERNAL_ERROR, METHOD_NOT_FOUND, RpcError
from agent_gate.mcp.names import LIST_TOOLS
from agent_gate.mcp.revisions import Revision
from agent_gate.sources.mcp.clean import MAX_TITLE, clean, clean_schema
from agent_gate.sources.mcp.lists.budget import Budget
from agent_gate.sources.mcp.lists.mirrors import HeaderMap, header_map
from agent_gate.sources.mcp.sessions.session import ServerSession
from agent_gate.sources.mcp.wire.frames import object_in
from agent_gate.sources.mcp.wire.order import Order

log = logging.getLogger("agent_gate.sources.mcp")

MAX_ENTRIES = 5_000
MAX_BYTES = 32 * 1024 * 1024
MAX_NAME = 256
MOST_PAGES = 2_000
LISTS = {
    "tools": LIST_TOOLS,
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
    "prompts": "prompts/list",
}


@dataclass(frozen=True, slots=True)
class UpstreamTool:
    """How one definition is called upstream."""

    upstream: str
    headers: HeaderMap
    idempotent: bool


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of one server that can be used, how to call each, and what was left out."""

    definitions: tuple[Definition, ...] = ()
    routes: Mapping[str, UpstreamTool] = field(default_factory=dict)
    excluded: tuple[Excluded, ...] = ()


class Endless(RpcError):
    """A list that goes on and on."""

    def __init__(self, message: str) -> None:
        super().__init__(INTERNAL_ERROR, message)


async def list_all(session: ServerSession, kind: str, deadline: float, pages: Budget) -> list[Json]:
    """Every page of one list, bounded in entries and bytes, and in pages per minute."""
    entries: list[Json] = []
    cursor, size = None, 0
    seen: set[str] = set()
    while True:
        if pages.take():
            raise Endless(f"it lists more than {MOST_PAGES} pages a minute; the last were of its {kind}")
        params: dict[str, Json] = {} if cursor is None else {"cursor": cursor}
        body = await session.send(Order(method=LISTS[kind], params=params, deadline=deadline))
        size += len(body)
        page = page_of(body)
        entries.extend(listed_in(page, kind))
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or cursor in seen:
            return entries
        if len(entries) > MAX_ENTRIES or size > MAX_BYTES:
            raise Endless(f"it lists more {kind} than {MAX_ENTRIES}, or more than {MAX_BYTES} bytes")
        seen.add(cursor)


def page_of(body: bytes) -> dict[str, Any]:
    page = object_in(body)
    if page is None:
        raise RpcError(INTERNAL_ERROR, "it answered a list request with something that is not an object")
    return page


def listed_in(page: Mapping[str, Json], kind: str) -> list[Json]:
    listed = page.get(kind) or []
    if not isinstance(listed, list):
        raise RpcError(INTERNAL_ERROR, f"it listed its {kind} as something that is not a list")
    return listed


async def list_context(session: ServerSession, deadline: float, pages: Budget) -> dict[str, tuple[Json, ...]]:
    """Resources, templates and prompts; a list the server does not have is empty."""
    found: dict[str, tuple[Json, ...]] = {}
    for kind in "resources", "resourceTemplates", "prompts":
        capability = "prompts" if kind == "prompts" else "resources"
        if capability not in session.welcome.capabilities:
            continue
        try:
            entries = await list_all(session, kind, deadline, pages)
        except Endless:
            raise
        except RpcError as error:
            log.debug("%s are not listed: %s", kind, error)
            continue
        found[kind] = tuple(usable_entries(kind, entries[:MAX_ENTRIES]))
    return found


def usable_entries(kind: str, entries: Sequence[Json]) -> Iterator[Json]:
    for entry in entries:
        try:
            if isinstance(entry, dict):
                yield clean_schema(entry)
        except ValueError as error:
            log.debug("one of the %s is left out: %s", kind, error)


async def list_tools(
    session: ServerSession, settings: ServerSettings, deadline: float, pages: Budget
) -> Tools:
    if "tools" not in session.welcome.capabilities:
        return Tools()
    try:
        entries = await list_all(session, "tools", deadline, pages)
    except RpcError as error:
        if error.code == METHOD_NOT_FOUND:
            return Tools()
        raise
    if len(entries) > MAX_ENTRIES:
        raise RpcError(INTERNAL_ERROR, f"it lists more than {MAX_ENTRIES} tools")
    return usable_tools(entries, settings, session.revision)


def usable_tools(entries: Sequence[Json], settings: ServerSettings, revision: Revision) -> Tools:
    """The definitions of `entries`, filtered and renamed as the settings say."""
    definitions: dict[str, Definition] = {}
    routes: dict[str, UpstreamTool] = {}
    excluded: list[Excluded] = []
    for entry in entries:
        name = entry.get("name") if isinstance(entry, dict) else None
        if isinstance(name, str) and not wanted(name, settings):
            continue
        try:
            definition = define(entry, settings)
            if definition.name in definitions:
                check_differs(definitions[definition.name], definition, settings)
                raise ValueError("another tool of this server has the same name")
            headers = header_map(definition.input_schema) if revision.repeats_in_headers else {}
        except (ValueError, TypeError) as error:
            excluded.append(Excluded(settings.key, clean(name, MAX_TITLE) or "(unnamed)", str(error)))
            continue
        definitions[definition.name] = definition
        routes[definition.name] = UpstreamTool(entry["name"], headers, definition.traits.idempotent)
    return Tools(tuple(definitions.values()), routes, tuple(excluded))


def check_differs(one: Definition, other: Definition, settings: ServerSettings) -> None:
    """Two tools of one id leave open which of them a rule, a pin or an approval means: nothing of that list is taken."""
    namespace = fold_namespace(settings.key)
    ident = tool_id(namespace, one)
    if ident == tool_id(namespace, other):
        raise CatalogError(
            f"{settings.title} lists two tools with the id {ident}. That list is refused and the tools stay as they were; "
            "the server has to name them apart"
        )


def wanted(name: str, settings: ServerSettings) -> bool:
    included = any(fnmatchcase(name, pattern) for pattern in settings.include)
    return included and not any(fnmatchcase(name, pattern) for pattern in settings.exclude)


def define(entry: Json, settings: ServerSettings) -> Definition:
    """One entry of `tools/list` as a definition; `ValueError` says why it cannot be used."""
    if not isinstance(entry, dict):
        raise ValueError("it is not an object")
    name = entry.get("name")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or clean(name, 4 * MAX_NAME) != name:
        raise ValueError(f"its name is not a plain string of at most {MAX_NAME} characters")
    if member(entry, "execution").get("taskSupport") == "required":
        raise ValueError("it can only run as a task, which is not supported")
    schema = entry.get("inputSchema")
    if not isinstance(schema, dict):
        raise ValueError("its input schema is not an object")
    output, annotations, meta = (
        entry.get("outputSchema"),
        member(entry, "annotations"),
        member(entry, "_meta"),
    )
    icons = entry.get("icons")
    traits = traits_of(annotations, settings)
    return Definition(
        name=settings.rename.get(name, name),
        own=name if name in settings.rename else "",
        title=clean(entry.get("title") or annotations.get("title"), MAX_TITLE),
        description=clean(entry.get("description")),
        input_schema=clean_schema(schema),
        output_schema=clean_schema(output) if isinstance(output, dict) else None,
        version=version_of(meta),
        traits=traits,
        annotations=clean_schema(annotations),
        meta=clean_schema(meta),
        icons=tuple(clean_schema(icons)) if isinstance(icons, list) else (),
        timeout=settings.timeout,
        record=settings.record if traits.read_only and traits.trusted else "await",
    )


def member(entry: Mapping[str, Json], name: str) -> dict[str, Json]:
    found = entry.get(name)
    return found if isinstance(found, dict) else {}


def version_of(meta: Mapping[str, Json]) -> str:
    """The version a tool declares for itself, which then stands in its id instead of a hash."""
    declared = meta.get("version")
    if isinstance(declared, bool) or not isinstance(declared, str | int | float):
        return ""
    return str(declared)


def traits_of(annotations: Mapping[str, Json], settings: ServerSettings) -> Traits:
    """What the operator says; else what the server claims, of which an untrusted one is believed only the worst."""
    said, believed = settings.traits.said(), settings.trust_annotations
    claimed = {
        name: (believed or trait.cautious) and annotations.get(trait.hint) is True
        for name, trait in TRAITS.items()
    }
    return Traits(trusted=believed or bool(said), **claimed | said)
