"""Whether somebody listens where the configuration says: a connection to each address, closed at once, nothing sent."""

import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from agent_gate.config.servers.section import SERVERS
from agent_gate.config.services.section import SERVICES
from agent_gate.config.settings import Settings

PATIENCE = 2.0
AT_ONCE = 16
PORTS = {"http": 80, "https": 443}


def addresses(settings: Settings) -> dict[str, str]:
    """Where each source is that is reached over the network, by its key."""
    services = {key: one.url for key, one in SERVICES.of(settings).items() if one.handler == "http"}
    return services | {key: one.url for key, one in SERVERS.of(settings).items() if one.url and one.enabled}


def unanswered(found: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Those where nobody answers, each with the reason."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from (
            (key, why) for key, why in zip(found, pool.map(knock, found.values()), strict=True) if why
        )


def knock(url: str) -> str:
    """Why an address cannot be reached from here; empty where it can."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    try:
        with socket.create_connection((host, port), PATIENCE):
            return ""
    except (OSError, UnicodeError) as error:
        return f"{host}:{port} cannot be reached ({getattr(error, 'strerror', None) or error})"
