"""What is wrong with the rules in use: expectations that fail, and rules that refuse nothing. Told wherever warnings are."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_gate.access.view import check_sees
from agent_gate.config.configuration import Configuration
from agent_gate.config.kinds import sections
from agent_gate.config.load import Loaded
from agent_gate.config.permissions import PolicyTest
from agent_gate.config.servers.section import SERVERS
from agent_gate.config.servers.settings import ServerSettings
from agent_gate.core.catalog import LONGEST_WIRE, Catalog, Listing, Shelf, build, wire_part
from agent_gate.core.ids import fold_namespace
from agent_gate.core.tool import Definition, Tool
from agent_gate.core.traits import Traits
from agent_gate.errors import ConfigError, GatewayError
from agent_gate.policy import Policy, Subject
from agent_gate.policy.lint import Finding, Unlisted, dead, lint
from agent_gate.policy.names import name_part
from agent_gate.policy.written import policy_of

log = logging.getLogger("agent_gate.policy")


def known_from_files(loaded: Loaded) -> Mapping[str, Sequence[Definition]]:
    """By source the tools that the files alone tell of: those declared in YAML, and those that a kind always has."""
    said = (one.tools(loaded.settings) for one in sections() if one.tools is not None)
    return {key: definitions for each in said for key, definitions in each.items()}


def declared_tools(loaded: Loaded) -> Catalog:
    """The catalog of these; nobody is asked."""
    return build(
        Listing(key=key, namespace=fold_namespace(key), title=key, definitions=definitions)
        for key, definitions in known_from_files(loaded).items()
    )


def unlisted(loaded: Loaded, known: Mapping[str, Listing] | None = None) -> list[Unlisted]:
    """The sources whose tools nobody knows yet; of tool hosts and foreign kinds not even how they are named."""
    settings, listed = loaded.settings, {key for key, one in (known or {}).items() if one.definitions}
    servers = [
        Unlisted(fold_namespace(key), starts(server), spelled_starts(server))
        for key, server in SERVERS.of(settings).items()
        if key not in listed
    ]
    others = [one.of(settings) for one in sections() if one.tools is None and one is not SERVERS]
    return [*servers, *([Unlisted()] if any(others) or settings.peers is not None else ())]


def starts(server: ServerSettings) -> tuple[str, ...]:
    """How the names of a server's tools begin in rules."""
    wire = f"{wire_part(server.key)}__"[: LONGEST_WIRE - 9]
    return (wire, f"{fold_namespace(server.key)}:") if server.prefix else ("",)


def spelled_starts(server: ServerSettings) -> tuple[str, ...]:
    """How rules that refuse or ask may also write it: the key as it stands in the file."""
    keys = {server.key, wire_part(server.key), fold_namespace(server.key)}
    return tuple(sorted(f"{key}{sign}" for key in keys for sign in ("__", ":")))


def supposed_tool(loaded: Loaded, name: str, arguments: Iterable[str]) -> Tool | None:
    """A tool of an MCP server as far as its name tells: it takes what it is given, and claims nothing of itself."""
    for server in SERVERS.of(loaded.settings).values():
        begins = (*starts(server), *spelled_starts(server))
        if rest := after_start(name, begins):
            own = as_rules_write(loaded, begins, rest)
            return next(iter(build([supposed_listing(server, own, arguments)]).tools), None)
    return None


def after_start(name: str, begins: Iterable[str]) -> str:
    return next((name[len(start) :] for start in begins if start and name.startswith(start)), "")


def as_rules_write(loaded: Loaded, begins: Iterable[str], name: str) -> str:
    """The server's own spelling of a name, as far as a rule tells it."""
    written = (after_start(name_part(rule.pattern), begins) for rule in (*loaded.rules, *loaded.defaults))
    return next((own for own in written if own and wire_part(own) == name), name)


def supposed_listing(server: ServerSettings, name: str, arguments: Iterable[str]) -> Listing:
    definition = Definition(
        name=name,
        input_schema={"type": "object", "properties": {argument: {} for argument in arguments}},
        traits=said_traits(server),
    )
    return Listing(key=server.key, namespace=fold_namespace(server.key), definitions=[definition])


def said_traits(server: ServerSettings) -> Traits:
    """What the operator says of a server's tools, while nobody knows what it claims itself."""
    said = server.traits.said()
    return Traits(trusted=server.trust_annotations or bool(said), **said)


