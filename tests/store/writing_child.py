"""Write units to the store named by the JSON argument, and print the name of each once it is durable."""

import asyncio
import itertools
import json
import sys
from pathlib import Path

from tests.rows import put, step

from agent_gate.core.call import State
from agent_gate.store import Store, StoreSettings, open_store


async def write(store: Store, worker: int) -> None:
    for i in itertools.count():
        name = f"{worker}-{i}"
        await store.write(step(name))
        await store.write(step(name, State.COMPLETED), put(name), put(f"{name}-too"))
        store.post(put(f"{name}-posted"))
        print(name, flush=True)


async def main(named: dict[str, str]) -> None:
    path = Path(named.pop("path")) if "path" in named else None
    store = open_store(StoreSettings(path=path, **named))
    await asyncio.gather(*(write(store, worker) for worker in range(8)))


asyncio.run(main(json.loads(sys.argv[1])))
