"""config.yaml, permissions.yaml and the files they name into one `Loaded`: all of it, or a `ConfigError`."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from agent_gate.config.auth import check_auth
from agent_gate.config.channels import read_channels, read_people, written_channels
from agent_gate.config.decode import (
    Reading,
    beside,
    convert,
    decode,
    existing,
)
from agent_gate.config.files.dotenv import environment
from agent_gate.config.files.nodes import Mark, Node, empty, fail, join, read_each, read_named
from agent_gate.config.files.variables import Variables
from agent_gate.config.files.yamlfile import read_yaml
from agent_gate.config.kinds import SourceEntry, sections
from agent_gate.config.permissions import Permissions, PolicyTest, read_permissions
from agent_gate.config.settings import (
    AgentSettings,
    RateLimitSettings,
    Settings,
)
from agent_gate.config.signin import is_written
from agent_gate.core.ids import fold_namespace
from agent_gate.errors import ConfigError
from agent_gate.policy.rule import Rule

SHORT_TOKEN = 16
SHA256 = re.compile(r"[0-9a-fA-F]{64}")
DOUBTED = (
    ("gateway", "host"),
    ("admin", "host"),
    ("gateway", "tls", "key"),
    ("storage", "type"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Everything the files say. `secrets` are values to redact, `files` what was read.

    `watched` adds the files that would have been read had they been there, `blank` are those that say nothing.
    `places` is where the settings stand that the command line or the machine can put in doubt, `channels_at` where each
    channel does.
    """

    settings: Settings
    rules: tuple[Rule, ...] = ()
    defaults: tuple[Rule, ...] = ()
    policy_tests: tuple[PolicyTest, ...] = ()
    warnings: tuple[str, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    files: tuple[Path, ...] = ()
    watched: tuple[Path, ...] = ()
    blank: tuple[Path, ...] = ()
    places: Mapping[str, Mark] = field(default_factory=dict)
    channels_at: Mapping[str, Mark] = field(default_factory=dict)


def load(
    config_path: Path | None = None,
    permissions_path: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Loaded:
    """Read the named files and those they name. No file at all gives the defaults."""
    reading = Reading(Variables(os.environ if env is None else env))
    try:
        return read_all(config_path, permissions_path, reading)
    except ConfigError as error:
        error.files = reading.watched
        raise


def read_all(config_path: Path | None, permissions_path: Path | None, reading: Reading) -> Loaded:
    if config_path is not None:
        reading.looked_for += [config_path.parent / ".env", config_path.parent / "permissions.yaml"]
    reading.variables.env, dotenv = environment(config_path, reading.variables.env, reading.warnings)
    reading.files.extend(dotenv)
    root = read_filled(config_path, reading) if config_path else empty(Mark("config.yaml"))
    if reading.blank:
        reading.warn(root.mark, "", "the file is empty, so nobody may come in and there are no tools")
    read = read_apart(
        settings=lambda: read_settings(root, reading),
        policy=lambda: read_policy(permissions_path or find_permissions(root, config_path, reading), reading),
    )
    policy: Permissions = read["policy"]
    return Loaded(
        settings=read["settings"],
        rules=policy.rules,
        defaults=policy.defaults,
        policy_tests=policy.policy_tests,
        warnings=tuple(reading.warnings),
        secrets=frozenset(reading.variables.secrets),
        files=tuple(dict.fromkeys(path.absolute() for path in reading.files)),
        watched=reading.watched,
        blank=tuple(path.absolute() for path in reading.blank),
        places={".".join(path): place_of(root, *path) for path in DOUBTED},
        channels_at={path: node.mark for path, node in written_channels(root).items()},
    )


def read_filled(path: Path, reading: Reading) -> Node:
    return reading.variables.fill(reading.open(path, read_yaml))


def read_policy(permissions: Path | None, reading: Reading) -> Permissions:
    return read_permissions(read_filled(permissions, reading), reading) if permissions else Permissions()


def read_apart(**readers: Callable[[], Any]) -> dict[str, Any]:
    """What each of them reads; the faults of all of them as one error."""
    return read_each(readers.items(), lambda _, read: read())


def find_permissions(root: Node, config: Path | None, reading: Reading) -> Path | None:
    """The file that the configuration names, which must exist, else one beside it, which may."""
    if config is None:
        return None
    named = root.get("permissions")
    if named is not None:
        return existing(named.mark, beside(named.mark, Path(str(named.value))), "permissions", reading)
    file = config.parent / "permissions.yaml"
    return file if file.is_file() else None


def read_settings(root: Node, reading: Reading) -> Settings:
    brought = sections()
    others = [key for section in brought for key in section.keys]
    parts = read_apart(
        sources=lambda: read_each(
            ((one.name, one) for one in brought), lambda _, one: one.read(root, reading)
        ),
        agents=lambda: read_agents(root, reading),
        channels=lambda: read_channels(root, reading),
        people=lambda: read_people(root, reading),
        # What stands apart is put in below.
        settings=lambda: decode(
            root, Settings, "", reading, others=others, agents={}, sources={}, channels=(), people={}
        ),
    )
    refuse_folded(parts["sources"])
    settings: Settings = replace(parts.pop("settings"), **parts)
    check_settings(settings, root, reading)
    return with_callback(settings, reading.variables.env.get("TOOL_GATEWAY_CALLBACK_URL"))


def with_callback(settings: Settings, url: str | None) -> Settings:
    """The settings with the callback address of the environment, where the file has none."""
    if not url or settings.admin.callback_url is not None:
        return settings
    return replace(settings, admin=replace(settings.admin, callback_url=url))


def check_settings(settings: Settings, root: Node, reading: Reading) -> None:
    tls, storage = settings.gateway.tls, settings.storage
    if (tls.cert is None) != (tls.key is None):
        fail(root.key_mark("gateway"), "gateway.tls", "cert and key are given together")
    for key, file in (("cert", tls.cert), ("key", tls.key)):
        if file is not None:
            existing(place_of(root, "gateway", "tls", key), file, f"gateway.tls.{key}", reading)
    if storage.type == "postgres" and not storage.url:
        fail(root.key_mark("storage"), "storage", 'type: postgres needs a "url"')
    check_auth(settings.auth, settings.gateway.host, settings.agents, root)


def place_of(root: Node, *path: str) -> Mark:
    here = root
    for key in path:
        here = here.get(key) or here
    return here.mark


def read_agents(root: Node, reading: Reading) -> dict[str, AgentSettings]:
    """`agents:`, and the single `agent:` under the name "default"."""
    limits = decode(root.get("rate_limit") or empty(root.mark), RateLimitSettings, "rate_limit", reading)
    several, single = root.get("agents") or empty(root.mark), root.get("agent")

    def read(name: str, node: Node) -> AgentSettings:
        if single is not None and name == "default":
            fail(several.key_mark(name), f"agents.{name}", 'is also given as "agent"')
        return read_agent(node, name, join("agents", name), limits, reading)

    alone = {"default": read_agent(single, "default", "agent", limits, reading)} if single else {}
    found = alone | read_named(several, "agents", read)
    refuse_shared_tokens(found)
    return found


def read_agent(
    node: Node, name: str, path: str, limits: RateLimitSettings, reading: Reading
) -> AgentSettings:
    agent = decode(
        node,
        AgentSettings,
        path,
        reading,
        name=name,
        rate_limit=merge_limits(node.get("rate_limit"), limits, join(path, "rate_limit"), reading),
        namespaces=read_namespaces(node.get("namespaces"), join(path, "namespaces"), reading),
        where=str(node.mark),
    )
    check_token(agent, node, path, reading)
    return agent


def read_namespaces(node: Node | None, path: str, reading: Reading) -> tuple[str, ...] | None:
    if node is None:
        return None
    return tuple(fold_namespace(key) for key in convert(node, tuple[str, ...], path, reading))


def merge_limits(
    node: Node | None, limits: RateLimitSettings, path: str, reading: Reading
) -> RateLimitSettings:
    if node is None:
        return limits
    own = decode(node, RateLimitSettings, path, reading)
    kept = {name: getattr(limits, name) for name in RateLimitSettings.__slots__ if node.get(name) is None}
    return RateLimitSettings(**{**{name: getattr(own, name) for name in own.__slots__}, **kept})


def check_token(agent: AgentSettings, node: Node, path: str, reading: Reading) -> None:
    """An agent has exactly one way to be known, and a token that cannot be guessed."""
    mark = (node.get("token") or node).mark
    if agent.token and agent.token_hash:
        fail(mark, path, "has a token and a token_hash; it is one or the other")
    if not agent.token and not agent.token_hash:
        fail(mark, join(path, "token"), "is empty; give the agent a secret of at least 16 characters")
    if agent.token_hash and not SHA256.fullmatch(agent.token_hash):
        fail(mark, join(path, "token_hash"), "expected the SHA-256 of the token, 64 hex digits")
    if is_written(agent.token) and len(agent.token) < SHORT_TOKEN:
        reading.warn(
            mark, join(path, "token"), f"is shorter than {SHORT_TOKEN} characters and can be guessed"
        )
    if not agent.token.isprintable() or agent.token != agent.token.strip():
        reading.warn(
            mark, join(path, "token"), "has a line break or a blank at its end, which no header can send"
        )


def refuse_shared_tokens(agents: Mapping[str, AgentSettings]) -> None:
    owners: dict[str, AgentSettings] = {}
    for agent in agents.values():
        known_by = agent.token_hash.lower() or sha256(agent.token.encode()).hexdigest()
        other = owners.setdefault(known_by, agent)
        if other is not agent:
            fail(
                Mark(agent.where),
                f"agents.{agent.name}",
                f"has the same token as {other.name}; each agent needs its own",
            )


def refuse_folded(sources: Mapping[str, Mapping[str, SourceEntry]]) -> None:
    """Two keys that fold to one namespace, or one prefix on the wire, would share rules and names, so they are refused."""
    seen: dict[str, tuple[str, str]] = {}
    places = [(key, entry.where) for found in sources.values() for key, entry in found.items()]
    for key, where in places:
        other, first = seen.setdefault(shared_namespace(key), (key, where))
        if (other, first) != (key, where):
            fail(Mark(where), key, f'and "{other}" ({first}) are the same namespace; rename one of them')


def shared_namespace(key: str) -> str:
    """What two keys must not have in common."""
    return fold_namespace(key).replace("-", "_")
