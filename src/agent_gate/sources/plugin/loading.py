"""`module:Class` of a service into the class, from installed packages or the plugin folders."""

import inspect
import re
import sys
from collections.abc import Sequence
from importlib import import_module, invalidate_caches
from pathlib import Path

from agent_gate.config.services import ServiceConfig
from agent_gate.errors import ConfigError
from agent_gate.sources.plugin.handler import ServiceHandler

SPEC = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def load_handler(config: ServiceConfig, paths: Sequence[Path]) -> type[ServiceHandler]:
    """The handler class of a service; every way in which it is not one is a `ConfigError` with its place."""
    spec = config.handler_class
    if not SPEC.fullmatch(spec):
        raise fault(config, f"handler_class must be module:Class, not {spec[:80]!r}")
    module, _, name = spec.partition(":")
    add_paths(paths)
    try:
        found = getattr(import_module(module), name, None)
    except Exception as error:
        raise fault(config, f"{module} cannot be imported: {type(error).__name__}: {error}") from error
    if found is None:
        raise fault(config, f"{module} has no class {name}")
    if not inspect.isclass(found) or not issubclass(found, ServiceHandler):
        raise fault(config, f"{spec} is not a subclass of agent_gate.ServiceHandler")
    if inspect.isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise fault(config, f"{spec} does not implement {missing}")
    return found


def add_paths(paths: Sequence[Path]) -> None:
    """Plugin folders come last, so that they cannot stand in for an installed package."""
    for path in map(str, paths):
        if path not in sys.path:
            sys.path.append(path)
    invalidate_caches()


def fault(config: ServiceConfig, message: str) -> ConfigError:
    return ConfigError(f"service {config.name}: {message}", where=config.where or None)
