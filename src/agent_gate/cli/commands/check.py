"""`agent-gate check`: find every fault in the files without starting anything; plugins are imported."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

import click

from agent_gate.access.people import OPERATOR
from agent_gate.approval.channels.make import channel_people
from agent_gate.cli.offline import look_at, tools_for_rules
from agent_gate.cli.output import PATH, config_option, json_option, print_json, say
from agent_gate.config.configuration import doubts_of
from agent_gate.config.load import Loaded
from agent_gate.config.servers.section import SERVERS
from agent_gate.config.servers.settings import find_command
from agent_gate.config.services.section import SERVICES
from agent_gate.config.settings import MADE_AGENT, Settings
from agent_gate.core.catalog import Catalog
from agent_gate.errors import ConfigError, GatewayError
from agent_gate.policy import Policy
from agent_gate.policy.lint import Finding, bare, idle, lint
from agent_gate.sources.plugin.loading import load_handler
from agent_gate.sources.plugin.source import concurrency
from agent_gate.store import NO_DRIVER
from agent_gate.surfaces.admin.policy_faults import Expectations, unlisted

INVALID = ConfigError.exit


def rule_findings(loaded: Loaded, catalog: Catalog, policy: Policy) -> list[Finding]:
    """Dead and shadowed rules. The tools of MCP servers are not known from the files, but how calls of them look is."""
    return lint(policy.rules, policy.defaults, tools_for_rules(catalog), unlisted(loaded))


def approver_findings(loaded: Loaded, policy: Policy) -> Iterator[Finding]:
    """Rules whose questions nobody could answer."""
    known = {OPERATOR, *channel_people(loaded.settings.channels), *loaded.settings.people}
    for rule in (*policy.rules, *policy.defaults):
        if rule.approvers and known.isdisjoint(rule.approvers):
            names = " or ".join(rule.approvers)
            yield Finding(
                rule.where,
                f"{rule.label()!r} can be answered by nobody: there is no {names} under `people:`",
            )


def rule_warnings(
    loaded: Loaded, catalog: Catalog, policy: Policy, faults: Iterable[Finding]
) -> Iterator[str]:
    """Rules that hardly mean what they say, where no fault says so already."""
    told = {fault.where for fault in faults}
    rules = (*policy.rules, *policy.defaults)
    for finding in (*bare(rules, catalog.tools), *idle(rules, catalog.tools, unlisted(loaded))):
        if finding.where not in told:
            yield f"{finding.where}: {finding.message}"


def caller_warnings(loaded: Loaded, policy: Policy) -> Iterator[str]:
    """Rules and tests for agents that the file does not have; one made at the gateway may still get the name."""
    agents = tuple(loaded.settings.agents) or (MADE_AGENT,)
    for rule in (*policy.rules, *policy.defaults):
        for strangers in filter(None, (one.strangers(agents) for one in rule.conditions.values())):
            yield (
                f"{rule.where}: {rule.label()!r} is for {', '.join(strangers)}, "
                f"and the configuration has no such agent; it has {', '.join(agents)}"
            )
    for test in loaded.policy_tests:
        if test.caller is not None and test.caller not in agents:
            yield (
                f"{test.where}: policy test: {test.caller} calls, "
                f"and the configuration has no such agent; it has {', '.join(agents)}"
            )


def test_findings(loaded: Loaded, catalog: Catalog, policy: Policy) -> list[Finding]:
    """The file's own expectations (`policy_tests`) that do not hold."""
    return [found for _, found in Expectations(loaded, policy, catalog).failing()]


def plugin_findings(settings: Settings) -> list[Finding]:
    """Plugins with which the gateway would not start."""
    found = []
    for service in SERVICES.of(settings).values():
        if service.handler != "python":
            continue
        try:
            load_handler(service)
            concurrency(service)
        except ConfigError as error:
            found.append(Finding(error.where or service.name, error.message))
    return found


def missing_programs(settings: Settings) -> list[str]:
    """Servers that cannot be started on this machine. The gateway starts without them, and elsewhere they may be."""
    said = []
    for server in SERVERS.of(settings).values():
        if server.enabled and server.command:
            try:
                find_command(server)
            except ConfigError as error:
                said.append(error.message)
    return said


def driver_findings(loaded: Loaded) -> list[Finding]:
    """The store's driver, which is an extra: without it the gateway does not start."""
    if loaded.settings.storage.type != "postgres":
        return []
    try:
        import_module("psycopg")
    except ModuleNotFoundError:
        where = str(loaded.places["storage.type"])
        return [Finding(where, f"storage.type: {NO_DRIVER}")]
    return []


def check(config: Path, permissions: Path | None) -> tuple[list[Finding], list[str]]:
    """Every fault, and the warnings."""
    try:
        loaded, catalog, policy = look_at(config, permissions)
    except ConfigError as error:
        said = (Finding(one.where or str(config), one.message) for one in (error, *error.also))
        return list(dict.fromkeys(said)), []
    except GatewayError as error:
        return [Finding(str(config), error.message)], []
    left_out = [Finding(item.source, f"{item.name}: {item.reason}") for item in catalog.excluded]
    faults = [
        *left_out,
        *driver_findings(loaded),
        *plugin_findings(loaded.settings),
        *rule_findings(loaded, catalog, policy),
        *approver_findings(loaded, policy),
        *test_findings(loaded, catalog, policy),
    ]
    warnings = [
        *loaded.warnings,
        *doubts_of(loaded.settings, loaded),
        *missing_programs(loaded.settings),
        *rule_warnings(loaded, catalog, policy, faults),
        *caller_warnings(loaded, policy),
    ]
    return faults, warnings


@click.command()
@config_option(help="Configuration to check.")
@click.option(
    "--permissions",
    type=PATH,
    help="Rules file, instead of the one the configuration names.",
)
@json_option
def command(config: Path, permissions: Path | None, as_json: bool) -> None:
    """Check configuration and rules; exit 8 on a fault."""
    findings, warnings = check(config, permissions)
    if as_json:
        print_json({"ok": not findings, "faults": [asdict(f) for f in findings], "warnings": warnings})
    else:
        for finding in findings:
            prefix = "" if finding.message.startswith(finding.where) else f"{finding.where}: "
            say(f"Fault: {prefix}{finding.message}")
        for warning in warnings:
            say(f"Warning: {warning}")
        say("No faults." if not findings else f"{len(findings)} fault{'s' if len(findings) > 1 else ''}.")
    sys.exit(INVALID if findings else 0)
