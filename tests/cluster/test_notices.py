"""Notices and leases between stores: two stores on one PostgreSQL, as two gateways have them."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from signal import SIGCONT, SIGKILL, SIGSTOP

import pytest
from tests import postgres
from tests.rows import opened, step
from tests.waiting import PATIENCE, until

from agent_gate.audit import Sealer, ensure_key, verify
from agent_gate.core.ports import SystemClock
from agent_gate.errors import ConfigError, DependencyUnavailable
from agent_gate.store import Statement, StoreSettings, open_store
from agent_gate.store import notices as notices_module
from agent_gate.store.gateways import DRAINING, STOPPED, Gateways
from agent_gate.store.leases import Exclusive, Leases
from agent_gate.store.notices import NoticeSubscriber, StoreNotices

CLOCK = SystemClock()
TOKEN = Statement("INSERT INTO tokens (name, hash, created_at) VALUES ('agent:a', '00', 1)")


def settings(url: str, chain: str) -> StoreSettings:
    return StoreSettings(type="postgres", url=url, chain=chain)


@pytest.fixture
def url() -> str:
    return postgres.server().clean_database()


@asynccontextmanager
async def hearing(store) -> AsyncIterator[tuple[StoreNotices, list]]:
    """StoreNotices of that store, and what came of the topic `tokens`."""
    notices, heard = StoreNotices(store, CLOCK), []

    async def take(keys):
        heard.append(None if keys is None else sorted(keys))

    notices.subscribe("tokens", take)
    await notices.begin()
    running = asyncio.ensure_future(notices.run())
    try:
        yield notices, heard
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def came(heard: list, key: str):
    return lambda: any(key in (one or ()) for one in heard)


async def test_a_change_is_told_to_the_other_store_without_a_look_and_not_to_the_one_that_made_it(
    url, monkeypatch
):
    assert notices_module.LOOK_SECONDS <= 1, "which counts where nothing is heard"
    monkeypatch.setattr(notices_module, "LOOK_SECONDS", 10 * PATIENCE)
    async with (
        opened(settings(url, "one")) as one,
        opened(settings(url, "two")) as two,
        hearing(one) as (_, own),
        hearing(two) as (notices, heard),
    ):
        await one.write(TOKEN)
        await until(came(heard, "agent:a"))
        assert own == []
        assert notices.lag < PATIENCE


async def test_what_was_rolled_back_is_told_to_nobody(url):
    async with (
        opened(settings(url, "one")) as one,
        opened(settings(url, "two")) as two,
        hearing(two) as (_, heard),
    ):
        broken = Statement("INSERT INTO nowhere (x) VALUES (1)")
        with pytest.raises(Exception, match="nowhere"):
            await one.write(TOKEN, broken)
        await one.write(Statement(TOKEN.sql.replace("agent:a", "agent:b")))
        await until(came(heard, "agent:b"))
        assert heard == [["agent:b"]]


async def test_a_notice_is_found_though_the_connection_that_hears_is_lost(url):
    async with (
        opened(settings(url, "one")) as one,
        opened(settings(url, "two")) as two,
        hearing(two) as (_, heard),
    ):
        name = "agent-gate two notices"

        async def listens() -> bool:
            sql = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}'"
            return await one.read(sql) == [(1,)]

        await until(listens)
        ended = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'"
        await one.read(ended)
        await one.write(TOKEN)
        assert await until(came(heard, "agent:a"))
        assert await until(listens)


async def test_who_could_not_take_a_notice_is_told_again(url):
    async with opened(settings(url, "one")) as one, opened(settings(url, "two")) as two:
        notices, tries = StoreNotices(two, CLOCK), []

        async def take(keys):
            tries.append(sorted(keys))
            if len(tries) == 1:
                raise ConfigError("not now")

        notices.subscribe("tokens", take)
        await notices.begin()
        await one.write(TOKEN)
        for count in (1, 2):
            await notices.look()
            await until(lambda count=count: len(tries) == count)
        assert tries == [["agent:a"], ["agent:a"]]


async def test_a_store_of_one_gateway_hears_and_writes_nothing(tmp_path):
    async with opened(StoreSettings(path=tmp_path / "gate.db", chain="home")) as store:
        notices, gateways = StoreNotices(store, CLOCK), Gateways(store, CLOCK, "1")
        await asyncio.wait_for(notices.run(), PATIENCE)
        await gateways.join()
        await gateways.beat("https://here", {"running": 1})
        [alone] = await gateways.list_all()
        assert (alone.id, alone.address, alone.alive, alone.body) == (
            "home",
            "https://here",
            True,
            {"running": 1},
        )
        assert await store.read("SELECT 1 FROM gateways UNION ALL SELECT 1 FROM notices") == []


async def test_gateways_see_each_other_and_one_that_stopped_is_dead_at_once(url):
    async with opened(settings(url, "one")) as one, opened(settings(url, "two")) as two:
        first, second = Gateways(one, CLOCK, "1.0"), Gateways(two, CLOCK, "1.1")
        await first.join()
        await second.join()
        await first.beat("https://one:8443", {"running": 3})
        await second.look()
        seen = second.known["one"]
        assert (seen.version, seen.address, seen.alive, seen.body) == (
            "1.0",
            "https://one:8443",
            True,
            {"running": 3},
        )
        await first.say(DRAINING)
        await second.look()
        assert second.is_alive("one")
        assert second.known["one"].state == DRAINING
        await first.say(STOPPED)
        await second.look()
        assert not second.is_alive("one")
        [(gone, head)] = await second.list_unsettled()
        assert gone == "one"
        await second.settle(gone, head)
        assert await second.list_unsettled() == []


async def test_the_second_of_one_id_does_not_start_and_names_the_first(url):
    async with opened(settings(url, "one")) as store:
        await Gateways(store, CLOCK, "1").join()
        with pytest.raises(ConfigError, match=r"writes as 'one' .*\(pid \d+ on .+, since 20.+\)"):
            open_store(settings(url, "one"))


async def test_an_id_whose_lease_has_ended_is_taken_from_a_session_that_hangs(url):
    """A machine that was cut off leaves a session on the server for hours."""
    store = open_store(settings(url, "one"))
    try:
        await Gateways(store, CLOCK, "1").join()
        await store.write(Statement("UPDATE gateways SET ends_at = 0"))
        async with opened(settings(url, "one")) as second:
            await second.write(TOKEN)
            lost = asyncio.ensure_future(store.write(Statement("DELETE FROM tokens")))
            await asyncio.wait([lost], timeout=5)
            assert await second.read("SELECT count(*) FROM tokens") == [(1,)]
            store.hurry()
            with pytest.raises(Exception, match=r"locked by another session|does not answer"):
                await lost
    finally:
        await store.close()


async def test_an_exclusive_thing_is_done_by_one_and_taken_over_when_that_one_leaves(url):
    async with opened(settings(url, "one")) as one, opened(settings(url, "two")) as two:
        did: list[str] = []

        def thing(store, name: str) -> Exclusive:
            async def began() -> None:
                did.append(f"{name} began")

            async def ended() -> None:
                did.append(f"{name} ended")

            return Exclusive(store, CLOCK, "bot", began, ended)

        first, second = thing(one, "one"), thing(two, "two")
        for exclusive in (first, second, first, second):
            await exclusive.look()
        assert did == ["one began"]
        assert await Leases(two, CLOCK).list_holders() == {"bot": "one"}
        await first.close()
        await second.look()
        assert did == ["one began", "one ended", "two began"]
        await one.write(Statement("UPDATE leases SET holder = 'one'"))
        await second.look()
        assert did[-1] == "two ended"


async def test_leases_of_the_dead_are_forgotten_and_those_that_are_held_stay(url):
    async with opened(settings(url, "one")) as one, opened(settings(url, "two")) as two:
        first, second = Leases(one, CLOCK), Leases(two, CLOCK)
        for name in ("held", "left"):
            await first.take(name, 60, "one")
        await one.write(Statement("UPDATE leases SET expires_at = expires_at - 61 WHERE name = 'left'"))
        await second.forget_over()
        assert await one.read("SELECT name, holder FROM leases") == [("held", "one")]
        assert await second.take("left", 60, "two") == "two"
        assert await second.take("held", 60, "two") is None


async def test_what_one_does_alone_is_given_up_before_another_can_take_it_where_the_database_is_not_heard(
    url,
):
    """The session of the writer hangs: it neither answers nor ends."""
    async with opened(settings(url, "one")) as one, opened(settings(url, "two")) as two:
        ended = asyncio.Event()

        async def began() -> None: ...

        async def end() -> None:
            ended.set()

        first, second = Exclusive(one, CLOCK, "bot", began, end), Exclusive(two, CLOCK, "bot", began, end)
        await first.look()
        server, writer = postgres.server(), f"agent-gate one pid {os.getpid()}"
        assert server.signal_backends(writer, SIGSTOP)
        try:

            async def is_given_up() -> bool:
                await first.look()
                await second.look()
                assert not second.held
                return ended.is_set()

            await until(is_given_up)

            async def is_taken() -> bool:
                await second.look()
                return second.held

            await until(is_taken)
        finally:
            server.signal_backends(writer, SIGCONT)
        await first.look()
        assert not first.held


async def test_a_gateway_that_hangs_in_the_middle_of_a_change_holds_up_the_others_for_seconds_only(url):
    async with opened(settings(url, "one")) as one, opened(settings(url, "two")) as two:
        await one.write(TOKEN)
        change = Statement("UPDATE tokens SET created_at = 2 WHERE name = 'agent:a'", expect=1)
        one._engine.begin()
        one._engine.execute(change.sql, ())
        async with asyncio.timeout(PATIENCE):
            await two.write(change)
        assert await two.read("SELECT created_at FROM tokens") == [(2.0,)]
        await one.write(change)


async def test_two_gateways_that_stand_in_each_others_way_both_get_through(url):
    async with opened(settings(url, "one")) as one, opened(settings(url, "two")) as two:
        await one.write(*(Statement(TOKEN.sql.replace(":a", f":{name}")) for name in "ab"))

        def change(name: str) -> Statement:
            return Statement(
                "UPDATE tokens SET created_at = created_at + 1 WHERE name = ?", (f"agent:{name}",), 1
            )

        for _ in range(40):
            await asyncio.gather(one.write(change("a"), change("b")), two.write(change("b"), change("a")))
        assert await one.read("SELECT created_at FROM tokens") == [(81.0,), (81.0,)]
        assert one.healthy
        assert two.healthy


async def test_notices_go_on_after_the_database_was_killed_and_came_back(url):
    server = postgres.server()
    async with (
        opened(settings(url, "one")) as one,
        opened(settings(url, "two")) as two,
        hearing(two) as (_, heard),
    ):
        server.signal_backends("agent-gate two", SIGKILL)

        async def written() -> bool:
            try:
                await one.write(TOKEN)
            except DependencyUnavailable:
                return False
            return True

        await until(written)
        assert await until(came(heard, "agent:a"))


async def test_the_record_of_another_gateway_is_checked_by_its_links_and_its_seals_are_left_to_it(
    url, tmp_path
):
    async with opened(settings(url, "one")) as one, opened(settings(url, "two")) as two:
        keys = {name: ensure_key(tmp_path / name) for name in ("one", "two")}
        for store, name in ((one, "one"), (two, "two")):
            async with Sealer(store, keys[name]):
                await store.write(step(f"of {name}"))
        report = await verify(two, keys["two"])
        assert (report.ok, report.rows, report.seals, report.elsewhere) == (True, 2, 2, ("one",))
        await one.write(Statement("UPDATE record SET caller = 'mallory' WHERE chain = 'one'"))
        [problem] = (await verify(two, keys["two"])).problems
        assert (problem.chain, problem.kind) == ("one", "changed")
        await one.write(Statement("UPDATE seals SET mac = '00' WHERE chain = 'two'"))
        assert "forged seal" in {problem.kind for problem in (await verify(two, keys["two"])).problems}


async def test_what_comes_while_somebody_is_being_told_waits_for_no_other_look():
    heard = []

    async def take(keys):
        heard.append(keys)
        if len(heard) == 1:
            one.owe({"b"})

    one = NoticeSubscriber(take)
    one.owe({"a"})
    await one.tell()
    assert heard == [{"a"}, {"b"}]
    assert not one.due
