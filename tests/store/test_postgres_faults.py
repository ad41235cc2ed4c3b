"""What the PostgreSQL store does when the connection or the server goes away, against a real server."""

import asyncio
import contextlib
import re
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import postgres
from tests.rows import opened, put, step, values
from tests.waiting import PATIENCE, until

from agent_gate.audit import Sealer, ensure_key, verify
from agent_gate.errors import ConfigError, DependencyUnavailable, InvalidArgs
from agent_gate.store import Conflict, Statement, Store, StoreSettings, open_store

pytest.importorskip("psycopg")
from psycopg.errors import LockNotAvailable

from agent_gate.store.postgres import PostgresEngine

COUNT_UP = Statement("UPDATE kv SET value = value || '+' WHERE name = 'count'")
ROWS_ALONE = re.compile(rb"B....\0rows_\d+\0", re.DOTALL)
"""Rows that are their own commit, as they travel."""


@pytest.fixture
def settings() -> StoreSettings:
    return StoreSettings(type="postgres", url=postgres.server().clean_database(), chain="home")


async def test_a_session_ended_while_idle_is_replaced_unnoticed(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        await store.write(step("one"))
        await values(store)
        assert postgres.server().signal_backends("agent-gate home", signal.SIGTERM) == 2
        await store.write(step("two"))
        assert await store.read("SELECT call, seq FROM record ORDER BY seq") == [("one", 1), ("two", 2)]


async def test_a_stopped_server_refuses_keeps_what_was_posted_and_heals(tmp_path: Path) -> None:
    binaries = postgres.find_binaries()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed")
    server = postgres.Server(binaries)
    server.start()
    try:
        settings = StoreSettings(type="postgres", url=server.new_database(), chain="home")
        async with opened(settings) as store:
            await store.write(step("before"))
            await asyncio.to_thread(server.stop)
            store.post(step("posted"), put("posted"))
            with pytest.raises(DependencyUnavailable, match="does not answer as it should") as refused:
                await store.write(step("during"))
            assert refused.value.retry_after
            with pytest.raises(DependencyUnavailable, match="cannot be read"):
                await store.read("SELECT 1")
            await asyncio.to_thread(server.start)
            await until(lambda: store.healthy)
            await store.write(step("after"))
            found = await store.read("SELECT call FROM record ORDER BY seq")
            assert found == [("before",), ("posted",), ("after",)]
            assert (await verify(store, ensure_key(tmp_path / "key"))).ok
    finally:
        server.remove()


async def test_a_server_that_no_longer_answers_is_given_up(
    settings: StoreSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_gate.store.postgres.ANSWER_TIMEOUT", 0.4)
    async with opened(settings) as store:
        await store.write(put("before"))
        postgres.server().signal_backends("agent-gate home", signal.SIGSTOP)
        try:
            async with asyncio.timeout(PATIENCE):
                with pytest.raises(DependencyUnavailable):
                    await store.write(put("during"))
        finally:
            postgres.server().signal_backends("agent-gate home", signal.SIGCONT)
        await until(lambda: store.healthy)
        await store.write(put("after"))
        assert set(await values(store)) == {"before", "after"}


class Cable:
    """A socket between store and server that can be cut at a commit, before or after the server hears of it."""

    def __init__(self, folder: Path, target: Path) -> None:
        self._target = target / ".s.PGSQL.5432"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        self.cut: str | None = None
        self._prepared: set[bytes] = set()
        self.down = threading.Event()
        self.refused = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.down.is_set():
                    client.close()
                    self.refused += 1
                    continue
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._target))
                threading.Thread(target=self._pump, args=(client, server, True), daemon=True).start()
                threading.Thread(target=self._pump, args=(server, client, False), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, upward: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if upward and self._commits(data) and self.cut:
                    self._cut(data, source, sink)
                    return
                sink.sendall(data)
        for end in (source, sink):
            end.close()

    def _commits(self, data: bytes) -> bool:
        """Whether a commit is in there; one that is sent often has a name, told when it is prepared."""
        self._prepared.update(re.findall(rb"(_pg3_[0-9]+)\0COMMIT\0", data))
        return (
            b"COMMIT" in data
            or ROWS_ALONE.search(data) is not None
            or any(b"\0%b\0" % name in data for name in self._prepared)
        )

    def _cut(self, data: bytes, client: socket.socket, server: socket.socket) -> None:
        mode, self.cut = self.cut, None
        client.shutdown(socket.SHUT_RDWR)
        if mode == "after":
            server.sendall(data)
            server.shutdown(socket.SHUT_WR)
        else:
            server.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def cable(settings: StoreSettings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cable]:
    made = Cable(tmp_path_factory.mktemp("c"), postgres.server().folder)
    yield made
    made.close()


def through(cable: Cable, settings: StoreSettings) -> StoreSettings:
    assert settings.url is not None
    folder = Path(cable._listener.getsockname()).parent
    return StoreSettings(type="postgres", url=settings.url.split("?")[0] + f"?host={folder}", chain="home")


async def test_a_commit_whose_answer_was_lost_counts_and_is_not_repeated(
    settings: StoreSettings, cable: Cable
) -> None:
    async with opened(through(cable, settings)) as store:
        await store.write(put("count", "0"))
        cable.cut = "after"
        assert await store.write(COUNT_UP, step("one")) == [1, 1]
        assert cable.cut is None
        await store.write(step("two"))
        assert await values(store) == {"count": "0+"}
        assert await store.read("SELECT call, seq FROM record ORDER BY seq") == [("one", 1), ("two", 2)]


@pytest.mark.parametrize("rows", [1, 100])
@pytest.mark.parametrize("cut", ["before", "after"])
async def test_rows_that_commit_alone_are_written_once_when_the_connection_is_cut(
    settings: StoreSettings, cable: Cable, cut: str, rows: int
) -> None:
    """Those that did not arrive are sent again: the chain's end proves that they are not there."""

    async with opened(through(cable, settings)) as store:
        await asyncio.gather(*(store.write(step(f"early-{number}")) for number in range(rows)))
        cable.cut = cut
        written = await asyncio.gather(*(store.write(step(f"late-{number}")) for number in range(rows)))
        assert written == [[1]] * rows
        assert cable.cut is None
        await store.write(step("last"))
        found = await store.read("SELECT call, seq FROM record ORDER BY seq")
        assert found[rows:] == [
            *((f"late-{number}", rows + number + 1) for number in range(rows)),
            ("last", 2 * rows + 1),
        ]


async def test_one_bad_row_among_many_is_refused_alone_and_the_others_are_chained(
    settings: StoreSettings, tmp_path: Path
) -> None:
    async with opened(settings) as store:
        await store.write(step("taken"))
        calls = [*(f"c{number}" for number in range(150)), "taken", "with a\0nul"]
        written = await asyncio.gather(*(store.write(step(call)) for call in calls), return_exceptions=True)
        assert [type(found) for found in written] == [list] * 150 + [Conflict, InvalidArgs]
        assert await store.read("SELECT count(*), max(seq) FROM record") == [(151, 151)]
        assert (await verify(store, ensure_key(tmp_path / "key"))).ok


async def test_a_server_that_stops_answering_in_the_middle_of_rows_is_given_up(
    settings: StoreSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_gate.store.postgres.ANSWER_TIMEOUT", 0.4)
    async with opened(settings) as store:
        await store.write(step("before"))
        postgres.server().signal_backends("agent-gate home", signal.SIGSTOP)
        try:
            writing = asyncio.ensure_future(store.write(step("during")))
            await until(lambda: not store.healthy)
        finally:
            postgres.server().signal_backends("agent-gate home", signal.SIGCONT)
        with contextlib.suppress(DependencyUnavailable):
            await writing
        landed = writing.exception() is None
        await until(lambda: store.healthy)
        await store.write(step("after"))
        found = await store.read("SELECT call FROM record ORDER BY seq")
        assert found == [("before",), *([("during",)] if landed else []), ("after",)]


async def test_a_commit_that_never_arrived_is_refused_and_its_posts_are_written_once(
    settings: StoreSettings, cable: Cable
) -> None:
    async with opened(through(cable, settings)) as store:
        await store.write(put("count", "0"))
        cable.cut = "before"
        store.post(COUNT_UP)
        with pytest.raises(DependencyUnavailable):
            await store.write(step("lost"))
        await until(lambda: store.healthy)
        assert await values(store) == {"count": "0+"}
        assert await store.read("SELECT call FROM record") == []


async def test_posts_in_doubt_are_written_once_when_the_server_is_back(
    settings: StoreSettings, cable: Cable
) -> None:
    async with opened(through(cable, settings)) as store:
        await store.write(put("count", "0"))
        cable.down.set()
        cable.cut = "after"
        store.post(COUNT_UP)
        doubtful = asyncio.ensure_future(store.write(step("in doubt")))
        await until(lambda: not store.healthy)
        with pytest.raises(DependencyUnavailable):
            await store.write(step("refused"))
        store.post(put("later"))
        tried = cable.refused

        await until(lambda: cable.refused > tried + 1)
        assert not doubtful.done()
        cable.down.clear()
        assert await doubtful == [1]
        await until(lambda: store.healthy)
        await store.flush()
        assert await values(store) == {"count": "0+", "later": "1"}
        await store.write(step("next"))
        found = await store.read("SELECT call, seq FROM record ORDER BY seq")
        assert found == [("in doubt", 1), ("next", 2)]


async def test_a_text_with_a_nul_is_refused_alone_and_what_reads_by_it_is_too(
    settings: StoreSettings,
) -> None:
    async with opened(settings) as store:
        written = await asyncio.gather(
            *(store.write(put(name)) for name in ("one", "t\0wo", "three")), return_exceptions=True
        )
        assert [type(found) for found in written] == [list, InvalidArgs, list]
        with pytest.raises(InvalidArgs, match="NUL character"):
            await store.read("SELECT value FROM kv WHERE name = ?", ("t\0wo",))
        assert set(await values(store)) == {"one", "three"}


@pytest.mark.parametrize("ending", ["the server is back", "the store is closed"])
async def test_a_commit_in_doubt_that_never_arrived_is_refused_when(
    settings: StoreSettings, cable: Cable, ending: str
) -> None:
    async with opened(through(cable, settings)) as store:
        await store.write(put("before"))
        cable.down.set()
        cable.cut = "before"
        doubtful = asyncio.ensure_future(store.write(step("in doubt")))
        await until(lambda: not store.healthy)
        assert not doubtful.done()
        if ending == "the server is back":
            cable.down.clear()
        else:
            await store.close()
        with pytest.raises(DependencyUnavailable):
            await doubtful
    async with opened(settings) as store:
        assert await store.read("SELECT call FROM record") == []


@pytest.mark.parametrize("doubtful", ["a seal", "the last flush"])
async def test_the_sealer_ends_while_the_server_is_away_and_what_it_wrote_in_doubt(
    settings: StoreSettings, cable: Cable, tmp_path: Path, doubtful: str
) -> None:
    def lose(*_grown: object) -> None:
        cable.down.set()
        cable.cut = "before"

    async with opened(through(cable, settings)) as store:
        sealer = await Sealer(store, ensure_key(tmp_path / "key"), every=1).__aenter__()
        if doubtful == "a seal":
            store.watch(lose)
            await store.write(step("one"))
            await until(lambda: not store.healthy)
        else:
            lose()
        ending = asyncio.create_task(sealer.__aexit__(None, None, None))
        ended, _ = await asyncio.wait([ending], timeout=PATIENCE)
        assert ended, "the sealer waits for a server that is away"
        await ending


async def test_a_doubt_outlasts_a_connection_on_which_it_could_not_be_settled(
    settings: StoreSettings, cable: Cable, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle, tried = PostgresEngine._last_commit, []

    def locked_at_first(engine: PostgresEngine) -> str | None:
        tried.append(engine)
        if len(tried) < 3:
            raise LockNotAvailable("locked")
        return settle(engine)

    async with opened(through(cable, settings)) as store:
        await store.write(put("count", "0"))
        monkeypatch.setattr(PostgresEngine, "_last_commit", locked_at_first)
        cable.cut = "after"
        store.post(COUNT_UP)
        assert await store.write(step("in doubt")) == [1]
        await store.flush()
        assert await values(store) == {"count": "0+"}


def test_an_unreachable_server_is_a_configuration_error_without_the_password(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    url = f"postgresql://gate:hunter2@/nothing?host={tmp_path}"
    with pytest.raises(ConfigError, match="cannot be reached") as refused:
        open_store(StoreSettings(type="postgres", url=url))
    assert "hunter2" not in str(refused.value)


def test_a_store_needs_a_place() -> None:
    with pytest.raises(ConfigError, match="storage needs"):
        open_store(StoreSettings(type="postgres"))


async def test_two_gateways_share_a_database_each_with_its_own_chain(
    settings: StoreSettings, tmp_path: Path
) -> None:
    second = StoreSettings(type="postgres", url=settings.url, chain="office")
    async with opened(settings) as one, opened(second) as two:
        await asyncio.gather(
            *(store.write(step(f"{store.chain}-{i}")) for i in range(30) for store in (one, two))
        )
        assert one.head.seq == two.head.seq == 30
        report = await verify(one, ensure_key(tmp_path / "key"))
        assert (report.rows, report.ok) == (60, True)


async def travels_alone(store: Store, call: str) -> bool:
    """Whether the rows of a call are their own commit; any other leaves a token."""
    token = "SELECT value FROM kv WHERE name = 'commit:home'"
    before = await store.read(token)
    await store.write(step(call))
    return await store.read(token) == before


async def test_rows_travel_alone_after_others_were_rolled_back(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        await store.write(step("first"))
        for number in range(12):
            with pytest.raises(Conflict):
                await store.write(put(f"mark {number}"), step("first"))
        assert await travels_alone(store, "second")


async def test_rows_travel_alone_again_after_the_server_forgot_how(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        assert await travels_alone(store, "first")
        await store.write(Statement("DEALLOCATE ALL"))
        assert not await travels_alone(store, "second")
        assert await travels_alone(store, "third")
        assert await store.read("SELECT call, seq FROM record ORDER BY seq") == [
            ("first", 1),
            ("second", 2),
            ("third", 3),
        ]
