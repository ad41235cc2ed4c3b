"""Resources, prompts and completions of all MCP sources as one: lists, and which source a name or URI belongs to."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agent_gate.core.call import Caller, Decision
from agent_gate.core.catalog import Listing, Shelf, wire_digest, wire_part
from agent_gate.core.ports import Clock, ContextSource
from agent_gate.core.tool import Json
from agent_gate.errors import GatewayError, UpstreamError
from agent_gate.mcp.errors import INTERNAL_ERROR, INVALID_PARAMS, RpcError
from agent_gate.mcp.messages import encode
from agent_gate.mcp.results import without_protocol
from agent_gate.mcp.revisions import Revision
from agent_gate.surfaces.mcp.context.reads import Reads, denied
from agent_gate.surfaces.mcp.context.templates import fits
from agent_gate.surfaces.mcp.tools import render
from agent_gate.surfaces.mcp.tools.lists import listed
from agent_gate.surfaces.mcp.visit import Visit

SECONDS = 60.0
ContextSources = Callable[[], Mapping[str, ContextSource]]


class Prompt(NamedTuple):
    """A prompt under the name clients use, with the source that has it."""

    name: str
    entry: Mapping[str, Json]
    source: ContextSource


def shown(entry: Mapping[str, Json], **changed: Json) -> dict[str, Json]:
    """An entry of a source's list as it is passed on."""
    out = {**entry, **changed}
    meta = out.get("_meta")
    if isinstance(meta, dict):
        out["_meta"] = without_protocol(meta)
    return out


def named(source: ContextSource, listing: Listing | None, name: str) -> str:
    """A prompt's name, prefixed as the source's tools are."""
    if listing is not None and not listing.prefix:
        return name
    return f"{wire_part(source.key)}__{wire_part(name)}"


class Contexts:
    """Reads the sources' own lists each time; they are small and already in memory."""

    def __init__(self, sources: ContextSources, shelf: Shelf, reading: Reads, clock: Clock) -> None:
        self._sources, self._shelf, self._reading, self._clock = sources, shelf, reading, clock

    def seen(self, caller: Caller) -> list[ContextSource]:
        """The sources a caller may know of, by key."""
        sources = self._sources()
        return [sources[key] for key in sorted(sources) if caller.sees(sources[key].namespace)]

    def source(self, key: str) -> ContextSource | None:
        return self._sources().get(key)

    def prompts(self, caller: Caller) -> Iterator[Prompt]:
        """Every prompt once under each name; a second one of the same name gets a digest of where it is from."""
        taken: set[str] = set()
        for source in self.seen(caller):
            listing = self._shelf.catalog.listings.get(source.key)
            for entry in source.offers("prompts"):
                upstream = entry.get("name")
                if not isinstance(upstream, str):
                    continue
                name = named(source, listing, upstream)
                if name in taken:
                    name = f"{name}_{wire_digest(source.namespace, upstream)}"
                taken.add(name)
                yield Prompt(name, entry, source)

    def list_prompts(self, caller: Caller, revision: Revision) -> bytes:
        entries = [
            shown(prompt.entry, name=prompt.name)
            for prompt in self.prompts(caller)
            if not self._reading.hidden(caller, prompt.source, "prompts/get", {"name": prompt.entry["name"]})
        ]
        return listed(b"prompts", encode(entries), revision)

    def list_resources(self, caller: Caller, revision: Revision) -> bytes:
        return listed(b"resources", encode(self._unique(caller, "resources", "uri")), revision)

    def list_templates(self, caller: Caller, revision: Revision) -> bytes:
        entries = self._unique(caller, "resourceTemplates", "uriTemplate")
        return listed(b"resourceTemplates", encode(entries), revision)

    def _unique(self, caller: Caller, kind: str, key: str) -> list[dict[str, Json]]:
        found: dict[str, dict[str, Json]] = {}
        for source in self.seen(caller):
            for entry in source.offers(kind):
                uri = str(entry.get(key))
                if not self._reading.hidden(caller, source, "resources/read", {"uri": uri}):
                    found.setdefault(uri, shown(entry))
        return list(found.values())

    def prompt(self, caller: Caller, name: Json) -> Prompt:
        for prompt in self.prompts(caller):
            if prompt.name == name:
                return prompt
        raise RpcError(INVALID_PARAMS, f"Unknown prompt: {str(name)[:120]}")

    def owner(self, caller: Caller, uri: Json) -> ContextSource | None:
        """The source that lists this URI, else the first one that led to it or has a template it fits."""
        if not isinstance(uri, str):
            return None
        sources = self.seen(caller)
        for source in sources:
            if any(entry.get("uri") == uri for entry in source.offers("resources")):
                return source
        for source in sources:
            if source.leads_to(uri):
                return source
        for source in sources:
            if any(uri == template or fits(template, uri) for template in templates(source)):
                return source
        return None

    async def read(self, visit: Visit, params: dict[str, Any]) -> bytes:
        uri = params.get("uri")
        source = self.owner(visit.caller, uri)
        if source is None:
            code = visit.revision.not_found
            missing = f"Resource not found: {str(uri)[:200]}"
            self._reading.record_unknown(visit, "resources/read", params, missing)
            raise RpcError(code, missing, {"uri": str(uri)[:200]})
        return await self._reading.read(visit, source, "resources/read", params)

    async def get_prompt(self, visit: Visit, params: dict[str, Any]) -> bytes:
        try:
            prompt = self.prompt(visit.caller, params.get("name"))
        except RpcError as error:
            self._reading.record_unknown(visit, "prompts/get", params, error.message)
            raise
        params = {**params, "name": prompt.entry["name"]}
        return await self._reading.read(visit, prompt.source, "prompts/get", params)

    def hides(self, caller: Caller, source: ContextSource, uri: str) -> Decision | None:
        """The decision by which the caller may not read this resource; None where it may."""
        return self._reading.hidden(caller, source, "resources/read", {"uri": uri})

    async def complete(self, visit: Visit, params: dict[str, Any]) -> bytes:
        ref = params.get("ref")
        if not isinstance(ref, dict):
            raise RpcError(INVALID_PARAMS, "Invalid params: ref must say what is to be completed")
        source: ContextSource | None
        if ref.get("type") == "ref/prompt":
            prompt = self.prompt(visit.caller, ref.get("name"))
            source, params = prompt.source, {**params, "ref": {**ref, "name": prompt.entry["name"]}}
            hidden = self._reading.hidden(visit.caller, source, "prompts/get", {"name": prompt.entry["name"]})
        else:
            source = self.owner(visit.caller, ref.get("uri"))
            hidden = self.hides(visit.caller, source, ref["uri"]) if source is not None else None
        if source is None:
            raise RpcError(INVALID_PARAMS, f"Unknown resource template: {str(ref.get('uri'))[:200]}")
        if hidden is not None:
            raise denied(hidden, visit.revision)
        body = await self.forward(visit, source, "completion/complete", params)
        return render.cleaned(body, visit.revision)

    async def forward(
        self, visit: Visit, source: ContextSource, method: str, params: Mapping[str, Json]
    ) -> bytes:
        deadline = self._clock.monotonic() + SECONDS
        try:
            return await source.forward(method, params, visit, deadline)
        except UpstreamError as error:
            raise render.upstream_error(error, visit.revision) from None
        except GatewayError as error:
            raise RpcError(INTERNAL_ERROR, error.message, error.as_dict()) from None


def templates(source: ContextSource) -> Sequence[str]:
    found = (entry.get("uriTemplate") for entry in source.offers("resourceTemplates"))
    return [template for template in found if isinstance(template, str)]
