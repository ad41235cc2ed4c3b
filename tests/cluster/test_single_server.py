"""A server that may run once only runs on one gateway, and agents on every gateway reach its tools."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path

import psycopg
import pytest
from tests import postgres
from tests.cluster.several import Several
from tests.gateway import TOKEN, Api
from tests.waiting import wait_until

SERVER = str(Path(__file__).with_name("tally_server.py"))
MODERN = "2026-07-28"
RULES = "rules: [{pattern: 'tally__*', action: allow}]"


class Tally(Several):
    """Two gateways with one server that may run once, on the first of them; and what that server noted."""

    def __init__(self, folder, database, api):
        self.journal = Path(folder) / "journal"
        args = f"[{SERVER}, {self.journal}]"
        super().__init__(
            folder,
            database,
            api,
            more=f"servers: {{tally: {{command: {sys.executable}, args: {args}, single: true}}}}",
        )
        self.begin("one")
        self.begin("two")

    def files(self, name, more=""):
        return super().files(name, more) | {"permissions.yaml": RULES}

    def begin(self, name):
        gateway = self.start(name)
        wait_until(lambda: state(gateway)["state"] == "ready")
        return gateway

    @property
    def one(self):
        return self.running["one"]

    @property
    def two(self):
        return self.running["two"]

    def noted(self, did):
        lines = self.journal.read_text().splitlines() if self.journal.exists() else []
        return [one for one in map(json.loads, lines) if one["did"] == did]

    def ask(self, sql, *params):
        with psycopg.connect(self.database, autocommit=True) as connection:
            cursor = connection.execute(sql, params)
            return cursor.fetchall() if cursor.description else []


def state(gateway):
    [source] = [s for s in gateway.admin.get("/api/status")["sources"] if s["key"] == "tally"]
    return source


def said(reply):
    assert reply.status == 200, reply.body
    return json.loads(reply.json["data"])


def tally(gateway, n):
    return said(gateway.call("tally__tally", {"n": n}))


@pytest.fixture
def api():
    with Api() as one:
        yield one


@pytest.fixture
def fresh(tmp_path, api):
    gateways = Tally(tmp_path, postgres.server().new_database(), api)
    yield gateways
    gateways.close()


@pytest.fixture(scope="module")
def gates(tmp_path_factory):
    with Api() as api:
        gateways = Tally(tmp_path_factory.mktemp("tally"), postgres.server().new_database(), api)
        yield gateways
        gateways.close()


def test_agents_on_both_gateways_reach_the_one_process_and_each_call_runs_once(gates):
    holders = {one["id"]: "single:tally" in one["holds"] for one in gates.two.admin.get("/api/gateways")}
    assert holders == {"one": True, "two": False}
    before = len(gates.noted("tally"))
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda n: tally((gates.one, gates.two)[n % 2], n), range(40)))
    assert len({one["pid"] for one in told}) == 1
    assert sorted(one["count"] for one in told) == list(range(before + 1, before + 41))
    assert sorted(one["n"] for one in gates.noted("tally")[before:]) == list(range(40))
    wait_until(lambda: not gates.ask("SELECT id FROM errands"))


def test_the_record_of_such_a_call_is_on_the_gateway_where_it_was_made(gates):
    call = gates.two.call("tally__tally", {"n": 1}).json["call"]
    assert {row["chain"] for row in gates.one.admin.get(f"/api/calls/{call}")} == {"two"}
    assert gates.two.story(call) == ["dispatching", "completed"]


def test_a_call_that_is_taken_back_where_it_was_made_is_cancelled_where_it_runs(gates):
    before = len(gates.noted("cancelled"))
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "tally__hold", "arguments": {"until": "/nowhere"}, "_meta": meta}
    headers = {
        "Authorization": f"Bearer {TOKEN}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "tally__hold",
    }
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    client = HTTPConnection(gates.two.url.rpartition("/")[2])
    client.request("POST", "/mcp", body, headers)
    [(call,)] = wait_until(lambda: gates.ask("SELECT call FROM errands WHERE state = 'taken'"))
    client.close()
    wait_until(lambda: len(gates.noted("cancelled")) == before + 1)
    assert wait_until(lambda: gates.two.story(call) == ["dispatching", "unknown"])
    gates.ask("DELETE FROM errands")


def test_what_somebody_writes_into_the_database_is_not_done(gates):
    before = len(gates.noted("tally"))
    tally(gates.two, 5)
    new = (
        "INSERT INTO errands (id, source, call, asked_by, taken_by, state, ends_at, body) "
        "VALUES (%s, 'tally', 'c', 'two', '', 'waiting', extract(epoch FROM now()) + 60, %s)"
    )
    gates.ask(new, "forged", b"x" * 80)
    wait_until(lambda: gates.ask("SELECT state FROM errands WHERE id = 'forged'") == [("refused",)])
    assert len(gates.noted("tally")) == before + 1
    gates.ask("DELETE FROM errands")


def test_a_call_that_has_ended_is_not_done_again_when_its_errand_is_put_back(gates, tmp_path):
    go, before = tmp_path / "go", len(gates.noted("hold"))
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(gates.two.call, "tally__hold", {"until": str(go)})
        columns = "id, source, call, asked_by, ends_at, body"
        [row] = wait_until(lambda: gates.ask(f"SELECT {columns} FROM errands WHERE state = 'taken'"))
        go.touch()
        assert held.result(10).status == 200
    wait_until(lambda: not gates.ask("SELECT id FROM errands"))
    wait_until(lambda: gates.two.story(row[2])[-1] == "completed")
    marks = "%s, %s, %s, %s, '', 'waiting', %s, %s"
    gates.ask(
        f"INSERT INTO errands (id, source, call, asked_by, taken_by, state, ends_at, body) VALUES ({marks})",
        *row,
    )
    tally(gates.two, 6)
    assert gates.ask("SELECT state FROM errands WHERE id = %s", row[0]) == [("waiting",)]
    assert len(gates.noted("hold")) == before + 1
    gates.ask("DELETE FROM errands")


def test_when_the_gateway_that_runs_it_is_killed_what_it_did_is_unknown_and_another_goes_on(fresh, tmp_path):
    first = tally(fresh.two, 1)["pid"]
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(fresh.two.call, "tally__hold", {"until": str(tmp_path / "never")}, timeout=60)
        wait_until(lambda: fresh.noted("hold"))
        fresh.kill("one")
        lost = held.result(40)
    assert lost.json["error"]["code"] == "OUTCOME_UNKNOWN"
    assert "The gateway one stopped" in lost.json["error"]["message"]
    again = wait_until(lambda: (told := fresh.two.call("tally__tally", {"n": 2})).status == 200 and told)
    assert said(again)["pid"] != first
    assert len(fresh.noted("hold")) == 1
    assert [one["n"] for one in fresh.noted("tally")] == [1, 2]
    assert fresh.two.admin.get("/api/audit/verify")["ok"]


def test_a_stop_of_the_gateway_that_runs_it_fails_no_call(fresh, tmp_path):
    go = tmp_path / "go"
    with ThreadPoolExecutor(2) as pool:
        held = pool.submit(fresh.two.call, "tally__hold", {"until": str(go)}, timeout=60)
        wait_until(lambda: fresh.noted("hold"))
        stopping = pool.submit(fresh.stop, "one")
        wait_until(lambda: fresh.two.admin.get("/api/gateways")[0]["state"] == "draining")
        go.touch()
        assert held.result(20).status == 200
        assert stopping.result(30) == 0
    assert tally(fresh.two, 3)["count"] == 1
    one = fresh.begin("one")
    assert tally(one, 4)["count"] == 2
