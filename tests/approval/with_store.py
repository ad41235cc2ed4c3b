"""A scenario with a real store of its own."""

import asyncio

from agent_gate.store import StoreSettings, open_store


def with_store(tmp_path, scenario):
    async def main():
        store = open_store(StoreSettings(path=tmp_path / "gate.db"))
        try:
            await scenario(store)
        finally:
            await store.close()

    asyncio.run(main())
