"""`serve --workers 2`: two processes on one port and one PostgreSQL, which are one gateway to callers."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tests import nursery
from tests.gateway import TOKEN, Api, running
from tests.nursery import COMMAND
from tests.postgres import server
from tests.waiting import PATIENCE, wait_until

COUNTING = Path(__file__).with_name("counting_server.py")
REVISION = "2025-06-18"
CONFIG = """
gateway: {{id: pair, port: 0}}
admin: {{port: 0, socket: ./data/admin.sock}}
agent: {{token: {token}, rate_limit: {{max_requests_per_minute: 0}}}}
services: {{home: {{url: "{url}", tools: {{write: {{args: {{n: {{type: integer}}}}, request: {{method: POST, path: /write}}}}}}}}}}
servers: {{box: {{command: {python}, args: [{counting}]}}}}
storage: {{type: postgres, url: "{database}"}}
permissions: permissions.yaml
"""


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """Two workers, which a test may have ended since."""
    with Api() as api:
        config = CONFIG.format(
            token=TOKEN,
            url=api.url,
            python=sys.executable,
            counting=COUNTING,
            database=server().new_database(),
        )
        files = {
            "config.yaml": config,
            "permissions.yaml": 'rules: [{pattern: "box__*", action: allow}]',
        }
        with running(tmp_path_factory.mktemp("pair"), files, "--insecure", "--workers", "2") as gateway:
            gateway.api = api
            yield gateway


@pytest.fixture
def pair(started):
    """Two workers, once both know the server."""
    if started.process.poll() is not None:
        started.start()
    both_serve(started)
    return started


def both_serve(gateway):
    wait_until(lambda: all(gateway.call("box__count").status == 200 for _ in range(12)))


def counted(gateway):
    reply = gateway.call("box__count")
    assert reply.status == 200, reply.body
    said = reply.json
    text = said["content"][0]["text"] if "content" in said else json.dumps(said)
    found = json.loads(text)
    return found if "pid" in found else json.loads(found["result"]["content"][0]["text"])


def test_both_workers_serve_and_share_one_program(pair):
    said = [counted(pair) for _ in range(40)]
    assert len({one["pid"] for one in said}) == 1
    numbers = [one["calls"] for one in said]
    assert numbers == list(range(numbers[0], numbers[0] + 40))
    chains = {row["chain"] for row in pair.admin.get("/api/calls?limit=80")["rows"]}
    assert chains == {"pair-1", "pair-2"}
    assert pair.admin.get("/api/audit/verify")["ok"]


def test_a_question_asked_of_any_worker_is_answered_at_the_first_ones_socket(pair):
    asked = [pair.call("write", {"n": number}, wait=0).json["call"] for number in range(8)]
    waiting = wait_until(lambda: len(found := pair.admin.get("/api/approvals")) == 8 and found)
    for one in waiting:
        pair.admin.request("POST", f"/api/approvals/{one['id']}", {"verdict": "approve"})
    for call in asked:
        assert pair.request("GET", f"/api/calls/{call}?wait=10").json["status"] == "executed"
    assert len([one for one in pair.api.requests if one["path"] == "/write"]) == 8


def say(pair, method, params, session="", ident=1):
    body = {"jsonrpc": "2.0", "method": method, "params": params} | ({"id": ident} if ident else {})
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": REVISION,
        **({"Mcp-Session-Id": session} if session else {}),
    }
    return pair.request("POST", "/mcp", body, headers=headers)


def test_a_session_goes_on_whichever_worker_its_next_connection_comes_to(pair):
    greeting = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    begun = say(pair, "initialize", greeting)
    session = begun.headers["mcp-session-id"]
    assert say(pair, "notifications/initialized", {}, session, ident=None).status == 202
    called = [say(pair, "tools/call", {"name": "box__count", "arguments": {}}, session) for _ in range(24)]
    assert {one.status for one in called} == {200}
    assert not any(one.json["result"].get("isError") for one in called)
    chains = {row["chain"] for row in pair.admin.get("/api/calls?limit=48")["rows"]}
    assert chains == {"pair-1", "pair-2"}
    assert say(pair, "tools/list", {}, "0" * 32).status == 404


def test_a_worker_that_is_killed_is_started_again_and_the_program_lives_on(pair):
    before = counted(pair)["pid"]
    parent = psutil.Process(pair.announced["pid"])
    killed = pair.announced["workers"][1]
    os.kill(killed, signal.SIGKILL)

    def two_again():
        try:
            found = [one.pid for one in parent.children() if "--worker" in one.cmdline()]
        except psutil.Error:  # one of them is ending just now
            return False
        return len(found) == 2 and killed not in found

    wait_until(two_again)
    both_serve(pair)
    assert counted(pair)["pid"] == before


def test_workers_whose_parent_is_killed_end_too(pair):
    below = psutil.Process(pair.announced["pid"]).children(recursive=True)
    assert len(below) >= 3
    pair.kill()
    assert psutil.wait_procs(below, timeout=PATIENCE)[1] == []


def test_a_stop_ends_all_of_them(pair):
    below = psutil.Process(pair.announced["pid"]).children(recursive=True)
    assert len(below) >= 3
    assert pair.stop() == 0
    assert psutil.wait_procs(below, timeout=PATIENCE)[1] == []


def unread_pipe():
    reader, line = os.pipe()
    os.close(reader)
    return line


def unread_socket():
    reader, line = socket.socketpair()
    reader.close()
    return line.detach()


@pytest.mark.parametrize("unread", [unread_pipe, unread_socket])
def test_a_worker_whose_parent_ended_while_it_was_starting_ends_too(tmp_path, unread):
    (tmp_path / "config.yaml").write_text("gateway: {port: 0}\nadmin: {port: 0}\n")
    words = ("serve", "--config", "config.yaml", "--insecure", "--worker", "2", "--lender", "none.sock")
    line = unread()
    try:
        done = nursery.run(
            [COMMAND, *words], cwd=tmp_path, stdout=line, stderr=subprocess.PIPE, text=True, timeout=PATIENCE
        )
    finally:
        os.close(line)
    assert done.returncode == 1
    assert "the process that started it has ended" in done.stderr


def refused(folder, config, *options):
    (folder / "config.yaml").write_text(config)
    done = nursery.run(
        [COMMAND, "serve", "--workers", "2", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode != 0
    return done.stderr


def test_a_sqlite_store_says_why_it_has_one_worker_and_what_to_do(tmp_path):
    said = refused(tmp_path, "gateway: {port: 0}\n")
    assert "a SQLite file has one writer" in said
    assert "Use PostgreSQL, or serve without --workers" in said


def test_a_browser_says_why_it_has_one_process_and_what_to_do(tmp_path):
    said = refused(
        tmp_path,
        'gateway: {port: 0}\nbrowser: {}\nstorage: {type: postgres, url: "postgres://nobody@127.0.0.1:9/none"}\n',
    )
    assert "--workers cannot serve `browser`" in said
    assert "Serve the browser from a gateway of its own" in said


def test_one_client_on_stdio_has_one_process(tmp_path):
    assert "--stdio serves one client" in refused(tmp_path, "gateway: {port: 0}\n", "--stdio")
