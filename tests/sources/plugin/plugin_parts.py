"""A service with a plugin, and a job for it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent_gate.config.services.settings import (
    ArgDefinition,
    AuthConfig,
    ResponseDefinition,
    ServiceConfig,
    ToolDefinition,
)
from agent_gate.core.call import Call, Caller, Case, Decision
from agent_gate.core.catalog import Listing, build
from agent_gate.core.ports import Job, SystemClock
from agent_gate.sources.plugin import PluginSource

HERE = Path(__file__).parent
Make = Callable[..., PluginSource]


def config_of(class_name: str, **given: Any) -> ServiceConfig:
    tools = (
        ToolDefinition(name="work", service_name="p", args={"how": ArgDefinition()}),
        ToolDefinition(name="wrapped", service_name="p", response=ResponseDefinition(wrap="state")),
    )
    values: dict[str, Any] = {
        "name": "p",
        "url": "custom://anything",
        "auth": AuthConfig(type="basic", password="hunter2-hunter2"),
        "handler": "python",
        "handler_class": f"tests.sources.plugin.plugins_for_tests:{class_name}",
        "tools": tools,
        "where": "config.yaml:7",
    }
    return ServiceConfig(**values | given)


async def job(
    source: PluginSource, tool: str = "work", arguments: Mapping[str, Any] | None = None, seconds: float = 10
) -> Job:
    listing = Listing(key=source.key, namespace=source.namespace, definitions=await source.connect())
    found = build([listing]).find(tool)
    assert found is not None
    call = Call(tool=tool, arguments=arguments or {}, caller=Caller(name="a"))
    case = Case(
        call=call,
        tool=found,
        signature=tool,
        decision=Decision(effect="allow"),
        arguments_hash="",
        definition_hash="",
    )
    return Job(case=case, deadline=SystemClock().monotonic() + seconds)
