"""After a restart: which calls were not finished, found without reading the whole record."""

from tests import postgres
from tests.rows import opened, step

from agent_gate.audit import Sealer, read_unfinished
from agent_gate.audit.seal import open_from
from agent_gate.core.call import State
from agent_gate.store import Store, StoreSettings


async def _tell(store: Store, call: str, *states: State) -> None:
    for state in states:
        await store.write(step(call, state))


STORIES = {
    "waits": (State.PENDING,),
    "approved": (State.PENDING, State.APPROVED),
    "runs": (State.PENDING, State.APPROVED, State.DISPATCHING),
    "runs-at-once": (State.DISPATCHING,),
    "done": (State.DISPATCHING, State.COMPLETED),
    "denied": (State.PENDING, State.DENIED),
    "expired": (State.PENDING, State.EXPIRED),
    "withdrawn": (State.PENDING, State.WITHDRAWN),
    "failed": (State.DISPATCHING, State.FAILED),
    "unknown": (State.DISPATCHING, State.UNKNOWN),
    "refused": (State.REFUSED,),
}


async def test_every_unfinished_call_comes_with_its_whole_story(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        for call, states in STORIES.items():
            await _tell(store, call, *states)
        found = [(row.call, row.state) for row in await read_unfinished(store, "home")]
        open_calls = ["waits", "approved", "runs", "runs-at-once"]
        assert found == [(call, state) for call in open_calls for state in STORIES[call]]


async def test_a_seal_remembers_where_the_oldest_unfinished_call_begins(
    settings: StoreSettings, key: bytes
) -> None:
    async with opened(settings) as store:
        assert await open_from(store, "home") == 1
        async with Sealer(store, key):
            await _tell(store, "old", State.DISPATCHING, State.COMPLETED)
            await _tell(store, "waits", State.PENDING)
            await _tell(store, "new", State.DISPATCHING, State.COMPLETED)
        assert await open_from(store, "home") == 3
        assert [row.call for row in await read_unfinished(store, "home")] == ["waits"]
        async with Sealer(store, key):
            await _tell(store, "waits", State.APPROVED)
            await _tell(store, "newer", State.DISPATCHING)
        assert await open_from(store, "home") == 3
        async with Sealer(store, key):
            await _tell(store, "waits", State.DISPATCHING, State.COMPLETED)
        assert await open_from(store, "home") == 7
        assert [row.call for row in await read_unfinished(store, "home")] == ["newer"]
        async with Sealer(store, key):
            await _tell(store, "newer", State.UNKNOWN)
        assert await open_from(store, "home") == 11
        assert await read_unfinished(store, "home") == []


async def test_a_call_that_another_gateway_took_over_is_that_gateways_to_finish(key: bytes) -> None:
    url = postgres.server().new_database()
    home, office = (StoreSettings(type="postgres", url=url, chain=chain) for chain in ("home", "office"))
    async with opened(home) as one, opened(office) as two:
        async with Sealer(one, key):
            await _tell(one, "a", State.PENDING)
            await _tell(two, "a", State.APPROVED, State.DISPATCHING)
            assert await read_unfinished(one, "home") == []
            rows = await read_unfinished(two, "office")
            assert [(row.chain, row.state) for row in rows] == [
                ("home", "pending"),
                ("office", "approved"),
                ("office", "dispatching"),
            ]
            await _tell(two, "a", State.COMPLETED)
            await _tell(one, "b", State.PENDING)
        assert await open_from(one, "home") == 2


async def test_a_long_record_is_sealed_piece_by_piece(settings: StoreSettings, key: bytes) -> None:
    rows = 3000
    async with opened(settings) as store:
        async with Sealer(store, key):
            for i in range(rows):
                store.post(step(f"c{i}", State.REFUSED))
        assert await open_from(store, "home") == rows + 1
