"""The scenarios of ports, sessions and hooks, one test each under the scenario's own name."""

import os
import re
import signal
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests import nursery
from tests.gateway import COMMAND, TOKEN, running
from tests.scenarios.gateway_scenes import (
    Hooks,
    children,
    configured,
    free_port,
    running_pids,
    wait_for_sources,
)
from tests.waiting import PATIENCE, wait_until


def test_random_port_allocation(empty):
    port = int(empty.url.rpartition(":")[2])
    assert port > 1023
    assert port != 8443


def test_fixed_port_allocation(tmp_path):
    port = free_port()
    with running(tmp_path, configured({}, TOKEN), "--insecure", "--port", str(port)) as started:
        assert started.url == f"http://127.0.0.1:{port}"
        assert started.request("GET", "/health", token=None).status == 200


def test_port_conflict(tmp_path):
    (tmp_path / "config.yaml").write_text("gateway: {id: t}\nadmin: {port: 0}\n")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = nursery.run(
            [COMMAND, "serve", "--config", "config.yaml", "--port", port, "--insecure"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode != 0
    assert port in done.stderr
    assert "in use" in done.stderr


@pytest.fixture(scope="module")
def hooks(tmp_path_factory):
    made = Hooks(tmp_path_factory.mktemp("session"))
    yield made
    nursery.run([COMMAND, "session", "stop", "--all"], env=made.env, check=True, capture_output=True)


@pytest.fixture(scope="module")
def session(hooks):
    """A session whose gateway was started by its hook."""
    return hooks.start("first")


@pytest.fixture(scope="module")
def ended(hooks, session):
    """A second session, as it was beside the first; its hook has stopped it since."""
    row = hooks.start("second")
    seen = SimpleNamespace(row=row, pid_file=hooks.pid_file("second").read_text(), beside=set(hooks.status()))
    hooks.stop("second")
    return seen


def test_url_discovery_via_environment_variable(hooks, session):
    assert hooks.exported("TOOLSCRIPT_GATEWAY_URL") == session["url"]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", session["url"])


def test_start_gateway_on_session_start(hooks, session):
    gateway = hooks.reached(session)
    wait_for_sources(gateway, "notes")
    assert gateway.request("GET", "/health", token=None).status == 200


def test_the_gateway_of_a_session_logs_its_requests(hooks, session):
    hooks.reached(session).request("GET", "/health?asked-by-the-test", token=None)
    log = Path(session["data"]) / "serve.log"
    assert wait_until(lambda: "Request ended" in log.read_text(), "the line of the request")


def test_gateway_runs_until_terminated(tmp_path):
    for number in signal.SIGTERM, signal.SIGINT:
        with running(tmp_path, configured({}, TOKEN), "--insecure") as started:
            assert started.request("GET", "/health", token=None).status == 200
            assert started.process.poll() is None
            assert started.stop(number) == 0


def test_session_based_pid_file(hooks, session):
    assert hooks.pid_file("first").name == "agent-gate-first.pid"
    assert hooks.status()["first"]["pid"] == session["pid"]


def test_pid_file_management(hooks, ended):
    assert ended.pid_file == str(ended.row["pid"])
    assert not hooks.pid_file("second").exists()


def test_stop_gateway_via_process_termination(ended):
    assert wait_until(lambda: not running_pids({ended.row["pid"]}), "the gateway's end")


def test_emergency_shutdown(hooks):
    row = hooks.start("third")
    servers = wait_until(lambda: children(row["pid"]), "the start of its server")
    os.kill(row["pid"], signal.SIGKILL)
    wait_until(lambda: not running_pids({row["pid"], *servers}), "the end of the gateway and its servers")
    assert hooks.pid_file("third").exists()
    hooks.stop("third")
    assert not hooks.pid_file("third").exists()


def test_multiple_sessions(session, ended):
    assert ended.beside == {"first", "second"}
    for own in "url", "pid", "socket", "data":
        assert ended.row[own] != session[own]


def test_session_cleanup(hooks, session, ended):
    assert ended.row["session"] not in hooks.status()
    assert hooks.reached(session).request("GET", "/health", token=None).status == 200
