"""A client as agents had it before there was an acknowledgement: it counts from 1, reconnects, asks once for pending
results and looks for its own ids among them."""

import asyncio
import itertools
import json
from contextlib import suppress
from typing import Any, Self

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

FIRST_DELAY, LONGEST_DELAY = 0.01, 0.1


class EarlierError(Exception):
    """What the gateway answered instead of a result."""


class EarlierClient:
    """`resolved` has what each of its requests got, by id; `seen` the rows of its last look at pending results."""

    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url, token
        self._ids = itertools.count(1)
        self._futures: dict[int, asyncio.Future[Any]] = {}
        self._ready = asyncio.Event()
        self._network = asyncio.Event()
        self._network.set()
        self.resolved: dict[int, Any] = {}
        self.seen: list[dict[str, Any]] = []
        self.connections = 0
        self.socket: ClientConnection

    async def __aenter__(self) -> Self:
        await self._connect()
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
        await self.socket.close()

    def cut(self) -> None:
        """Lose the connection without a word; there is no other until `mend`."""
        self._network.clear()
        self.socket.transport.abort()

    def mend(self) -> None:
        self._network.set()

    async def _connect(self) -> None:
        self.socket = await connect(self._url, compression=None, proxy=None)
        auth = {"jsonrpc": "2.0", "method": "auth", "params": {"token": self._token}, "id": "auth-1"}
        await self.socket.send(json.dumps(auth))
        assert json.loads(await self.socket.recv())["result"]["status"] == "authenticated"
        self.connections += 1
        self._ready.set()

    async def _run(self) -> None:
        """The one reader, which also mends the connection."""
        while True:
            with suppress(ConnectionClosed):
                async for text in self.socket:
                    self._dispatch(json.loads(text))
            self._ready.clear()
            await self._mend()

    async def _mend(self) -> None:
        delay = FIRST_DELAY
        while True:
            await asyncio.sleep(delay)
            await self._network.wait()
            try:
                await self._connect()
                break
            except (OSError, ConnectionClosed):
                delay = min(delay * 2, LONGEST_DELAY)
        await self._send("get_pending_results", {}, then=self._look)

    def _look(self, result: Any) -> None:
        self.seen = result["results"]
        for row in self.seen:
            said = json.loads(row["result"])
            if row["request_id"] in self._futures:
                self._end(
                    row["request_id"], said["data"] if said["status"] == "executed" else EarlierError(said)
                )

    async def _send(self, method: str, params: Any, then: Any = None) -> int:
        ident = next(self._ids)
        future = self._futures[ident] = asyncio.get_running_loop().create_future()
        if then is not None:
            future.add_done_callback(lambda done: then(done.result()))
        await self.socket.send(
            json.dumps({"jsonrpc": "2.0", "method": method, "params": params, "id": ident})
        )
        return ident

    def _dispatch(self, message: Any) -> None:
        self._end(message["id"], EarlierError(message["error"]) if "error" in message else message["result"])

    def _end(self, ident: int, what: Any) -> None:
        future = self._futures.pop(ident)
        self.resolved[ident] = what
        if isinstance(what, Exception):
            future.set_exception(what)
        else:
            future.set_result(what)

    async def request(self, tool: str, args: Any) -> int:
        """Send a call and return its id; a call made while reconnecting waits."""
        await self._ready.wait()
        return await self._send("tool_request", {"tool": tool, "args": args})

    async def pending(self) -> list[dict[str, Any]]:
        ident = await self._send("get_pending_results", {})
        rows: list[dict[str, Any]] = (await self._futures[ident])["results"]
        return rows
