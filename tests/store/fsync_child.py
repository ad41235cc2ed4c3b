"""Run under the failing fsync: what a store does before, during and after. Prints what it saw as JSON."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

from tests.rows import put
from tests.waiting import until

from agent_gate.errors import DependencyUnavailable
from agent_gate.store import StoreSettings, open_store, sqlite


async def attempt(store, name: str) -> str:
    try:
        await store.write(put(name))
    except DependencyUnavailable as error:
        return error.message
    return "written"


async def main(path: Path, fail: Callable[[], None], work: Callable[[], None]) -> None:
    sqlite.CHECKPOINT_COMMITS = 2
    store = open_store(StoreSettings(path=path))
    seen = [await attempt(store, "before")]
    fail()
    seen += [await attempt(store, f"during {i}") for i in range(3)]

    await until(lambda: not store.healthy)
    work()
    seen.append(await attempt(store, "after"))
    store.post(put("posted"))
    await store.close()
    print(json.dumps(seen))


switch = Path(sys.argv[2])
asyncio.run(main(Path(sys.argv[1]), switch.touch, switch.unlink))
