"""One call into the exact bytes of one HTTP request. Pure; what policy approved is what is sent.

Every path argument is one percent-encoded segment that cannot leave its place, and nothing rewrites the target
afterwards.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from agent_gate.config.services.settings import BODILESS, RequestDefinition, ToolDefinition
from agent_gate.core.call import encode
from agent_gate.core.confinement import stays_in_place
from agent_gate.core.credentials import Header, Proof
from agent_gate.core.tool import Json
from agent_gate.errors import InvalidArgs

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]|[^\x00-\xff]")


@dataclass(frozen=True, slots=True)
class HttpCall:
    """A request ready to be sent: `target` is the path and query below the service's own base path."""

    method: str
    target: bytes
    headers: tuple[Header, ...]
    body: bytes | None


def text(value: Json) -> str:
    """A scalar or structure as it stands in a path, query or header."""
    if isinstance(value, str):
        return value
    return encode(value).decode()


def encode_segment(value: str) -> str:
    return quote(value, safe="")


def path_of(template: str, arguments: Mapping[str, Json]) -> str:
    """Fill the template segment by segment, and the query that it may have."""
    path, mark, query = template.partition("?")
    segments = (segment_of(segment, arguments) for segment in path.split("/"))
    return "/".join(segments) + mark + encoded(query, arguments)


def segment_of(template: str, arguments: Mapping[str, Json]) -> str:
    """A segment that would be empty, or that somebody on the way could take for a step up, is refused."""
    names = PLACEHOLDER.findall(template)
    if not names:
        return template
    out = encoded(template, arguments)
    if not stays_in_place(out):
        raise InvalidArgs(f"Invalid value for {names[0]}")
    return out


def encoded(template: str, arguments: Mapping[str, Json]) -> str:
    for name in PLACEHOLDER.findall(template):
        if arguments.get(name) is None:
            raise InvalidArgs(f"Missing required argument: {name}")
    return PLACEHOLDER.sub(lambda found: encode_segment(text(arguments[found[1]])), template)


def filled(template: str, arguments: Mapping[str, Json]) -> str | None:
    """A query or header template; None when it names an argument that was left out."""
    if any(arguments.get(name) is None for name in PLACEHOLDER.findall(template)):
        return None
    return PLACEHOLDER.sub(lambda found: text(arguments[found[1]]), template)


def used_names(request: RequestDefinition) -> frozenset[str]:
    """The arguments that already have a place in path, query or headers."""
    templates = [request.path, *request.query.values(), *request.headers.values()]
    return frozenset(name for template in templates for name in PLACEHOLDER.findall(template))


def query_pairs(request: RequestDefinition, arguments: Mapping[str, Json]) -> Iterable[tuple[str, str]]:
    for name, template in request.query.items():
        value = filled(template, arguments)
        if value is not None:
            yield name, value
    if request.method in BODILESS:
        placed = used_names(request)
        yield from fields({name: value for name, value in arguments.items() if name not in placed})


def query_of(pairs: Iterable[tuple[str, str]]) -> str:
    return "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in pairs)


def header_value(name: str, value: str) -> bytes:
    if UNPRINTABLE.search(value):
        raise InvalidArgs(f"Invalid value for the header {name}: it must be printable")
    return value.encode("latin-1")


def headers_of(request: RequestDefinition, arguments: Mapping[str, Json]) -> Iterable[Header]:
    for name, template in request.headers.items():
        value = filled(template, arguments)
        if value is not None:
            yield name.lower().encode("ascii"), header_value(name, value)


CONTENT_TYPES = {
    "json": b"application/json",
    "form": b"application/x-www-form-urlencoded",
    "text": b"text/plain; charset=utf-8",
}


def body_of(request: RequestDefinition, arguments: Mapping[str, Json]) -> bytes | None:
    """The body: the template filled, or all arguments but those kept out of it."""
    if request.method in BODILESS:
        return None
    if request.body is not None:
        value = substituted(request.body, arguments)
    else:
        value = {name: value for name, value in arguments.items() if name not in request.body_exclude}
    if request.body_type == "json":
        return encode(value)
    if request.body_type == "form":
        return query_of(fields(value)).encode()
    return b"" if value is None else text(value).encode()


def fields(values: Mapping[str, Json]) -> Iterable[tuple[str, str]]:
    """Each value under its name, a list as often as it has items; what was left out is no field."""
    for name, value in values.items():
        items = value if isinstance(value, list) else [value]
        yield from ((name, text(item)) for item in items if item is not None)


def substituted(template: Any, arguments: Mapping[str, Json]) -> Any:
    """A body template with its arguments; a text that is one placeholder keeps the argument's type."""
    if isinstance(template, Mapping):
        filled_in = {key: substituted(value, arguments) for key, value in template.items()}
        return {key: value for key, value in filled_in.items() if value is not None or template[key] is None}
    if isinstance(template, list | tuple):
        return [substituted(item, arguments) for item in template]
    if not isinstance(template, str):
        return template
    whole = PLACEHOLDER.fullmatch(template)
    return arguments.get(whole[1]) if whole else filled(template, arguments)


def joined(path: str, query: str) -> bytes:
    """The path, which may have a query of its own, and what else goes there."""
    return (f"{path}{'&' if '?' in path else '?'}{query}" if query else path).encode("ascii")


def answers_json(tool: ToolDefinition) -> bool:
    return tool.response is None or tool.response.type == "json"


def build(tool: ToolDefinition, arguments: Mapping[str, Json], proof: Proof, key: str | None) -> HttpCall:
    """The request that one call of `tool` becomes. `key` is passed on as Idempotency-Key."""
    request = tool.request
    assert request is not None
    path = path_of(request.path, arguments)
    if path.count("/") != request.path.count("/"):
        raise InvalidArgs("The arguments would change the path that was approved")
    query = query_of([*query_pairs(request, arguments), *proof.query])
    body = body_of(request, arguments)
    own = dict(headers_of(request, arguments))
    headers: list[Header] = [*proof.headers, *own.items()]
    if b"accept" not in own:
        headers.append((b"accept", b"application/json" if answers_json(tool) else b"*/*"))
    if body is not None and b"content-type" not in own:
        headers.append((b"content-type", CONTENT_TYPES[request.body_type]))
    if key is not None and b"idempotency-key" not in own:
        headers.append((b"idempotency-key", header_value("Idempotency-Key", key)))
    return HttpCall(request.method, joined(path, query), tuple(headers), body)
