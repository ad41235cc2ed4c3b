"""An OpenAPI document of any version: its references followed, and 2.0 put into the words of 3."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin

import msgspec

from agent_gate.config.files.yamlfile import parse_yaml
from agent_gate.errors import ConfigError

METHODS = ("get", "post", "put", "patch", "delete")
MOST_HOPS = 32
LONGEST_YAML = 1 << 20
FORM = "application/x-www-form-urlencoded"
JSON_TYPE = r"(application|text)/([\w.-]+\+)?json\b|\*/\*|application/\*"
BODIES = {"json": JSON_TYPE, "form": re.escape(FORM), "text": r"text/plain"}
ANSWERS = {"json": JSON_TYPE, "text": r"text/|[\w.-]+/([\w.-]+\+)?(xml|yaml|javascript|x-ndjson)\b"}
INLINE = frozenset(
    {"type", "format", "items", "enum", "default", "pattern", "minimum", "maximum", "description"}
)
LINK = re.compile(r"\[([^\[\]]{1,200})\]\([^()]{1,500}\)")
Schema = Mapping[str, Any]


def is_upload(kind: str) -> bool:
    """Whether there is nothing to do without the body, even where the document does not say that it is required."""
    return kind.startswith("multipart/") or kind == "application/octet-stream"


class Unusable(Exception):
    """Something that no tool can be made of, with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One value of a request outside its body. `joined`: a list is sent as one text."""

    name: str
    place: str
    required: bool
    description: str
    schema: Schema
    joined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path. `body` is the schema of its body, if it takes one; `body_type` and `answer` are what
    a tool file calls what is sent and what comes back."""

    method: str
    path: str
    node: Mapping[str, Any]
    parameters: tuple[Parameter, ...] = ()
    body: Schema | None = None
    body_required: bool = False
    body_type: str = "json"
    answer: str = "json"

    @property
    def title(self) -> str:
        return f"{self.method} {self.path}"


class Body(NamedTuple):
    schema: Schema | None
    required: bool
    type: str


NO_BODY = Body(None, required=False, type="json")