@dataclass(frozen=True, slots=True)
class Expectations:
    """The file's own expectations (`policy_tests`), tried on the tools of its files and on those that are known."""

    loaded: Loaded
    policy: Policy
    declared: Catalog
    known: Callable[[str], Tool | None] = lambda _name: None

    def failing(self) -> list[tuple[PolicyTest, Finding]]:
        tried = ((test, self._fault(test)) for test in self.loaded.policy_tests)
        return [(test, Finding(test.where, f"policy test: {why}")) for test, why in tried if why]

    def _find(self, test: PolicyTest) -> Tool | None:
        known = self.known(test.tool)
        if known is not None and known.source not in SERVERS.of(self.loaded.settings):
            known = None
        return self.declared.find(test.tool) or known or supposed_tool(self.loaded, test.tool, test.args)

    def _fault(self, test: PolicyTest) -> str | None:
        tool = self._find(test)
        if tool is None:
            return f"{test.tool} is neither declared in YAML nor named like a tool of a server"
        arguments = {**tool.defaults, **test.args}
        try:
            self._check_caller(test, tool)
            tool.validate(arguments)
        except GatewayError as error:
            return error.message
        signature = tool.sign(arguments)
        decision = self.policy.decide(self._subject(test, tool, arguments))
        if decision.effect == test.expect:
            return None
        why = f"{decision.rule or decision.reason} at {decision.where or 'built in'}"
        return f"{signature} is {decision.effect}, expected {test.expect} ({why})"

    def _subject(self, test: PolicyTest, tool: Tool, arguments: Mapping[str, Any]) -> Subject:
        """The call of an expectation: for the person and the groups it names, or those of its agent."""
        name = test.caller or "default"
        agent = self.loaded.settings.agents.get(name)
        person = test.person or (agent.person if agent is not None else "")
        groups = test.groups or self.loaded.settings.groups_of(person)
        return Subject(tool, arguments, tool.sign(arguments), name, None, person, frozenset(groups))

    def _check_caller(self, test: PolicyTest, tool: Tool) -> None:
        """What an agent does not see it cannot call, whatever the rules say: only `deny` can be expected of that."""
        agent = self.loaded.settings.agents.get(test.caller or "default")
        if agent is not None and test.expect != "deny":
            check_sees(agent.caller(), tool)


def expectation(test: PolicyTest) -> tuple[str, ...]:
    """An expectation apart from the place where it stands."""
    return test.tool, repr(sorted(test.args.items())), test.caller or "", test.expect


class PolicyFaults:
    """Watches the rules in use. What it finds is kept while neither the rules nor the tools change."""

    def __init__(self, configuration: Configuration, shelf: Shelf, policy: Callable[[], Policy]) -> None:
        self._configuration, self._shelf, self._policy = configuration, shelf, policy
        self._seen: tuple[Policy, Catalog] | None = None
        self._found: list[str] = []
        self._told: frozenset[str] = frozenset()

    def warnings(self) -> list[str]:
        now = self._policy(), self._shelf.catalog
        if self._seen is None or any(one is not other for one, other in zip(self._seen, now, strict=True)):
            self._seen, self._found = now, list(self._look(*now))
        return self._found

    def tell(self) -> None:
        """Log what was not known before."""
        found = self.warnings()
        for warning in found:
            if warning not in self._told:
                log.warning(warning)
        self._told = frozenset(found)

    def check(self, loaded: Loaded) -> None:
        """Refuse rules that make an expectation fail which does not fail now."""
        if not loaded.policy_tests:
            return
        now = self._expectations(self._configuration.loaded, self._policy())
        failing = {expectation(test) for test, _ in now.failing()}
        for test, finding in self._expectations(loaded, policy_of(loaded)).failing():
            if expectation(test) not in failing:
                raise ConfigError(finding.message, where=finding.where)

    def _expectations(self, loaded: Loaded, policy: Policy) -> Expectations:
        return Expectations(loaded, policy, declared_tools(loaded), self._shelf.catalog.find)

    def _coming(self, loaded: Loaded, catalog: Catalog) -> tuple[Tool, ...]:
        """The tools that the files tell of, while a source of theirs is not there yet."""
        listed = {key for key, listing in catalog.listings.items() if listing.definitions}
        known = {key for key, definitions in known_from_files(loaded).items() if definitions}
        return () if known <= listed else declared_tools(loaded).tools

    def lint(self) -> list[Finding]:
        """Everything that is wrong with the rules in use, as far as the tools are known by now."""
        policy = self._policy()
        return lint(policy.rules, policy.defaults, *self._known(self._shelf.catalog))

    def _known(self, catalog: Catalog) -> tuple[tuple[Tool, ...], list[Unlisted]]:
        """The tools that rules can mean, and the sources of which nobody knows the tools yet."""
        loaded = self._configuration.loaded
        tools = (*catalog.tools, *catalog.reads.values(), *self._coming(loaded, catalog))
        return tools, unlisted(loaded, catalog.listings)

    def _look(self, policy: Policy, catalog: Catalog) -> Iterator[str]:
        loaded = self._configuration.loaded
        refusing = [rule for rule in (*policy.rules, *policy.defaults) if rule.action != "allow"]
        for finding in dead(refusing, *self._known(catalog)):
            yield f"{finding.where}: {finding.message}"
        if loaded.policy_tests:
            for _, finding in self._expectations(loaded, policy).failing():
                yield f"{finding.where}: {finding.message}"
