"""A copy put in the place of its original: what the original did meanwhile is not done again."""

import json
import os
import re
import shutil
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path

from tests import nursery
from tests.app.small import CONFIG, TOOLS
from tests.gateway import COMMAND, TOKEN, Gateway, running
from tests.postgres import server
from tests.processes import free_port
from tests.surfaces.admin.admin_gate import browser
from tests.waiting import wait_until

RUNNING = Path(__file__).parents[2] / "docs" / "running.md"
MAY_HAVE_RUN = "It may have run: check the service before you try again"


def backed_up(gateway, folder):
    done = nursery.run(
        [COMMAND, "backup", str(folder)],
        cwd=gateway.folder,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@contextmanager
def restored(gateway, copy):
    """The gateway again, on the copy in the place of its data."""
    shutil.rmtree(gateway.folder / "data")
    shutil.copytree(copy, gateway.folder / "data")
    again = Gateway(gateway.folder, *gateway.options).start()
    try:
        yield again
    finally:
        again.stop()


def approved_and_waiting(gateway, n):
    """A call that a person approved and that waits for its source."""
    gateway.admin.request("POST", "/api/sources/home/disconnect")
    call = gateway.call("write", {"n": n}, wait=0).json["call"]
    gateway.answer("approve")
    assert gateway.story(call) == ["pending", "approved"]
    return call


def run_now(gateway, call):
    gateway.admin.request("POST", "/api/sources/home/connect")
    assert gateway.request("GET", f"/api/calls/{call}?wait=10").json["status"] == "executed"


def test_a_call_that_was_approved_in_the_copy_and_ran_since_does_not_run_again(tmp_path, api, files):
    with running(tmp_path, files, "--insecure") as gateway:
        call = approved_and_waiting(gateway, 1)
        backed_up(gateway, tmp_path / "copy")
        run_now(gateway, call)
    with restored(gateway, tmp_path / "copy") as again:
        told = again.request("GET", f"/api/calls/{call}?wait=10")
        assert told.json["error"]["code"] == "OUTCOME_UNKNOWN"
        assert MAY_HAVE_RUN in told.json["error"]["message"]
        assert again.story(call) == ["pending", "approved", "unknown"]
        assert again.admin.get("/api/audit/verify")["ok"]
    assert len(api.requests) == 1


def test_a_question_that_was_open_in_the_copy_is_withdrawn_because_it_may_have_been_answered(
    tmp_path, api, files
):
    with running(tmp_path, files, "--insecure") as gateway:
        call = gateway.call("write", {"n": 1}, wait=0).json["call"]
        backed_up(gateway, tmp_path / "copy")
        gateway.answer("approve")
        wait_until(lambda: api.requests)
    with restored(gateway, tmp_path / "copy") as again:
        assert again.admin.get("/api/approvals") == []
        told = again.request("GET", f"/api/calls/{call}?wait=0").json
        assert MAY_HAVE_RUN in told["error"]["message"]
        assert again.story(call) == ["pending", "withdrawn"]
        [ended] = again.admin.get("/api/approvals?state=all")
        assert "restored from a copy" in ended["answer_reason"]
        assert again.admin.get("/api/audit/verify")["ok"]
    assert len(api.requests) == 1


def test_a_grant_of_the_copy_does_not_count_because_it_may_have_been_revoked(tmp_path, api, files):
    with running(tmp_path, files, "--insecure") as gateway:
        call = gateway.call("write", {"n": 1}, wait=0).json["call"]
        gateway.answer("approve", lifetime="always")
        assert gateway.request("GET", f"/api/calls/{call}?wait=10").status == 200
        backed_up(gateway, tmp_path / "copy")
    with restored(gateway, tmp_path / "copy") as again:
        assert again.admin.get("/api/grants") == []
        assert again.call("write", {"n": 1}, wait=0).status == 202
    assert len(api.requests) == 1


def test_a_login_of_the_copy_does_not_count_because_it_may_have_ended(tmp_path, api, files):
    port = free_port()
    files["config.yaml"] = files["config.yaml"].replace("admin: {port: 0", f"admin: {{port: {port}")
    with running(tmp_path, files, "--insecure") as gateway:
        person = browser(gateway)
        assert person.send("GET", "/api/me").status == 200
        backed_up(gateway, tmp_path / "copy")
    with restored(gateway, tmp_path / "copy"):
        assert person.send("GET", "/api/me").status == 401


def test_tokens_that_were_revoked_and_keys_that_were_used_since_the_copy_are_as_they_were_in_it(
    tmp_path, api, files
):
    key = {"Idempotency-Key": "used-after-the-copy"}
    with running(tmp_path, files, "--insecure") as gateway:
        token = gateway.admin.request("POST", "/api/agents", {"name": "guest"})["token"]
        gateway.admin.request("POST", "/api/operators", {"name": "watcher"})
        backed_up(gateway, tmp_path / "copy")
        gateway.admin.request("DELETE", "/api/agents/guest")
        gateway.admin.request("DELETE", "/api/operators/watcher")
        assert gateway.call("read", token=token).status == 401
        for _ in range(2):
            assert gateway.call("read", headers=key).status == 200
        assert len(api.requests) == 1
    with restored(gateway, tmp_path / "copy") as again:
        assert [one["name"] for one in again.admin.get("/api/operators")] == ["watcher"]
        assert again.call("read", headers=key).status == 200
        assert len(api.requests) == 2
        assert again.call("read", token=token).status == 200


def test_the_mark_that_the_page_says_to_put_in_makes_a_store_a_copy(tmp_path, api, files):
    [mark] = set(re.findall(r'"(INSERT INTO kv [^"]+)"', RUNNING.read_text()))
    with running(tmp_path, files, "--insecure") as gateway:
        call = gateway.call("write", {"n": 1}, wait=0).json["call"]
        gateway.answer("approve", lifetime="always")
        assert gateway.request("GET", f"/api/calls/{call}?wait=10").status == 200
    with closing(sqlite3.connect(tmp_path / "data" / "agent-gate.db")) as store, store:
        store.execute(mark)
    again = Gateway(tmp_path, "--insecure").start()
    try:
        assert again.admin.get("/api/grants") == []
    finally:
        again.stop()


def test_only_the_first_start_on_a_copy_is_a_restore(tmp_path, api, files):
    with running(tmp_path, files, "--insecure") as gateway:
        backed_up(gateway, tmp_path / "copy")
    with restored(gateway, tmp_path / "copy") as again:
        call = approved_and_waiting(again, 1)
        open_call = again.call("write", {"n": 2}, wait=0).json["call"]
        again.kill()
    last = Gateway(tmp_path, "--insecure").start()
    try:
        assert last.request("GET", f"/api/calls/{call}?wait=10").json["status"] == "executed"
        assert [question["arguments"] for question in last.admin.get("/api/approvals")] == [{"n": 2}]
        assert last.story(open_call) == ["pending"]
    finally:
        last.stop()
    assert gateway.stderr.count("restored from an older copy") == 1


def test_an_older_database_beside_the_note_of_its_end_is_known_without_a_mark(tmp_path, api):
    database = server().new_database()
    config = CONFIG.format(token=TOKEN, url=api.url) + f"storage: {{type: postgres, url: '{database}'}}\n"
    files = {"config.yaml": config, "tools.yaml": TOOLS, "permissions.yaml": "rules: []"}
    tables = ("record", "approvals", "seals", "grants", "results")
    name = database.partition("?")[0].rpartition("/")[2]
    with running(tmp_path, files, "--insecure") as gateway:
        call = approved_and_waiting(gateway, 1)
        for table in tables:
            server().ask(f"CREATE TABLE copy_of_{table} AS SELECT * FROM {table}", name)
        run_now(gateway, call)
    for table in tables:
        server().ask(f"TRUNCATE {table}; INSERT INTO {table} SELECT * FROM copy_of_{table}", name)
    again = Gateway(tmp_path, "--insecure").start()
    try:
        assert again.story(call) == ["pending", "approved", "unknown"]
        waits = again.call("write", {"n": 2}, wait=0).json["call"]
        again.kill()
        again.start()
        assert again.story(waits) == ["pending"]
    finally:
        again.stop()
    assert [json.loads(request["body"]) for request in api.requests] == [{"n": 1}]
