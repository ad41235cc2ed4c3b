"""CPU per awaited durable row of the record at 1, 16 and 64 waiters: `python bench/store_rows.py [rows]`.

`loop` is the CPU of the event loop's thread, `total` that of the process; both per row, in microseconds.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

import uvloop

from agent_gate.audit.record import row
from agent_gate.core.call import State, new_id
from agent_gate.store import Statement, Store, StoreSettings, open_store

BODY = {
    "arguments_hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "decision": {"effect": "allow", "rule": "time__*", "where": "permissions.yaml:4"},
    "session": "s-1",
    "signature": "time__convert(source=UTC, target=CET)",
    "surface": "mcp",
}


def prepare(rows: int) -> list[Statement]:
    return [row(new_id(), State.DISPATCHING, time.time(), "coder", "time:convert", BODY) for _ in range(rows)]


async def waiter(store: Store, rows: list[Statement]) -> None:
    for statement in rows:
        await store.write(statement)


async def measure(store: Store, waiters: int, rows: int) -> str:
    statements = prepare(rows)
    prepared = [statements[first::waiters] for first in range(waiters)]
    wall, loop, total = time.perf_counter(), time.thread_time(), time.process_time()
    await asyncio.gather(*(waiter(store, share) for share in prepared))
    wall, loop, total = time.perf_counter() - wall, time.thread_time() - loop, time.process_time() - total
    each = 1e6 / rows
    return f"{waiters:3d} waiters {rows / wall:8.0f} rows/s   loop {loop * each:5.1f}   total {total * each:6.1f}"


async def main(rows: int) -> None:
    with tempfile.TemporaryDirectory(dir=".") as folder:
        store = open_store(StoreSettings(path=Path(folder) / "bench.db"))
        for waiters in (1, 16, 64):
            print(await measure(store, waiters, rows // 10 if waiters == 1 else rows))
        await store.close()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 40_000))
