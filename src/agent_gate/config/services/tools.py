"""Tool files and inline `tools:` mappings into `ToolDefinition`s, with every template and expression checked."""

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from agent_gate.config.decode import Reading, beside, decode, existing
from agent_gate.config.files.nodes import Mark, Node, entries, fail, items, join, read_each
from agent_gate.config.files.yamlfile import read_yaml
from agent_gate.config.services.definition import anchored, arg_schema
from agent_gate.config.services.requests import check_headers, check_target
from agent_gate.config.services.settings import BODILESS, ArgDefinition, RequestDefinition, ToolDefinition
from agent_gate.core.ids import NAME
from agent_gate.core.schema import compile_schema
from agent_gate.core.signature import placeholders
from agent_gate.core.validate import forbidden_argument
from agent_gate.errors import CatalogError

MAX_PATTERN = 1024
FORM = re.compile(r"\s*(application/x-www-form-urlencoded|multipart/)", re.IGNORECASE)
SCALAR_TYPES = ("string", "integer", "number", "boolean")


def read_tools(node: Node | None, service: str, path: str, reading: Reading) -> tuple[ToolDefinition, ...]:
    """The tools of a service: named files, or the mapping itself."""
    if node is None:
        return ()
    if isinstance(node.value, dict):
        return read_mapping(node, service, path, reading)
    named = items(node, path) if isinstance(node.value, list) else [node]
    found = read_each(enumerate(named), lambda _, each: read_tools_file(each, service, path, reading))
    return tuple(chain.from_iterable(found.values()))


def read_tools_file(node: Node, service: str, path: str, reading: Reading) -> tuple[ToolDefinition, ...]:
    if not isinstance(node.value, str):
        fail(node.mark, path, f"expected the name of a file, found {node.kind}")
    file = existing(node.mark, beside(node.mark, Path(node.value)), path, reading, "tool file")
    return load_tools_file(file, service, reading)


def load_tools_file(file: Path, service: str, reading: Reading) -> tuple[ToolDefinition, ...]:
    """Every tool of one file. A file without any is a warning, because its service then offers nothing."""
    root = reading.variables.fill(reading.open(file, read_yaml))
    for key in entries(root, ""):
        if key != "tools":
            fail(root.key_mark(key), key, 'unknown key, a tool file has only "tools"')
    tools = root.get("tools")
    if tools is None or not entries(tools, "tools"):
        reading.warn(Mark(str(file)), "", f"no tools are defined, so {service} offers none")
        return ()
    return read_mapping(tools, service, "tools", reading)


def read_mapping(node: Node, service: str, path: str, reading: Reading) -> tuple[ToolDefinition, ...]:
    found = read_each(
        entries(node, path).items(),
        lambda name, item: read_tool(item, name, node.key_mark(name), service, join(path, name), reading),
    )
    return tuple(found.values())


def read_tool(node: Node, name: str, mark: Mark, service: str, path: str, reading: Reading) -> ToolDefinition:
    if not NAME.fullmatch(name):
        fail(mark, path, "a tool name has letters, digits, _ . - and starts with a letter or _")
    args = read_args(node.get("args"), join(path, "args"), reading)
    tool = decode(
        node, ToolDefinition, path, reading, name=name, service_name=service, args=args, where=str(mark)
    )
    check_templates(tool, node, path)
    check_characters(tool, node.get("args"), join(path, "args"))
    warn_of_unsent(tool, node.get("args"), join(path, "args"), reading)
    if tool.record == "behind" and not tool.traits.read_only:
        fail(node.key_mark("record"), join(path, "record"), "behind is only for tools with read_only: true")
    if tool.response is not None and tool.response.type == "file" and tool.response.wrap is not None:
        fail(node.key_mark("response"), join(path, "response.wrap"), "a file cannot be wrapped")
    if tool.traits.read_only and tool.traits.destructive:
        fail(node.key_mark("destructive"), path, "a tool cannot be read_only and destructive")
    return tool


def read_args(node: Node | None, path: str, reading: Reading) -> dict[str, ArgDefinition]:
    if node is None:
        return {}
    return read_each(entries(node, path).items(), lambda key, item: read_arg(item, join(path, key), reading))


