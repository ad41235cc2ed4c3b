"""A gateway that is gone for good: others end what it left and cut its chain, and what is left verifies everywhere, also if
it comes back."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from tests.cluster.several import several
from tests.gateway import HeldReply
from tests.waiting import PATIENCE, wait_until

WEEK = 8 * 86_400


def rows_of(database, chain):
    with psycopg.connect(database) as connection:
        return connection.execute("SELECT count(*) FROM record WHERE chain = %s", (chain,)).fetchone()[0]


def read(database, sql):
    with psycopg.connect(database) as connection:
        return connection.execute(sql).fetchone()[0]


def run(database, sql, *params):
    with psycopg.connect(database, autocommit=True) as connection:
        return connection.execute(sql, params).rowcount


def cut(gateway):
    return gateway.admin.request("POST", "/api/audit/cut", {"days": 0})["rows"]


def verify(gateway):
    return gateway.admin.get("/api/audit/verify")


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_the_chain_of_a_gateway_that_is_gone_is_cut_by_another_and_goes_on_when_it_comes_back(
    tmp_path, database, api, how
):
    with several(tmp_path, database, api) as gateways:
        one, two = gateways.start("one"), gateways.start("two")
        for gateway in (one, two) * 5:
            assert gateway.call("read").status == 200
        two.admin.get("/api/audit/verify")
        getattr(gateways, how)("one")
        wait_until(lambda: not two.admin.get("/api/gateways")[0]["alive"])
        before = rows_of(database, "one")
        cut(two)
        assert rows_of(database, "one") == before, "it may come back"
        run(database, "UPDATE gateways SET ends_at = ends_at - %s WHERE id = 'one'", WEEK)
        assert cut(two) >= before - 1
        assert rows_of(database, "one") == 1
        told = verify(two)
        assert told["ok"], told["problems"]
        assert {one["chain"] for one in told["cuts"]} == {"one", "two"}
        one = gateways.start("one")
        assert one.call("read").status == 200
        for gateway in (one, two):
            told = verify(gateway)
            assert told["ok"], told["problems"]
        assert run(database, "UPDATE cuts SET made_by = 'somebody else' WHERE chain = 'one'") == 1
        [problem, *_] = verify(one)["problems"]
        assert "not made with this key" in problem["text"]


def test_what_a_gateway_began_that_came_back_and_died_before_it_said_so_is_ended(tmp_path, database, api):
    held = api.replies["/write"] = HeldReply()
    with several(tmp_path, database, api) as gateways, ThreadPoolExecutor(1) as pool:
        one, two = gateways.start("one"), gateways.start("two")
        assert one.call("read").status == 200
        gateways.kill("one")
        run(database, "UPDATE gateways SET ends_at = 0 WHERE id = 'one'")
        settled = wait_until(lambda: read(database, "SELECT settled FROM gateways WHERE id = 'one'"))
        one = gateways.start("one")
        running = pool.submit(one.call, "run", {"n": 1})
        assert held.arrived.wait(PATIENCE)
        gateways.kill("one")
        run(database, "UPDATE gateways SET ends_at = 0, settled = %s WHERE id = 'one'", settled)
        call = read(database, "SELECT call FROM record WHERE state = 'dispatching' ORDER BY at DESC LIMIT 1")
        wait_until(lambda: two.story(call)[-1] == "unknown")
        held.go_on.set()
        assert running.exception() is not None
