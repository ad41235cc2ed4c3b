"""`SyncClient`: the same client for scripts without asyncio; a thread of its own runs the connection."""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from typing import Any, Self, TypeVar

from agent_gate.client.client import Client

T = TypeVar("T")


class SyncClient:
    """Takes what `Client` takes; its methods block.

    with SyncClient("wss://gateway:8443", token) as gate:
        print(gate.call("ha_get_states"))
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self._client = Client(*args, **options)

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="agent-gate client", daemon=True)
        self._thread.start()
        try:
            self._wait(self._client.__aenter__())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._wait(self._client.close())
        self._end()

    def call(self, tool: str, arguments: dict[str, Any] | None = None, **options: Any) -> Any:
        """As `Client.call`; the callbacks run in the client's thread."""
        return self._wait(self._client.call(tool, arguments, **options))

    def tools(self, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
        return self._wait(self._client.tools(names))

    def pending(self) -> list[dict[str, Any]]:
        return self._wait(self._client.pending())

    def acknowledge(self, call_ids: Sequence[str]) -> int:
        return self._wait(self._client.acknowledge(call_ids))

    def cancel(self, call_id: str) -> bool:
        return self._wait(self._client.cancel(call_id))

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