def read_arg(node: Node, path: str, reading: Reading) -> ArgDefinition:
    inner = node.get("items")
    members = node.get("properties")
    parts: dict[str, Any] = {
        "items": read_arg(inner, join(path, "items"), reading) if inner else None,
        "properties": read_args(members, join(path, "properties"), reading) if members else None,
    }
    arg = decode(node, ArgDefinition, path, reading, **parts)
    if any(part.text for part in (parts["items"], *(parts["properties"] or {}).values()) if part is not None):
        fail(node.mark, path, "a part cannot be free text by itself; say text: true of the whole argument")
    check_arg(arg, node, path)
    return arg


def check_arg(arg: ArgDefinition, node: Node, path: str) -> None:
    if arg.validate is not None:
        if arg.type != "string":
            fail(node.key_mark("validate"), join(path, "validate"), f"only text can match, not {arg.type}")
        check_pattern(arg.validate, node.get("validate") or node, join(path, "validate"))
    for key, owner in (("items", "array"), ("properties", "object")):
        if node.get(key) is not None and arg.type != owner:
            fail(node.key_mark(key), join(path, key), f"only for type: {owner}")
    if arg.default is not None and arg.required:
        fail(node.key_mark("default"), join(path, "default"), "a required argument has no default")
    check_values(arg, node, path)


def check_values(arg: ArgDefinition, node: Node, path: str) -> None:
    """A value that no call may have is a mistake here, not one of every agent that leaves the argument out."""
    if arg.enum == ():
        fail(node.key_mark("enum"), join(path, "enum"), "without any value no call could have it")
    if arg.enum is not None:
        free = replace(arg, enum=None, default=None)
        fits = compile_schema(arg_schema(free)).is_valid
        for i, value in enumerate(arg.enum):
            if not fits(value):
                fail(node.key_mark("enum"), join(join(path, "enum"), i), unfit(free))
    if arg.default is not None and not compile_schema(arg_schema(arg)).is_valid(arg.default):
        fail(node.key_mark("default"), join(path, "default"), unfit(arg))


def unfit(arg: ArgDefinition) -> str:
    others = [key for key in ("validate", "enum", "items", "properties") if getattr(arg, key) is not None]
    return f"a call could not have this value; it must fit {' and '.join([f'type: {arg.type}', *others])}"


def check_characters(tool: ToolDefinition, node: Node | None, path: str) -> None:
    """What only free text may hold cannot be the value that an agent is told to give."""
    for name, item in entries(node or Node({}, Mark("")), path).items():
        arg = tool.args[name]
        for key, value in ("enum", list(arg.enum or ())), ("default", arg.default):
            if not arg.text and forbidden_argument({name: value}, frozenset()):
                fail(
                    item.key_mark(key),
                    join(join(path, name), key),
                    "has one of * ? [ ] ( ) , or a control character, which only text: true may hold",
                )


def check_pattern(pattern: str, node: Node, path: str) -> None:
    """Refuse what the linear-time engine cannot run, so that no value can make matching slow."""
    if len(pattern) > MAX_PATTERN:
        fail(node.mark, path, f"the expression is longer than {MAX_PATTERN} characters")
    if not runs_in_linear_time(pattern):
        fail(
            node.mark,
            path,
            "not a regular expression that runs in linear time (look-around and back-references do not)",
        )


def runs_in_linear_time(pattern: str) -> bool:
    try:
        # Alone first: only a balanced expression stays inside the group that anchors it.
        compile_schema({"pattern": pattern}, linear_only=True)
        compile_schema({"pattern": anchored(pattern)}, linear_only=True)
    except CatalogError:
        return False
    return len(pattern) <= MAX_PATTERN


def check_templates(tool: ToolDefinition, node: Node, path: str) -> None:
    """Every `{placeholder}` names a declared argument of a kind that the template can hold."""
    signature, request = node.get("signature"), node.get("request")
    if signature is not None:
        check_template(signature, join(path, "signature"), tool, text=False)
        for name in placeholders(str(signature.value)):
            if tool.args[name].secret:
                fail(
                    signature.mark, join(path, "signature"), f"{{{name}}} is secret, and signatures are shown"
                )
    if (ask := node.get("ask")) is not None:
        check_template(ask, join(path, "ask"), tool, text=True)
    if request is not None:
        check_request(request, join(path, "request"), tool)