def found_in(kinds: Iterable[str], known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each media type that a pattern knows, with the name of that pattern, in the order of the patterns."""
    for name, pattern in known.items():
        yield from ((kind, name) for kind in kinds if re.match(pattern, kind, re.IGNORECASE))


def inline(one: Mapping[str, Any]) -> Schema:
    """The schema of a parameter that version 2.0 writes beside its name."""
    return {key: value for key, value in one.items() if key in INLINE}


def texts(value: Any) -> list[str]:
    return [str(each) for each in items(value)]


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def step(value: Any, key: str) -> Any:
    """One step of a reference, into a mapping or a list."""
    if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
        return value[int(key)]
    return mapping(value).get(key)


def words(value: Any) -> str:
    """A text on one line, without the addresses of its links and characters that do not print."""
    text = LINK.sub(r"\1", " ".join(value.split())) if isinstance(value, str) else ""
    # A reader of the file would take this for a variable.
    return "".join(filter(str.isprintable, text)).replace("${", "$ {")


def read_document(text: str, name: str) -> "OpenApiDocument":
    """The document in `text`, JSON or YAML; `ConfigError` where it is none."""
    try:
        root = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        if len(text) > LONGEST_YAML:
            raise ConfigError(
                "a document of this size must be JSON; convert it from YAML", where=name
            ) from None
        root = parse_yaml(text, name).plain()
    root = mapping(root)
    if not str(root.get("openapi", "")).startswith("3.") and str(root.get("swagger", "")) != "2.0":
        raise ConfigError(
            "this is no OpenAPI document: it says neither openapi: 3 nor swagger: 2.0", where=name
        )
    return OpenApiDocument(root, name)


@dataclass(frozen=True, slots=True)
class OpenApiDocument:
    root: Mapping[str, Any]
    name: str
    _seen: dict[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)

    @property
    def info(self) -> Mapping[str, Any]:
        return mapping(self.root.get("info"))

    @property
    def old(self) -> bool:
        """Whether it is of version 2.0."""
        return "swagger" in self.root

    def follow(self, value: Any) -> Mapping[str, Any]:
        """What `value` says, or what it refers to; what stands beside a reference wins."""
        found = mapping(value)
        for _ in range(MOST_HOPS):
            if not isinstance(where := found.get("$ref"), str):
                return found
            beside = {key: item for key, item in found.items() if key != "$ref"}
            found = {**self._target(where), **beside}
        raise Unusable("its references go round in a circle")

    def _target(self, where: str) -> Mapping[str, Any]:
        if where not in self._seen:
            if not where.startswith("#/"):
                raise Unusable(f"it refers to another document, {where[:80]}")
            found: Any = self.root
            for part in where[2:].split("/"):
                found = step(found, unquote(part).replace("~1", "/").replace("~0", "~"))
            if not isinstance(found, Mapping):
                raise Unusable(f"it refers to {where[:80]}, which is not there")
            self._seen[where] = found
        return self._seen[where]

    def operations(
        self, left_out: dict[str, str]
    ) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
        """Method and path of each operation, with what is said of it and of its whole path."""
        for path, item in mapping(self.root.get("paths")).items():
            try:
                whole = self.follow(item)
            except Unusable as error:
                left_out[path] = str(error)
                continue
            for method in METHODS:
                if isinstance(whole.get(method), Mapping):
                    yield f"{method.upper()} {path}", whole[method], whole

    def operation(self, title: str, node: Mapping[str, Any], whole: Mapping[str, Any]) -> Operation:
        """An operation with everything it takes; `Unusable` where no tool could call it."""
        method, _, path = title.partition(" ")
        said: dict[tuple[str, str], Mapping[str, Any]] = {}
        for each in (*items(whole.get("parameters")), *items(node.get("parameters"))):
            one = self.follow(each)
            said[str(one.get("in")), str(one.get("name"))] = one
        # Who asks is the gateway's to say, never an agent's.
        for place, name in list(said):
            if (place, name.lower()) in self.credentials():
                del said[place, name]
        body, required, body_type = self._body(node, list(said.values()))
        return Operation(
            method=method,
            path=path,
            node=node,
            parameters=tuple(
                self._parameter(one) for one in said.values() if one.get("in") not in ("body", "formData")
            ),
            body=body,
            body_required=required,
            body_type=body_type,
            answer=self._answer(node),
        )

    def _parameter(self, one: Mapping[str, Any]) -> Parameter:
        schema = inline(one) if self.old else one.get("schema")
        joined = one.get("explode") is False or one.get("style") in (
            "simple",
            "spaceDelimited",
            "pipeDelimited",
        )
        if self.old:
            joined = one.get("collectionFormat", "csv") != "multi"
        return Parameter(
            name=str(one.get("name")),
            place=str(one.get("in")),
            required=one.get("required") is True,
            description=words(one.get("description")),
            schema=self.follow(schema) if schema is not None else {},
            joined=joined,
        )

    def _body(self, node: Mapping[str, Any], said: list[Mapping[str, Any]]) -> Body:
        if self.old:
            return self._old_body(node, said)
        body = self.follow(node.get("requestBody"))
        content = mapping(body.get("content"))
        required = body.get("required") is True
        for kind, body_type in found_in(content, BODIES):
            return Body(self.follow(mapping(content[kind]).get("schema")), required, body_type)
        if required or any(map(is_upload, content)):
            raise Unusable(f"its body is {next(iter(content), 'of no type')}, which no tool can send")
        return NO_BODY

    def _old_body(self, node: Mapping[str, Any], said: list[Mapping[str, Any]]) -> Body:
        kinds = texts(node.get("consumes")) or texts(self.root.get("consumes"))
        for one in said:
            if one.get("in") == "body":
                for _, body_type in found_in(kinds or ["application/json"], BODIES):
                    return Body(self.follow(one.get("schema")), one.get("required") is True, body_type)
                raise Unusable(f"its body is {kinds[0]}, which no tool can send")
        fields = [one for one in said if one.get("in") == "formData"]
        if not fields:
            return NO_BODY
        if (kinds and FORM not in kinds) or any(one.get("type") == "file" for one in fields):
            raise Unusable("its body is an upload, which no tool can send")
        members = {str(one.get("name")): inline(one) for one in fields}
        needed = [str(one.get("name")) for one in fields if one.get("required") is True]
        return Body({"type": "object", "properties": members, "required": needed}, bool(needed), "form")

    def _answer(self, node: Mapping[str, Any]) -> str:
        """What its success is described as; JSON where nothing is said."""
        kinds: list[str] = []
        for status, answer in mapping(node.get("responses")).items():
            if str(status).startswith("2"):
                kinds += mapping(self.follow(answer).get("content"))
        if self.old:
            kinds = texts(node.get("produces")) or texts(self.root.get("produces"))
        return next((answer for _, answer in found_in(kinds, ANSWERS)), "file" if kinds else "json")

    def address(self) -> str:
        """Where the service is; a relative address counts from where the document came from."""
        if self.old:
            schemes = items(self.root.get("schemes"))
            scheme = "https" if not schemes or "https" in schemes else str(schemes[0])
            host = self.root.get("host")
            address = f"{scheme}://{host}" if host else ""
            address += str(self.root.get("basePath", "/"))
        else:
            server = mapping(next(iter(items(self.root.get("servers"))), {}))
            address = str(server.get("url", "/"))
            for key, variable in mapping(server.get("variables")).items():
                address = address.replace(f"{{{key}}}", str(mapping(variable).get("default", "")))
        here = self.name if self.name.startswith(("http://", "https://")) else ""
        return urljoin(here, address).rstrip("/")

    def credentials(self) -> frozenset[tuple[str, str]]:
        """Where keys stand in requests, and under which name in small letters."""
        keys = (scheme for scheme in self.schemes() if scheme.get("type") == "apiKey")
        return frozenset((str(key.get("in")), str(key.get("name")).lower()) for key in keys)

    def schemes(self) -> Iterator[Mapping[str, Any]]:
        """How the service wants to be told who asks, what it wants everywhere first."""
        defined = self.root.get("securityDefinitions")
        if not self.old:
            defined = mapping(self.root.get("components")).get("securitySchemes")
        known = mapping(defined)
        wanted = [name for one in items(self.root.get("security")) for name in mapping(one)]
        for name in dict.fromkeys((*wanted, *known)):
            with suppress(Unusable):
                yield self.follow(known.get(name))
