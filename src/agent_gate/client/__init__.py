"""The Python client: `Client` for asyncio, `SyncClient` for scripts. Loaded on first use; nothing heavy comes along."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_gate.client.client import Client
    from agent_gate.client.sync import SyncClient
    from agent_gate.client.wire import Reply

__all__ = ["Client", "Reply", "SyncClient"]

_HOMES = {"Client": "client", "Reply": "wire", "SyncClient": "sync"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