def check_request(node: Node, path: str, tool: ToolDefinition) -> None:
    where = node.get("path")
    if where is not None:
        check_template(where, join(path, "path"), tool, text=False)
        check_target(where, join(path, "path"))
    for key in "query", "headers":
        for name, item in entries(node.get(key) or Node({}, node.mark), join(path, key)).items():
            check_template(item, join(join(path, key), name), tool, text=key == "query")
    check_headers(node.get("headers"), join(path, "headers"))
    if tool.request is not None:
        check_body_type(node, path, tool.request)
    body = node.get("body")
    if body is not None:
        check_body(body, join(path, "body"), tool)
        if tool.request is not None and tool.request.method in BODILESS:
            fail(node.key_mark("body"), join(path, "body"), f"{tool.request.method} has no body; use query")
        if tool.request is not None and tool.request.body_exclude:
            fail(node.key_mark("body"), join(path, "body"), "either body or body_exclude, not both")
        if tool.additional_args:
            fail(
                node.key_mark("body"), join(path, "body"), "additional_args have no place in a body template"
            )
    for i, item in enumerate(items(node.get("body_exclude") or Node([], node.mark), path)):
        if item.value not in tool.args:
            fail(item.mark, join(join(path, "body_exclude"), i), "names no declared argument")


def check_body_type(node: Node, path: str, request: RequestDefinition) -> None:
    """What the service is told of the body must be what it gets."""
    here = node.key_mark("body_type"), join(path, "body_type")
    if node.get("body_type") is not None and request.method in BODILESS:
        fail(*here, f"{request.method} has no body; use query")
    if request.body_type == "text" and not isinstance(request.body, str):
        fail(*here, "text needs a `body` that is a text, such as {message}")
    if request.body_type == "form" and not isinstance(request.body, Mapping | None):
        fail(*here, "form needs a `body` that is a mapping of fields, or none")
    headers = {name.lower(): value for name, value in request.headers.items()}
    if request.body_type == "json" and FORM.match(headers.get("content-type", "")):
        fail(
            (node.get("headers") or node).mark,
            join(path, "headers"),
            "the body is JSON whatever Content-Type says; body_type: form sends fields, "
            "and uploads in parts need a Python plugin",
        )


def check_body(node: Node, path: str, tool: ToolDefinition) -> None:
    """In a body a text that is one placeholder stands for the argument of any type; others hold scalars."""
    if isinstance(node.value, dict):
        for key, item in node.value.items():
            check_body(item, join(path, key), tool)
    elif isinstance(node.value, list):
        for i, item in enumerate(node.value):
            check_body(item, join(path, i), tool)
    elif isinstance(node.value, str):
        names = placeholders(node.value)
        whole = len(names) == 1 and node.value == f"{{{names[0]}}}"
        check_template(node, path, tool, text=True, any_type=whole)


def warn_of_unsent(tool: ToolDefinition, node: Node | None, path: str, reading: Reading) -> None:
    """Beside a body template, an argument that nothing names would be asked for and then dropped."""
    if tool.request is None or tool.request.body is None or node is None:
        return
    named = set(placeholders(f"{tool.signature} {tool.ask} {tool.request}"))
    for name in tool.args:
        if name not in named:
            reading.warn(node.key_mark(name), join(path, name), "no template names it, so it is not sent")


def check_template(
    node: Node, path: str, tool: ToolDefinition, *, text: bool, any_type: bool = False
) -> None:
    template = str(node.value)
    for name in placeholders(template):
        arg = tool.args.get(name)
        if arg is None:
            fail(node.mark, path, f"{{{name}}} names no declared argument")
        if arg.type not in SCALAR_TYPES and not any_type:
            fail(node.mark, path, f"{{{name}}} is of type {arg.type}, which cannot stand in text")
        if arg.text and not text:
            fail(node.mark, path, f"{{{name}}} is free text (text: true) and cannot be used here")
    check_braces(node, path)


def check_braces(node: Node, path: str) -> None:
    rest = str(node.value)
    for name in placeholders(rest):
        rest = rest.replace(f"{{{name}}}", "", 1)
    if "{" in rest or "}" in rest:
        fail(node.mark, path, "a brace without its partner; a placeholder is {argument}")
