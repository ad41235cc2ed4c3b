"""An OpenAPI document of any version: its references followed, and 2.0 put into the words of 3."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urljoin

import msgspec

from agent_gate.config.yamlfile import parse_yaml
from agent_gate.errors import ConfigError

METHODS = ("get", "post", "put", "patch", "delete")
MOST_HOPS = 32
JSON_TYPE = re.compile(r"(application|text)/([\w.-]+\+)?json\b|\*/\*|application/\*", re.IGNORECASE)
INLINE = frozenset({"type", "format", "items", "enum", "default", "pattern", "minimum", "maximum"})
LINK = re.compile(r"\[([^\[\]]{1,200})\]\([^()]{1,500}\)")
Schema = Mapping[str, Any]


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
    """One method of one path. `body` is the schema of its JSON body, if it takes one."""

    method: str
    path: str
    node: Mapping[str, Any]
    parameters: tuple[Parameter, ...] = ()
    body: Schema | None = None
    body_required: bool = False

    @property
    def title(self) -> str:
        return f"{self.method} {self.path}"


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


def read_document(text: str, name: str) -> "Document":
    """The document in `text`, JSON or YAML; `ConfigError` where it is none."""
    try:
        root = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        root = parse_yaml(text, name).plain()
    root = mapping(root)
    if not str(root.get("openapi", "")).startswith("3.") and str(root.get("swagger", "")) != "2.0":
        raise ConfigError(
            "this is no OpenAPI document: it says neither openapi: 3 nor swagger: 2.0", where=name
        )
    return Document(root, name)


@dataclass(frozen=True, slots=True)
class Document:
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
        """An operation with everything it takes; `Unusable` where a call of it could not be sent as JSON over HTTP."""
        method, _, path = title.partition(" ")
        said: dict[tuple[str, str], Mapping[str, Any]] = {}
        for each in (*items(whole.get("parameters")), *items(node.get("parameters"))):
            one = self.follow(each)
            said[str(one.get("in")), str(one.get("name"))] = one
        # Who asks is the gateway's to say, never an agent's.
        for place, name in list(said):
            if (place, name.lower()) in self.credentials():
                del said[place, name]
        self._check_answer(node)
        body, required = self._body(node, list(said.values()))
        return Operation(
            method=method,
            path=path,
            node=node,
            parameters=tuple(
                self._parameter(one) for one in said.values() if one.get("in") not in ("body", "formData")
            ),
            body=body,
            body_required=required,
        )

    def _parameter(self, one: Mapping[str, Any]) -> Parameter:
        schema = one.get("schema")
        if self.old:
            schema = {key: value for key, value in one.items() if key in INLINE}
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

    def _body(self, node: Mapping[str, Any], said: list[Mapping[str, Any]]) -> tuple[Schema | None, bool]:
        if self.old:
            return self._old_body(node, said)
        body = self.follow(node.get("requestBody"))
        content = mapping(body.get("content"))
        if not content:
            return None, False
        spoken = [kind for kind in content if JSON_TYPE.match(kind)]
        if spoken:
            return self.follow(mapping(content[spoken[0]]).get("schema")), body.get("required") is True
        if body.get("required") is True:
            raise Unusable(f"its body is {next(iter(content))}, not JSON")
        return None, False

    def _old_body(self, node: Mapping[str, Any], said: list[Mapping[str, Any]]) -> tuple[Schema | None, bool]:
        if any(one.get("in") == "formData" and one.get("required") for one in said):
            raise Unusable("its body is a form, not JSON")
        kinds = items(node.get("consumes")) or items(self.root.get("consumes"))
        for one in said:
            if one.get("in") == "body":
                if kinds and not any(JSON_TYPE.match(str(kind)) for kind in kinds):
                    raise Unusable(f"its body is {kinds[0]}, not JSON")
                return self.follow(one.get("schema")), one.get("required") is True
        return None, False

    def _check_answer(self, node: Mapping[str, Any]) -> None:
        """An answer that is described, and never as JSON, could only be an error for the gateway."""
        kinds: list[str] = []
        for status, answer in mapping(node.get("responses")).items():
            if str(status).startswith("2"):
                kinds += mapping(self.follow(answer).get("content"))
        if self.old:
            kinds = [str(kind) for kind in items(node.get("produces")) or items(self.root.get("produces"))]
        if kinds and not any(JSON_TYPE.match(kind) for kind in kinds):
            raise Unusable(f"it answers {kinds[0]}, not JSON")

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
