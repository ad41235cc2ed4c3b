"""`module:Class` of a service into the class, from installed packages or the plugin folders."""

import inspect
import re
import sys
from collections.abc import Sequence
from importlib import import_module, invalidate_caches
from pathlib import Path

from agent_gate.config.services.settings import ServiceConfig
from agent_gate.errors import ConfigError
from agent_gate.sources.plugin.handler import ServiceHandler
from agent_gate.sources.plugin.worker import Crashed, safely, wording

SPEC = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def load_handler(config: ServiceConfig) -> type[ServiceHandler]:
    """The handler class of a service; every way in which it is not one is a `ConfigError` with its place."""
    spec = config.handler_class
    if not SPEC.fullmatch(spec):
        raise fault(config, f"handler_class must be module:Class, not {spec[:80]!r}")
    module, _, name = spec.partition(":")
    add_paths(config.plugin_folders)
    try:
        return safely(find_class, config, module, name)
    except ConfigError:
        raise
    except Exception as error:
        reason = error.__cause__ if isinstance(error, Crashed) and error.__cause__ else error
        raise fault(config, f"{module} cannot be imported: {wording(reason)}") from error


def find_class(config: ServiceConfig, module: str, name: str) -> type[ServiceHandler]:
    spec = config.handler_class
    found = getattr(import_module(module), name, None)
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
