"""A whole OpenAPI document into the text of a tool file, and the service that it belongs to."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from agent_gate.config.files.variables import variable
from agent_gate.config.files.yamledit import flow
from agent_gate.config.openapi.document import OpenApiDocument, Unusable, items, words
from agent_gate.config.openapi.tool import ToolDraft, draft_tool, snake
from agent_gate.config.services.requests import FIELD_NAME

NAMELESS = "mcp"
HEALTHY = re.compile(r"(?i)health|status|ping|ready|alive|version")
ORDER = ("type", "required", "description", "enum", "validate", "items", "properties", "secret", "text")


@dataclass(frozen=True, slots=True)
class ToolFile:
    """The file's text, the service for `config.yaml`, and what an operator has to know of both."""

    text: str
    service: Mapping[str, Any]
    tools: Mapping[str, Mapping[str, Any]]
    left_out: Mapping[str, str]
    dropped: Mapping[str, Sequence[str]]
    variables: tuple[str, ...]


def service_name(document: OpenApiDocument) -> str:
    """A name for the service, from the document's title."""
    name = snake(words(document.info.get("title")))
    for word in "_api", "_openapi", "_swagger", "_specification", "_spec", "_rest":
        name = name.removesuffix(word)
    return name[:32].strip("_") if name[:1].isalpha() else NAMELESS


def make(document: OpenApiDocument, service: str, file: str, only: Sequence[str] = ()) -> ToolFile:
    """The tools of all operations, or of those that one of the patterns in `only` names."""
    found: dict[str, ToolDraft] = {}
    left_out: dict[str, str] = {}
    for title, node, whole in document.operations(left_out):
        if only and not any(fnmatchcase(name, pattern) for name in names(title, node) for pattern in only):
            continue
        try:
            draft = draft_tool(document, document.operation(title, node, whole), snake(service))
        except Unusable as error:
            left_out[title] = str(error)
            continue
        found[unused(draft.name, found)] = draft
    tools = {name: draft.tool for name, draft in found.items()}
    settings, variables = service_settings(document, service, file)
    settings |= health_of(tools)
    return ToolFile(
        text="\n".join([*head(document, left_out), "tools:", *body(tools)]) + "\n",
        service=settings,
        tools=tools,
        left_out=left_out,
        dropped={name: draft.dropped for name, draft in found.items() if draft.dropped},
        variables=variables,
    )


def names(title: str, node: Mapping[str, Any]) -> Iterable[str]:
    """What a pattern may name an operation by: method and path, the path alone, its own name, its tags."""
    return (
        title,
        title.partition(" ")[2],
        str(node.get("operationId", "")),
        *map(str, items(node.get("tags"))),
    )


def unused(name: str, taken: Mapping[str, Any]) -> str:
    number, found = 2, name
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found


def head(document: OpenApiDocument, left_out: Mapping[str, str]) -> list[str]:
    title = words(document.info.get("title")) or "an HTTP API"
    lines = [
        f"# Tools of {title} {words(document.info.get('version'))}".rstrip(),
        "# made from its OpenAPI document. Look through it before you allow anything:",
        "# GET was taken for read-only, DELETE for destructive, and the descriptions are what agents read.",
    ]
    if left_out:
        lines += [
            "#",
            "# Left out:",
            *(f"#   {words(title)}: {words(why)}" for title, why in left_out.items()),
        ]
    return lines


def body(tools: Mapping[str, Mapping[str, Any]]) -> list[str]:
    lines: list[str] = []
    for name, tool in tools.items():
        lines.append(f"  {flow(name)}:")
        for key, value in tool.items():
            if key == "args":
                lines.append("    args:")
                lines += [f"      {flow(arg)}: {flow(tidy(said))}" for arg, said in value.items()]
            else:
                lines.append(f"    {key}: {flow(value)}")
        lines.append("")
    return lines[:-1] or ["  {}"]


def tidy(said: Mapping[str, Any]) -> dict[str, Any]:
    """An argument with its keys in one order and without what is the default anyway."""
    found = {key: said[key] for key in ORDER if key in said and (key, said[key]) != ("type", "string")}
    if "items" in found:
        found["items"] = tidy(found["items"])
    if "properties" in found:
        found["properties"] = {name: tidy(each) for name, each in found["properties"].items()}
    return found


def service_settings(
    document: OpenApiDocument, service: str, file: str
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The entry under `services`, with its credential as variables."""
    settings: dict[str, Any] = {"url": document.address()}
    prefix = variable(service)
    for scheme in document.schemes():
        if auth := auth_of(scheme, prefix):
            settings["auth"] = auth
            break
    settings["tools"] = file
    given = [value for value in settings.get("auth", {}).values() if value.startswith("${")]
    return settings, tuple(value[2:-1] for value in given)


def health_of(tools: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """A request that shows whether the service is well: one that only reads and needs nothing, best one made for it."""
    paths = [tool["request"]["path"] for tool in tools.values() if reads_without_arguments(tool)]
    if not paths:
        return {}
    best = min(paths, key=lambda path: (HEALTHY.search(path) is None, path.count("/"), len(path)))
    return {"health": {"path": best}}


def reads_without_arguments(tool: Mapping[str, Any]) -> bool:
    request = tool["request"]
    needed = any(arg.get("required") for arg in tool.get("args", {}).values())
    return request["method"] == "GET" and "{" not in request["path"] and not needed


def auth_of(scheme: Mapping[str, Any], prefix: str) -> dict[str, str] | None:
    """How the gateway proves itself; None where the kind is not known here."""
    kind, token = scheme.get("type"), f"${{{prefix}_TOKEN}}"
    name = str(scheme.get("name"))
    if kind == "basic" or (kind == "http" and str(scheme.get("scheme")).lower() == "basic"):
        return {"type": "basic", "username": f"${{{prefix}_USER}}", "password": f"${{{prefix}_PASSWORD}}"}
    if kind in ("http", "oauth2", "openIdConnect"):
        return {"type": "bearer", "token": token}
    if kind == "apiKey" and scheme.get("in") == "header" and FIELD_NAME.fullmatch(name):
        return {"type": "header", "header_name": name, "token": token}
    if kind == "apiKey" and scheme.get("in") == "query":
        return {"type": "query", "query_param": words(name), "token": token}
    return None
