"""`DurableStore`: the `Store` over any `Engine`, with its writer thread and a few reading threads."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path

from agent_gate.errors import DependencyUnavailable
from agent_gate.store.engine import Engine, Fault
from agent_gate.store.statement import Head, Param, Record, RowListener, Statement
from agent_gate.store.writer import RETRY_AFTER, Unit, Writer, refusal

log = logging.getLogger(__name__)
READERS = 2
CROWD = 2048
HEAR_AGAIN = 1.0


class DurableStore:
    def __init__(self, engine: Engine, chain: str) -> None:
        engine.open()
        self.chain = chain
        self._engine = engine
        self._writer = Writer(engine, chain)
        self._readers = ThreadPoolExecutor(READERS, "store-reader")
        self._closed = False

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    @property
    def shared(self) -> bool:
        return self._engine.shared

    @property
    def now(self) -> str:
        return self._engine.now

    @property
    def file(self) -> Path | None:
        return self._engine.file

    @property
    def head(self) -> Head:
        return self._writer.head

    @property
    def fault(self) -> str | None:
        return self._writer.fault.reason if self._writer.fault else None

    @property
    def healthy(self) -> bool:
        return self._writer.fault is None

    @property
    def crowded(self) -> bool:
        return self._writer.backlog >= CROWD or self._writer.fault is not None

    def write(self, *statements: Statement) -> Awaitable[list[int]]:
        writer = self._writer
        if self._closed or (writer.fault is not None and writer.fault.broken):
            raise refusal(writer.fault or Fault("the gateway is stopping"))
        future: asyncio.Future[list[int]] = self._loop.create_future()
        writer.put(Unit(statements, future))
        return future

    def post(self, *statements: Statement) -> None:
        if self._closed:
            raise refusal(Fault("the gateway is stopping"))
        self._writer.put(Unit(statements))

    async def read(self, sql: str, params: tuple[Param, ...] = ()) -> list[Record]:
        if self._closed:
            raise DependencyUnavailable("The record cannot be read: the gateway is stopping.")
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._readers, self._engine.read, sql, params)
        except self._engine.errors as error:
            fault = self._engine.fault(error)
            if fault is None:
                raise
            reason = f"The record cannot be read: {fault.reason}."
            raise DependencyUnavailable(reason, retry_after=RETRY_AFTER) from error

    async def flush(self) -> None:
        await self.write()

    async def rewrite(self) -> None:
        await self.flush()
        try:
            await asyncio.get_running_loop().run_in_executor(self._readers, self._engine.rewrite)
        except self._engine.errors as error:
            log.warning("What was replaced may still be found on the disk: %s", error)

    async def hear(self, wake: Callable[[], None]) -> None:
        while self._engine.shared:
            try:
                await self._engine.hear(wake)
            except self._engine.errors as error:
                log.info("Notices are looked for every second until they can be heard again: %s", error)
            await asyncio.sleep(HEAR_AGAIN)

    def hurry(self) -> None:
        self._writer.hurried = True

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await asyncio.get_running_loop().run_in_executor(None, self._stop)

    def _stop(self) -> None:
        self._writer.stop()
        self._readers.shutdown()
        self._engine.close()

    def watch(self, listener: RowListener) -> None:
        self._writer.listeners.append(listener)
