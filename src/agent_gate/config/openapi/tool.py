"""One operation of an OpenAPI document into one tool of a tool file."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from agent_gate.config.openapi.arguments import SCALARS, Arguments, FileArgument, described, shortened
from agent_gate.config.openapi.document import OpenApiDocument, Operation, Parameter, Unusable, words
from agent_gate.config.services.requests import FIELD_NAME, FRAMING, TARGET
from agent_gate.config.services.settings import BODILESS
from agent_gate.core.signature import PLACEHOLDER, placeholders

SAFE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
OURS = frozenset({"accept", "authorization", "content-type"}) | FRAMING
LONGEST = 500
LONGEST_NAME = 64
JOINED = "several are separated by commas"


class ToolDraft(NamedTuple):
    """A tool on its way into the file, and what it could not take along."""

    name: str
    tool: dict[str, Any]
    dropped: list[str]


def snake(text: str) -> str:
    """`getPetById` and `/pet/{petId}` as `get_pet_by_id` and `pet_pet_id`."""
    text = re.sub(r"([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])", r"\1\3_\2\4", text)
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def tool_name(operation: Operation, prefix: str) -> str:
    """The operation's own name, else its method and path, after the service's."""
    named = operation.node.get("operationId")
    plain = snake(named if isinstance(named, str) else operation.title)
    # Some frameworks write path and method behind the name.
    plain = plain.removesuffix("_" + snake(f"{operation.path} {operation.method}"))
    name = plain if plain == prefix or plain.startswith(f"{prefix}_") else f"{prefix}_{plain}"
    return name[:LONGEST_NAME].rstrip("_")


def summary(node: Mapping[str, Any], title: str) -> str:
    """What it does, in a sentence or two."""
    short, long = words(node.get("summary")).rstrip("."), words(node.get("description"))
    text = f"{short}. {long}" if short and long and not long.startswith(short) else long or short or title
    return shortened(text, LONGEST)


class RequestDraft:
    """Places the arguments of one operation: in the path, the query, the headers or the body."""

    def __init__(self, operation: Operation, arguments: Arguments) -> None:
        self._operation, self._arguments = operation, arguments
        self.args: dict[str, dict[str, Any]] = {}
        self.path = operation.path
        self.query: dict[str, str] = {}
        self.headers: dict[str, str] = {}
        self.body: str | None = None
        self.open = False
        self.outside: list[str] = []
        self.dropped: list[str] = []
        self._place_parameters()
        self._place_undeclared()
        self._check_path()
        named = dict.fromkeys(placeholders(self.path))
        self.signed = [name for name in named if not self.args[name].get("secret")]
        self._place_body()
        self._forget_echoes()

    def _place_parameters(self) -> None:
        places = {"path": self._put_in_path, "query": self._put_in_query, "header": self._put_in_header}
        for parameter in self._operation.parameters:
            place = places.get(parameter.place)
            try:
                if place is None:
                    raise Unusable(f"{parameter.name} stands in a {parameter.place}")
                place(parameter)
            except Unusable as error:
                if parameter.required:
                    raise
                self.dropped.append(str(error))

    def _read(self, parameter: Parameter, *, text: bool) -> FileArgument:
        return self._arguments.read(
            parameter.schema, required=parameter.required, description=parameter.description, text=text
        )

    def _add(self, parameter: Parameter, argument: FileArgument) -> str:
        """Its name among the arguments, which every client takes."""
        name = parameter.name
        if not SAFE.fullmatch(name):
            name = snake(name) or "value"
        while name in self.args:
            name = f"{name}_{parameter.place}"
        self.args[name] = argument.said
        self.outside.append(name)
        return name

    def _forget_echoes(self) -> None:
        """Some frameworks describe an argument by its name, which an agent has read already."""
        for name, said in self.args.items():
            if snake(said.get("description", "")) == snake(name):
                del said["description"]

    def _put_in_path(self, parameter: Parameter) -> None:
        argument = self._read(parameter, text=False)
        if argument.type not in SCALARS:
            raise Unusable(f"{parameter.name} in its path is an {argument.type}")
        argument.said["required"] = True
        name = self._add(parameter, argument)
        self.path = self.path.replace(f"{{{parameter.name}}}", f"{{{name}}}")

    def _put_in_query(self, parameter: Parameter) -> None:
        argument = self._read(parameter, text=True)
        if argument.type == "array" and parameter.joined:
            joined = described(f"{parameter.description} ({JOINED})".strip(), {})
            text = {"type": "string", "description": joined, "text": True}
            argument = FileArgument({**text, **({"required": True} if parameter.required else {})}, free=True)
        bodiless = self._operation.method in BODILESS
        if argument.type == "object" or (
            argument.type == "array" and not (bodiless and SAFE.fullmatch(parameter.name))
        ):
            raise Unusable(f"{parameter.name} in its query is an {argument.type}")
        name = self._add(parameter, argument)
        if not bodiless or name != parameter.name:
            self.query[parameter.name] = f"{{{name}}}"

    def _put_in_header(self, parameter: Parameter) -> None:
        if parameter.name.lower() in OURS:
            return
        argument = self._read(parameter, text=False)
        if argument.type not in SCALARS or not FIELD_NAME.fullmatch(parameter.name):
            raise Unusable(f"{parameter.name} cannot stand in a header")
        self.headers[parameter.name] = f"{{{self._add(parameter, argument)}}}"

    def _place_undeclared(self) -> None:
        """What the path names and nothing describes."""
        for name in placeholders(self.path):
            if name not in self.args:
                if not SAFE.fullmatch(name):
                    raise Unusable(f"its path has a part called {name[:40]!r}")
                self.args[name] = {"type": "string", "required": True}
                self.outside.append(name)

    def _check_path(self) -> None:
        literal = PLACEHOLDER.sub("", self.path)
        if not self.path.startswith("/") or not TARGET.fullmatch(literal) or "${" in self.path:
            raise Unusable("its path has a character that no address can have")
        if PLACEHOLDER.search(self.path.partition("?")[2]):
            raise Unusable("its path has a query of its own")

    def _place_body(self) -> None:
        schema, operation = self._operation.body, self._operation
        if schema is None:
            return
        if operation.method in BODILESS:
            if operation.body_required:
                raise Unusable(f"a {operation.method} with a body cannot be sent")
            self.dropped.append("its body, which is optional")
            return
        members = self._arguments.members(schema)
        named = members.schemas if members is not None else {}
        plain = all(SAFE.fullmatch(name) for name in named) and not named.keys() & self.args.keys()
        if operation.body_type == "text" or members is None or not plain:
            self._place_whole_body(required=operation.body_required)
            return
        self.open = members.open
        for name, each in named.items():
            self._place_member(name, each, required=name in members.required)

    def _place_member(self, name: str, schema: Any, *, required: bool) -> None:
        argument = self._arguments.read(schema, required=required)
        if self._operation.body_type == "form" and argument.type == "object":
            if required:
                raise Unusable(f"{name} in its form is an object")
            self.dropped.append(f"{name} in its form is an object")
            return
        self.args[name] = argument.said

    def _place_whole_body(self, *, required: bool) -> None:
        if self._operation.body_type == "form":
            raise Unusable("its form has fields that no arguments can be")
        name = "body"
        while name in self.args:
            name = f"request_{name}"
        self.args[name] = self._arguments.read(self._operation.body, required=required).said
        self.body = f"{{{name}}}"

    def said(self) -> dict[str, Any]:
        request: dict[str, Any] = {"method": self._operation.method, "path": self.path}
        if self.query:
            request["query"] = self.query
        if self.headers:
            request["headers"] = self.headers
        if self.body is not None:
            request["body"] = self.body
        elif self._operation.method not in BODILESS and self.outside:
            request["body_exclude"] = self.outside
        bodied = self._operation.body is not None and self._operation.method not in BODILESS
        if bodied and self._operation.body_type != "json":
            request["body_type"] = self._operation.body_type
        return request


def traits(method: str) -> Iterator[tuple[str, bool]]:
    """What HTTP promises of a method."""
    if method == "GET":
        yield "read_only", True
    if method in ("GET", "PUT", "DELETE"):
        yield "idempotent", True
    if method == "DELETE":
        yield "destructive", True


def draft_tool(document: OpenApiDocument, operation: Operation, prefix: str) -> ToolDraft:
    """The tool that calls one operation; `Unusable` where none can."""
    request = RequestDraft(operation, Arguments(document))
    tool: dict[str, Any] = {"description": summary(operation.node, operation.title)}
    if request.signed:
        tool["signature"] = ", ".join(f"{{{name}}}" for name in request.signed)
    if request.args:
        tool["args"] = request.args
    tool["request"] = request.said()
    if operation.answer != "json":
        tool["response"] = {"type": operation.answer}
    if operation.method not in BODILESS and request.body is None:
        tool["additional_args"] = request.open
    tool.update(traits(operation.method))
    return ToolDraft(tool_name(operation, prefix), tool, request.dropped)
