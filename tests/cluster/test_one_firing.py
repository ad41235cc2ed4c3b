"""A job of the cron host fires once, however many gateways hear the host, and goes on when one of them stops."""

from collections import Counter

import psycopg
from tests.cluster.several import several
from tests.remote.paired import HostProcess
from tests.waiting import wait_until

SPEC = "agent_gate.hosts.cron:host"
RULES = "rules: [{pattern: 'near__*', action: allow}]"


def fired(database):
    """How often each moment of the job is on record, and on which chains that is."""
    with psycopg.connect(database) as connection:
        rows = connection.execute("SELECT call, chain FROM record WHERE call LIKE 'event:near:%'").fetchall()
    return Counter(call for call, _chain in rows), {chain for _call, chain in rows}


def test_each_moment_of_a_job_is_told_once_though_two_gateways_hear_its_host(tmp_path, database, api):
    socket = tmp_path / "run" / "near.sock"
    near = HostProcess(tmp_path / "near", SPEC, "--socket", str(socket))
    more = f"hosts: {{near: {{socket: {socket}, publish: ['heartbeat.tick']}}}}"
    try:
        with several(tmp_path, database, api, more=more, rules=RULES) as gateways:
            one, two = gateways.start("one"), gateways.start("two")
            job = {"name": "beat", "schedule": "@every 1s", "event_type": "heartbeat.tick"}
            wait_until(lambda: one.call("near__cron_create", job).status == 200)
            moments, _chains = wait_until(lambda: (found := fired(database)) and len(found[0]) >= 3 and found)
            assert set(moments.values()) == {1}
            gateways.stop("one")
            before = len(fired(database)[0])
            wait_until(lambda: len(fired(database)[0]) >= before + 2)
            moments, chains = fired(database)
            assert set(moments.values()) == {1}
            assert "two" in chains
            assert two.admin.get("/api/audit/verify")["ok"]
    finally:
        near.stop()
