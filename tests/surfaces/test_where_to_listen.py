"""The listeners as the settings put them: which of them speak TLS, and how much they take."""

from pathlib import Path
from typing import Any

import pytest

from agent_gate.config.settings import AdminSettings, GatewaySettings, LimitsSettings, Settings
from agent_gate.surfaces.listeners import Listeners


async def nobody(*_: Any) -> Any:
    raise AssertionError


async def started(folder: Path, admin: AdminSettings, *, insecure: bool = False) -> Listeners:
    """Listeners that were up for a moment."""
    limits = LimitsSettings(max_connections=17, max_request_bytes=2048)
    settings = Settings(gateway=GatewaySettings(port=0), admin=admin, limits=limits)
    listeners = Listeners(settings, folder, insecure=insecure)
    await listeners.start(nobody, nobody, nobody, nobody, nobody)
    await listeners.drain(0)
    return listeners


@pytest.mark.parametrize(
    ("host", "tls", "insecure", "secure"),
    [
        ("127.0.0.1", "auto", False, False),
        ("127.0.0.2", "auto", False, True),
        ("127.0.0.2", "off", False, False),
        ("127.0.0.2", "auto", True, False),
    ],
)
async def test_the_page_is_plain_on_loopback_and_where_that_is_said_and_speaks_tls_elsewhere(
    tmp_path: Path, host: str, tls: Any, insecure: bool, secure: bool
) -> None:
    admin = AdminSettings(host=host, port=0, tls=tls, socket=tmp_path / "admin.sock")
    listeners = await started(tmp_path, admin, insecure=insecure)
    assert (listeners.page.secure, listeners.public.secure) == (secure, not insecure)


async def test_the_bounds_of_the_settings_are_those_of_the_public_listener(tmp_path: Path) -> None:
    listeners = await started(tmp_path, AdminSettings(port=0, socket=tmp_path / "admin.sock"))
    assert (listeners.public.limits.connections, listeners.public.limits.body_bytes) == (17, 2048)
