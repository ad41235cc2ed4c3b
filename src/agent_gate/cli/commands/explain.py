"""`agent-gate explain`: what would happen to a call, which rule decides, and where that rule stands."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from agent_gate.access.view import check_sees
from agent_gate.approval.render import visible
from agent_gate.cli.arguments import parse_arguments
from agent_gate.cli.offline import look_at
from agent_gate.cli.operator import admin_options, client_of, reporting
from agent_gate.cli.output import PATH, USUAL_CONFIG, paint, print_json, say
from agent_gate.config.load import Loaded
from agent_gate.config.settings import MADE_AGENT, AgentSettings
from agent_gate.core.call import Caller
from agent_gate.errors import Unreachable
from agent_gate.surfaces.admin.routes.policy import explained, meant, unknown

UNSAID = "what it acts on is known only while an agent uses it; to try something, add {}"


def offline(
    config: Path, permissions: Path | None, tool_name: str, pairs: tuple[str, ...], name: str | None
) -> dict[str, Any]:
    """Explain from the files alone; knows the tools declared in YAML."""
    loaded, catalog, policy = look_at(config, permissions)
    caller = agent_of(loaded, name)
    tool = catalog.find(tool_name)
    if tool is None:
        raise unknown(tool_name, catalog, "Without a running gateway only tools declared in YAML are known")
    check_sees(caller, tool)
    return explained(policy, tool, parse_arguments(pairs, tool.input_schema), caller)


def agent_of(loaded: Loaded, name: str | None) -> Caller:
    """The agent of the files; another name may be that of one made at the gateway, which files do not know."""
    agents = loaded.settings.agents or {MADE_AGENT: AgentSettings()}
    if name is not None and name not in agents:
        return Caller(name=name)
    found = meant([agent.caller() for agent in agents.values()], name)
    return replace(found, groups=frozenset(loaded.settings.groups_of(found.person)))


def online(
    admin_socket: Path | None, config: Path | None, tool_name: str, pairs: tuple[str, ...], caller: str | None
) -> dict[str, Any]:
    client = client_of(admin_socket, config)
    tools = {tool[key]: tool for tool in client.get("/api/tools")["tools"] for key in ("id", "name")}
    schema = tools[tool_name]["input_schema"] if tool_name in tools else None
    asked = {"tool": tool_name, "arguments": parse_arguments(pairs, schema), "caller": caller}
    explained: dict[str, Any] = client.request("POST", "/api/explain", asked)
    return explained


def explanation(found: dict[str, Any]) -> str:
    lines = [
        f"{visible(found['signature'])} called by {found['caller']}: {paint(found['effect'])}",
        f"  because of {found['rule'] or found['reason']} ({found['where'] or 'built in'})",
    ]
    if found["rule"] and not found["reason"].endswith(found["rule"]):
        lines.append(f"  which says: {visible(found['reason'])}")
    if found["unsaid"]:
        lines.append(f"  {UNSAID.format(' '.join(f'{name}=…' for name in found['unsaid']))}")
    if found["considered"]:
        lines.append("  considered, in this order:")
    for rule in found["considered"]:
        mark = "→" if rule["matched"] else " "
        kind = "default" if rule["default"] else "rule"
        lines.append(f"  {mark} {kind:7} {rule['rule']}  [{rule['where']}]  {rule['why']}")
    return "\n".join(lines)


@click.command()
@click.argument("tool")
@click.argument("arguments", nargs=-1)
@click.option("--as", "caller", help="The agent that would call; by default the only one there is.")
@click.option("--permissions", type=PATH, help="Rules file to try instead; explains offline.")
@click.option(
    "--offline", "without_gateway", is_flag=True, help="Read the files; do not ask a running gateway."
)
@admin_options
def command(
    tool: str,
    arguments: tuple[str, ...],
    caller: str | None,
    permissions: Path | None,
    without_gateway: bool,
    admin_socket: Path | None,
    config: Path | None,
    as_json: bool,
) -> None:
    """Why a call would be allowed, asked or denied."""
    with reporting():
        if without_gateway or permissions is not None:
            found = offline(config or USUAL_CONFIG, permissions, tool, arguments, caller)
        else:
            try:
                found = online(admin_socket, config, tool, arguments, caller)
            except Unreachable:
                if config is None and not USUAL_CONFIG.exists():
                    raise
                found = offline(config or USUAL_CONFIG, None, tool, arguments, caller)
        print_json(found) if as_json else say(explanation(found))
