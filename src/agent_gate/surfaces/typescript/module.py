"""Tools into one TypeScript module: the runtime, a type per tool, and `tools`, an object of servers of functions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import Any, NamedTuple

from agent_gate.core.tool import Tool
from agent_gate.errors import InvalidArgs
from agent_gate.surfaces.typescript.comments import doc
from agent_gate.surfaces.typescript.names import camel, distinct, pascal
from agent_gate.surfaces.typescript.types import declare

HEAD = """\
// Made by agent-gate from its catalog. Do not edit: ask for it again.
// Needs AGENT_GATE_URL (or TOOLSCRIPT_GATEWAY_URL) and AGENT_TOKEN in the environment.

"""
RUNTIME = Path(__file__).with_name("runtime.ts").read_text(encoding="utf-8")
UNTYPED = "unknown"


class ScriptServer(NamedTuple):
    """A source as a script sees it: `key` as configured, `namespace` as in tool ids."""

    namespace: str
    key: str


@dataclass(frozen=True, slots=True)
class Function:
    """One tool with the names it has in the module."""

    tool: Tool
    name: str
    type_name: str

    def declarations(self) -> str:
        output = self.tool.definition.output_schema
        params = declare(f"{self.type_name}Params", accepted(self.tool))
        return params + (declare(f"{self.type_name}Result", output) if output is not None else "")

    def property(self) -> str:
        typed = self.tool.definition.output_schema is not None
        result = f"{self.type_name}Result" if typed else UNTYPED
        mark = "?" if takes_nothing(self.tool) else ""
        call = f"{'callTool' if typed else 'callText'}({dumps(self.tool.wire)}, args, options)"
        return (
            doc(self.tool.description, "    ")
            + f"    {self.name}: (args{mark}: {self.type_name}Params, options?: CallOptions): Promise<{result}> =>\n"
            + f"      {call}{f' as Promise<{result}>' if typed else ''},\n"
        )

    def answers_to(self, name: str) -> bool:
        return name in (self.name, self.tool.name, self.tool.upstream, self.tool.wire)


def accepted(tool: Tool) -> Mapping[str, Any]:
    """The schema of what the tool takes. One declared in YAML that does not refuse other arguments passes them on."""
    if tool.definition.declared is None:
        return tool.input_schema
    return {"additionalProperties": True, **tool.input_schema}


def takes_nothing(tool: Tool) -> bool:
    """Whether the tool can be called without any argument."""
    try:
        tool.validate({})
    except InvalidArgs:
        return False
    return True


def name_servers(servers: Sequence[ScriptServer]) -> dict[str, str]:
    """The property of `tools` for each namespace."""
    keys = [server.key for server in servers]
    names = distinct(keys, [camel(key, "server") for key in keys])
    return {server.namespace: name for server, name in zip(servers, names, strict=True)}


def name_tools(tools: Sequence[Tool]) -> dict[str, list[Function]]:
    """The functions of each namespace. Names depend on all tools there, so that a filter never changes them."""
    bases = [pascal(tool.namespace) + pascal(tool.upstream, "Tool") for tool in tools]
    types = distinct([tool.alias + "\n" + tool.upstream for tool in tools], bases)
    grouped: dict[str, list[tuple[Tool, str]]] = {}
    for tool, type_name in zip(tools, types, strict=True):
        grouped.setdefault(tool.namespace, []).append((tool, type_name))
    return {namespace: name_functions(members) for namespace, members in grouped.items()}


def name_functions(members: Sequence[tuple[Tool, str]]) -> list[Function]:
    originals = [tool.upstream for tool, _ in members]
    names = distinct(originals, [camel(original, "tool") for original in originals])
    return [Function(tool, name, type_name) for (tool, type_name), name in zip(members, names, strict=True)]


def generate(
    tools: Sequence[Tool],
    servers: Sequence[ScriptServer],
    *,
    server: str | None = None,
    tool: str | None = None,
) -> str:
    """The module for `tools`; `server` and `tool` (as generated or as configured) keep one part of it."""
    names = name_servers(servers)
    functions = name_tools(tools)
    chosen = {
        names[entry.namespace]: functions.get(entry.namespace, [])
        for entry in sorted(servers)
        if server is None or server in (names[entry.namespace], entry.key, entry.namespace)
    }
    if tool is not None:
        chosen = {name: [one for one in members if one.answers_to(tool)] for name, members in chosen.items()}
    return HEAD + RUNTIME + "\n" + render(chosen)


def render(chosen: Mapping[str, Sequence[Function]]) -> str:
    if not any(chosen.values()):
        inside = ", ".join(f"{name}: {{}}" for name in chosen)
        return f"export const tools = {{ {inside} }};\n" if inside else "export const tools = {};\n"
    types = "".join(one.declarations() for members in chosen.values() for one in members)
    servers = "".join(
        f"  {name}: {{\n{''.join(one.property() for one in members)}  }},\n"
        if members
        else f"  {name}: {{}},\n"
        for name, members in chosen.items()
    )
    return f"{types}\nexport const tools = {{\n{servers}}};\n"
