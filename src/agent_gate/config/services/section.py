"""The services of config.yaml, which HTTP requests or Python plugins answer for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agent_gate.config.decode import Reading, decode
from agent_gate.config.files.nodes import Node, empty
from agent_gate.config.kinds import Section
from agent_gate.config.services.definition import to_definition
from agent_gate.config.services.read import read_services
from agent_gate.config.services.settings import (
    ArgDefinition,
    HealthCheckConfig,
    PluginSettings,
    ServiceConfig,
    ToolDefinition,
)
from agent_gate.config.settings import Settings
from agent_gate.config.shape import InFile
from agent_gate.core.tool import Definition


def read_section(root: Node, reading: Reading) -> dict[str, ServiceConfig]:
    plugins = decode(root.get("plugins") or empty(root.mark), PluginSettings, "plugins", reading)
    found = read_services(root.get("services") or empty(root.mark), reading)
    return {
        name: replace(one, plugin_folders=plugins.paths) if one.handler == "python" else one
        for name, one in found.items()
    }


def plugin_files(settings: Settings) -> Iterator[Path]:
    """The modules of plugins in the plugin folders; what is installed changes with its package."""
    for service in SERVICES.of(settings).values():
        if service.handler == "python":
            module = service.handler_class.partition(":")[0].replace(".", "/")
            for folder in service.plugin_folders:
                yield from filter(Path.is_file, (folder / f"{module}.py", folder / module / "__init__.py"))


def declared_tools(settings: Settings) -> Mapping[str, Sequence[Definition]]:
    return {
        service.name: [to_definition(service, tool) for tool in service.tools]
        for service in SERVICES.of(settings).values()
    }


SERVICES = Section(
    "services",
    read_section,
    {
        "services": InFile(
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/ServiceConfig"}},
            "HTTP services and Python plugins; each key is a namespace.",
        ),
        "plugins": InFile({"$ref": "#/$defs/PluginSettings"}, "Where plugins come from."),
    },
    (ServiceConfig, ArgDefinition, HealthCheckConfig, PluginSettings, ToolDefinition),
    plugin_files,
    declared_tools,
)
