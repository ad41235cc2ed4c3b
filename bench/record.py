"""`python -m bench.record CALLS`: is a record of that many calls still usable?

Makes a record of so many calls over a year, chained and sealed as the gateway does it, then searches, verifies, exports,
copies and cuts it. `--store postgres` does so on a real PostgreSQL.
"""

import argparse
import asyncio
import os
import resource
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import uvloop
from tests import postgres

from agent_gate.audit import Cutter, Filters, Sealer, ensure_key, export, row, search, show, verify
from agent_gate.cli.commands.backup import copy_store
from agent_gate.core.call import State
from agent_gate.core.ports import SystemClock
from agent_gate.store import Statement, Store, StoreSettings, open_store
from bench.machine import CACHE

YEAR = 365 * 86_400.0
AGENTS, TOOLS = 50, 200
RARE_EVERY = 100_000
AT_ONCE = 512
DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


def call_id(number: int) -> str:
    return f"{number:032x}"


def rows_of(number: int, at: float) -> tuple[Statement, Statement]:
    """A call as the pipeline records it: what was decided, and how it ended."""
    caller = "rare" if number % RARE_EVERY == RARE_EVERY // 2 else f"agent-{number % AGENTS}"
    tool = f"notes:tool_{number % TOOLS}"
    decided = {
        "arguments": {"text": f"line {number} of many", "limit": 20},
        "arguments_hash": DIGEST,
        "decision": "allow",
        "definition_hash": DIGEST,
        "reason": "a rule allows it",
        "rule": "notes__*",
        "session": f"session-{number % 997}",
        "signature": f"notes__tool_{number % TOOLS}(line {number} of many)",
        "source": "notes",
        "surface": "mcp",
        "where": "permissions.yaml:4",
        "wire": f"notes__tool_{number % TOOLS}",
    }
    settled = {
        "digest": DIGEST,
        "marks": {"received": at, "dispatched": at + 0.001, "replied": at + 0.02},
        "size": 512,
    }
    return (
        row(call_id(number), State.DISPATCHING, at, caller, tool, decided),
        row(call_id(number), State.COMPLETED, at + 0.02, caller, tool, settled),
    )


async def fill(store: Store, calls: int) -> None:
    began = time.time() - YEAR
    for first in range(0, calls, AT_ONCE // 2):
        numbers = range(first, min(first + AT_ONCE // 2, calls))
        made = [one for number in numbers for one in rows_of(number, began + number * YEAR / calls)]
        for one in made[:-1]:
            store.post(one)
        await store.write(made[-1])


async def count(portions: AsyncIterator[str]) -> int:
    lines = 0
    async for portion in portions:
        lines += portion.count("\n")
    return lines


class Watch:
    """Times one thing after the other and says so at once."""

    async def time(self, name: str, work: Callable[[], Awaitable[Any]]) -> Any:
        began, used = time.monotonic(), time.process_time()
        found = await work()
        used = time.process_time() - used
        size = len(found.rows) if hasattr(found, "rows") and isinstance(found.rows, list) else found
        print(
            f"{name:40s} {time.monotonic() - began:9.2f} s, {used:7.2f} s of CPU   {str(size)[:100]}",
            flush=True,
        )
        return found


async def examine(store: Store, key: bytes, calls: int, folder: Path) -> None:
    watch, clock = Watch(), SystemClock()
    middle = time.time() - YEAR / 2
    looked = {
        "newest page": Filters(),
        "newest page of one agent": Filters(caller="agent-7"),
        "newest page of one agent and tool": Filters(caller="agent-7", tool="notes:tool_7"),
        "a rare agent, all of it": Filters(caller="rare"),
        "an agent that there is none of": Filters(caller="nobody"),
        "a day half a year ago": Filters(since=middle, until=middle + 86_400),
        "a text that is common": Filters(text="of many"),
        "a text that is nowhere": Filters(text="not to be found"),
    }
    for name, filters in looked.items():
        await watch.time(f"search: {name}", lambda filters=filters: search(store, filters))  # type: ignore[misc]
    await watch.time("one call by its id", lambda: show(store, call_id(calls // 2)))
    await watch.time("verify", lambda: verify(store, key))
    await watch.time("export as JSON lines", lambda: count(export(store)))
    await watch.time("copy", lambda: copy(store, folder))
    before = time.time() - YEAR * 0.9
    await watch.time("cut a tenth", lambda: Cutter(store, key, clock).cut(before, "bench"))
    await watch.time("verify after the cut", lambda: verify(store, key))
    print(f"most memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


async def copy(store: Store, folder: Path) -> str:
    if store.file is not None:
        return f"{await asyncio.to_thread(copy_store, store.file, folder / 'copy.db')} rows"
    dump = ["pg_dump", "--format=custom", "--file", str(folder / "copy.dump"), os.environ["BENCH_URL"]]
    await asyncio.to_thread(subprocess.run, dump, check=True)
    return f"{(folder / 'copy.dump').stat().st_size >> 20} MiB"


def places(kind: str, folder: Path, life: ExitStack) -> Iterator[StoreSettings]:
    if kind == "sqlite":
        yield StoreSettings(path=folder / "bench.db")
        return
    binaries = postgres.find_binaries()
    if binaries is None:
        raise SystemExit("PostgreSQL is not installed (no initdb found)")
    server = postgres.Server(binaries)
    life.callback(server.remove)
    server.start(durable=True)
    os.environ["BENCH_URL"] = server.new_database()
    yield StoreSettings(type="postgres", url=os.environ["BENCH_URL"])


async def measure(settings: StoreSettings, calls: int, folder: Path) -> None:
    key = ensure_key(folder / "audit.key")
    began = time.monotonic()
    store = open_store(settings)
    try:
        async with Sealer(store, key):
            await fill(store, calls)
        took = time.monotonic() - began
        print(
            f"{calls} calls in {2 * calls} rows: {took:.0f} s, {2 * calls / took:.0f} rows a second",
            flush=True,
        )
        if store.file is not None:
            print(f"the file has {store.file.stat().st_size >> 20} MiB")
        await examine(store, key, calls, folder)
    finally:
        await store.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.record", description=__doc__)
    parser.add_argument("calls", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    wanted = parser.parse_args()
    folder = CACHE / "record"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with ExitStack() as life:
        life.callback(shutil.rmtree, folder, ignore_errors=True)
        for settings in places(wanted.store, folder, life):
            uvloop.run(measure(settings, wanted.calls, folder))


if __name__ == "__main__":
    main()
