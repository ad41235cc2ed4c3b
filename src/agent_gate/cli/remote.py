"""A gateway elsewhere, asked over mTLS by a component that was paired with it."""

import asyncio
import http.client
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from agent_gate.cli.operator import PATIENCE, AdminClient
from agent_gate.core.ports import SystemClock
from agent_gate.errors import ConfigError, GatewayError, Unreachable
from agent_gate.hosts.component import HostSetup, PairedComponent
from agent_gate.hosts.kept import read_setup
from agent_gate.peers.belonging import Belonging
from agent_gate.peers.joining import Membership


class MutualConnection(http.client.HTTPSConnection):
    """HTTP to the one gateway that a membership names."""

    def __init__(self, belonging: Belonging, url: str, timeout: float | None) -> None:
        parts = urlsplit(url)
        super().__init__(
            parts.hostname or "", parts.port or 443, timeout=timeout, context=belonging.context()
        )
        self._belonging, self._url = belonging, url

    def connect(self) -> None:
        try:
            super().connect()
            assert isinstance(self.sock, ssl.SSLSocket)
            self._belonging.check_gateway(self.sock.getpeercert(binary_form=True) or b"")
        except ssl.SSLError as error:
            why = getattr(error, "verify_message", None) or error.reason or error
            raise Unreachable(f"{self._url} is not the gateway this was paired with ({why})") from None
        except OSError as error:
            raise Unreachable(f"No gateway answers at {self._url} ({error.strerror or error})") from None


class RemoteClient(AdminClient):
    """Asks the gateway that the component in a folder was paired with; a certificate that is due is renewed first."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        component = component_in(folder)
        if component.belonging is None:
            raise ConfigError(f"{folder} holds no pairing. Run `agent-gate join` there first")
        self._url = component.setup.gateway_url
        if component.renewal_due:
            renew(component)
        self._belonging = component.belonging

    def connection(self, timeout: float | None = PATIENCE) -> http.client.HTTPConnection:
        return MutualConnection(self._belonging, self._url, timeout)


def component_in(folder: Path) -> PairedComponent:
    """What `agent-gate join` left in a folder."""

    async def do_nothing(_membership: Membership) -> None:
        return None

    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder. Run `agent-gate join` first, which makes it")
    setup: HostSetup = read_setup(folder)
    component = PairedComponent(setup, SystemClock(), do_nothing)
    component.load()
    return component


def renew(component: PairedComponent) -> None:
    """Get the next certificate. While the old one still counts, a gateway that does not answer now is no error."""
    try:
        asyncio.run(component.join_dialling())
    except (GatewayError, OSError, ValueError):
        return
