"""The gateway server's scenarios, one test each under the scenario's own name, against real processes."""

import json
import os
import re
import signal
import socket
import subprocess
from functools import partial
from types import SimpleNamespace

import pytest
from tests.gateway import COMMAND, TOKEN, Gateway, running
from tests.scenarios.gateway_scenes import (
    Lab,
    child,
    children,
    configured,
    events,
    eventually,
    exported,
    free_port,
    lab,
    module,
    notes,
    rpc,
    running_pids,
    session_environment,
    source,
    tool_names,
    wait_for_sources,
)
from tests.servers import command

from agent_gate.sources.state import delay

FAULTY = """
from agent_gate import ServiceHandler

class Faulty(ServiceHandler):
    def execute(self, tool_name, args):
        raise ZeroDivisionError("the plugin's own mistake")
"""
FAULTY_TOOLS = "tools: {break_it: {args: {}, signature: break_it}}"
EAGER = ("time", "github-api", "123server", "slow", "lab")
UTC = {"timezone": "UTC"}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    """In front of servers that all work; it logs everything."""
    folder = tmp_path_factory.mktemp("gateway")
    servers = {
        "time": child(command("time")),
        "github-api": notes(folder),
        "123server": child(command("time")),
        "slow": child([*command("everything"), "stdio"], timeout=0.5),
        "lab": lab(folder),
    }
    services = {
        "faulty": {
            "url": "none://",
            "handler": "python",
            "handler_class": "faulty:Faulty",
            "tools": "faulty.yaml",
        }
    }
    files = configured(servers, TOKEN, services=services, plugins={"paths": ["."]})
    files |= {"faulty.py": FAULTY, "faulty.yaml": FAULTY_TOOLS}
    with running(folder, files, "--insecure", env={"LOG_LEVEL": "debug"}) as started:
        wait_for_sources(started, *EAGER)
        yield started


@pytest.fixture(scope="module")
def troubled(tmp_path_factory):
    """In front of a server that can be killed, and of one that never starts."""
    folder = tmp_path_factory.mktemp("troubled")
    server = Lab(folder)
    server.start()
    servers = {"lab": server.entry, "broken": child(["false"]), "notes": notes(folder)}
    with running(folder, configured(servers, TOKEN), "--insecure") as started:
        wait_for_sources(started, "lab", "notes")
        yield SimpleNamespace(gateway=started, lab=server)
    server.kill()


@pytest.fixture
def revived(troubled):
    """The troubled gateway; its server runs again at the end."""
    yield troubled
    if troubled.lab.process.poll() is not None:
        troubled.lab.start()
    wait_for_sources(troubled.gateway, "lab")


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """Started with no file at all; it makes its own token and keeps it beside its store."""
    folder = tmp_path_factory.mktemp("empty")
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    argv = [COMMAND, "serve", "--port", "0", "--insecure", "--data", "data"]
    with (
        (folder / "stderr.txt").open("wb") as log,
        subprocess.Popen(argv, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        started = Gateway(folder)
        started.process, started.announced = process, json.loads(process.stdout.readline())
        started.url = started.announced["url"]
        made = (folder / "data" / "agent.token").read_text().strip()
        started.request = partial(started.request, token=made)
        yield started
        process.terminate()


# The HTTP MCP server.


def test_initialize_connection(gateway):
    result = rpc(gateway, "initialize")["result"]
    assert result["protocolVersion"] == "2025-11-25"
    assert result["capabilities"]["tools"] == {"listChanged": True}
    assert result["serverInfo"]["name"] == "agent-gate"


def test_list_available_tools(gateway):
    prefixes = {name.partition("__")[0] for name in tool_names(gateway)}
    assert {"time", "github_api", "_123server", "slow", "lab"} <= prefixes


def test_execute_tool(gateway):
    result = rpc(gateway, "tools/call", name="time__get_current_time", arguments=UTC)["result"]
    assert result["structuredContent"]["timezone"] == "UTC"
    assert not result.get("isError")


def test_invalid_tool_name(gateway):
    error = rpc(gateway, "tools/call", name="time__nothing", arguments={})["error"]
    assert error["code"] == -32602
    assert "Unknown tool: time__nothing" in error["message"]


# Many servers behind one.


def test_connect_to_configured_servers(gateway):
    assert {source(gateway, name)["state"] for name in EAGER} == {"ready"}


def test_namespace_tool_names(gateway):
    names = tool_names(gateway)
    assert {"time__get_current_time", "_123server__get_current_time"} <= set(names)
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("prefix", "tool", "arguments"),
    [("github_api", "read_graph", {}), ("_123server", "get_current_time", UTC)],
)
def test_validate_and_convert_server_names(gateway, prefix, tool, arguments):
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) for name in tool_names(gateway))
    result = rpc(gateway, "tools/call", name=f"{prefix}__{tool}", arguments=arguments)["result"]
    assert not result.get("isError")


def test_server_connection_failure(troubled):
    broken = source(troubled.gateway, "broken")
    assert broken["state"] in ("failed", "connecting")
    assert "notes__read_graph" in tool_names(troubled.gateway)
    logged = [event for event in events(troubled.gateway) if event.get("source") == "broken"]
    assert any("broken" in event.get("reason", "") for event in logged)


def test_all_servers_connect_at_startup(gateway):
    """Each connected before anybody called it: its first event comes before the first call's."""
    logged = events(gateway)
    first_call = next((n for n, event in enumerate(logged) if event["event"] == "Call ended"), len(logged))
    ready = {event["source"] for event in logged[:first_call] if event["event"] == "Source is ready"}
    assert ready >= set(EAGER)


def test_launch_with_no_configuration(empty):
    assert empty.request("GET", "/ready", token=None).status == 200
    assert empty.request("GET", "/status").json["sources"] == []
    assert [name for name in tool_names(empty) if "__" in name] == []


# Connections that last.


def test_connection_pooling(gateway):
    before = children(gateway.process.pid)
    for _ in range(5):
        assert gateway.call("time__get_current_time", UTC).status == 200
        assert gateway.call("github_api__read_graph").status == 200
    assert children(gateway.process.pid) == before


def test_connection_health_monitoring(revived):
    gateway = revived.gateway
    revived.lab.kill()
    lost = eventually(
        lambda: (row := source(gateway, "lab"))["state"] == "failed" and row, "the loss of the server"
    )
    assert lost["next_try"] > 0
    assert "lab__steps" in tool_names(gateway)
    revived.lab.start()
    wait_for_sources(gateway, "lab")
    assert gateway.call("lab__steps").status == 200


def test_connection_health_monitoring_waits_longer_after_each_failure():
    longest = [max(delay(failures) for _ in range(300)) for failures in (0, 3, 6)]
    assert longest[0] * 4 < longest[1]
    assert longest[1] * 4 < longest[2] <= 60
    assert min(delay(20) for _ in range(300)) > 0


def test_graceful_connection_closure(tmp_path):
    with running(tmp_path, configured({"notes": notes(tmp_path)}, TOKEN), "--insecure") as started:
        wait_for_sources(started, "notes")
        servers = children(started.process.pid)
        assert servers
        assert started.stop(signal.SIGTERM) == 0
        eventually(lambda: not running_pids(servers), "the end of its servers", 10)


# The port.


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
        done = subprocess.run(
            [COMMAND, "serve", "--config", "config.yaml", "--port", port, "--insecure"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    assert done.returncode != 0
    assert port in done.stderr
    assert "in use" in done.stderr


# A gateway for as long as a session lasts.


class Hooks:
    """Runs `agent-gate session` as the hooks of a host do, in a folder of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.env = session_environment(folder) | {
            "CLAUDE_ENV_FILE": str(folder / "env"),
            "CLAUDE_PROJECT_DIR": str(folder),
        }
        (folder / "agent-gate.yaml").write_text(configured({"notes": notes(folder)}, TOKEN)["config.yaml"])
        (folder / "permissions.yaml").write_text("rules: []")

    def run(self, verb, session, event):
        given = json.dumps({"session_id": session, "hook_event_name": event, "cwd": str(self.folder)})
        done = subprocess.run(
            [COMMAND, "session", verb],
            input=given,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, session):
        self.run("start", session, "SessionStart")
        return self.status()[session]

    def stop(self, session):
        self.run("stop", session, "SessionEnd")

    def status(self):
        argv = [COMMAND, "session", "status", "--json"]
        rows = json.loads(subprocess.check_output(argv, env=self.env, text=True))
        return {row["session"]: row for row in rows}

    def exported(self, name):
        """What a command of the host sees after the hook ran."""
        shell = f'. "{self.folder}/env"; printf %s "${name}"'
        return subprocess.check_output(["sh", "-c", shell], env=self.env, text=True)

    def pid_file(self, session):
        return self.folder / "r" / "agent-gate" / f"agent-gate-{session}.pid"

    def reached(self, row):
        reached = Gateway(self.folder)
        reached.url = row["url"]
        return reached


@pytest.fixture(scope="module")
def hooks(tmp_path_factory):
    made = Hooks(tmp_path_factory.mktemp("session"))
    yield made
    subprocess.run([COMMAND, "session", "stop", "--all"], env=made.env, check=True, capture_output=True)


@pytest.fixture(scope="module")
def session(hooks):
    """A session whose gateway was started by its hook."""
    return hooks.start("first")


def test_url_discovery_via_environment_variable(hooks, session):
    assert hooks.exported("TOOLSCRIPT_GATEWAY_URL") == session["url"]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", session["url"])


def test_start_gateway_on_session_start(hooks, session):
    wait_for_sources(hooks.reached(session), "notes")


def test_gateway_runs_until_terminated(tmp_path):
    for number in signal.SIGTERM, signal.SIGINT:
        with running(tmp_path, configured({}, TOKEN), "--insecure") as started:
            assert started.request("GET", "/health", token=None).status == 200
            assert started.process.poll() is None
            assert started.stop(number) == 0


def test_session_based_pid_file(hooks, session):
    assert hooks.pid_file("first").name == "agent-gate-first.pid"
    assert hooks.status()["first"]["pid"] == session["pid"]


def test_pid_file_management(hooks):
    row = hooks.start("second")
    assert hooks.pid_file("second").read_text() == str(row["pid"])
    hooks.stop("second")
    assert not hooks.pid_file("second").exists()


def test_stop_gateway_via_process_termination(hooks):
    row = hooks.start("third")
    hooks.stop("third")
    eventually(lambda: not running_pids({row["pid"]}), "the gateway's end", 10)


def test_emergency_shutdown(hooks):
    row = hooks.start("fourth")
    servers = eventually(lambda: children(row["pid"]), "the start of its server")
    os.kill(row["pid"], signal.SIGKILL)
    eventually(lambda: not running_pids({row["pid"], *servers}), "the end of the gateway and its servers", 10)
    assert hooks.pid_file("fourth").exists()
    hooks.stop("fourth")
    assert not hooks.pid_file("fourth").exists()


def test_multiple_sessions_and_session_cleanup(hooks, session):
    other = hooks.start("other")
    assert (other["url"], other["pid"]) != (session["url"], session["pid"])
    hooks.stop("other")
    assert "other" not in hooks.status()
    assert hooks.reached(session).request("GET", "/health", token=None).status == 200


# The module for scripts.


def test_serve_tools_module(gateway):
    reply = module(gateway)
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/typescript"


def test_module_contains_all_servers(gateway):
    servers = re.findall(r"^  (\w+): {", exported(gateway), re.MULTILINE)
    assert {"time", "githubApi", "_123server", "slow", "lab"} <= set(servers)


def test_module_uses_typescript_naming_conventions(gateway):
    text = module(gateway).body.decode()
    assert "interface GithubApiCreateEntitiesParams" in text
    assert re.search(r"^    createEntities: \(args: GithubApiCreateEntitiesParams", text, re.MULTILINE)


def test_module_cached_in_memory(gateway):
    first, second = module(gateway), module(gateway)
    assert (first.body, first.headers["etag"]) == (second.body, second.headers["etag"])
    known = {"If-None-Match": first.headers["etag"]}
    assert gateway.request("GET", "/runtime/tools.ts", headers=known).status == 304


def test_cache_invalidation_on_changes(gateway):
    before = module(gateway, "?server=lab")
    assert "freshlyMade" not in before.body.decode()
    assert gateway.call("lab__grow", {"key": "freshly_made"}).status == 200
    eventually(lambda: "freshlyMade" in exported(gateway, "?server=lab"), "the new module")
    assert module(gateway, "?server=lab").headers["etag"] != before.headers["etag"]


def test_empty_module_with_no_servers(empty):
    assert exported(empty) == "{};"


def test_filter_by_server_name(gateway):
    text = exported(gateway, "?server=time")
    assert re.findall(r"^  (\w+): {", text, re.MULTILINE) == ["time"]


def test_filter_by_server_and_tool(gateway):
    text = exported(gateway, "?server=time&tool=getCurrentTime")
    assert re.findall(r"^    (\w+): \(", text, re.MULTILINE) == ["getCurrentTime"]


def test_return_all_tools_without_filter(gateway):
    listed = [name for name in tool_names(gateway) if name.startswith("github_api__")]
    functions = re.findall(r'call(?:Tool|Text)\("(github_api__\w+)"', exported(gateway))
    assert sorted(functions) == sorted(listed)


def test_invalid_server_name(gateway):
    assert exported(gateway, "?server=nonexistent") == "{};"


def test_invalid_tool_name_in_the_filter(gateway):
    assert exported(gateway, "?server=time&tool=nonexistent") == "{ time: {} };"


def test_tool_filter_requires_server(gateway):
    reply = module(gateway, "?tool=getCurrentTime")
    assert reply.status == 400
    assert "server=" in reply.json["error"]["message"]


# Health.


def test_health_check_endpoint(gateway):
    reply = gateway.request("GET", "/health", token=None)
    assert (reply.status, reply.json["status"]) == (200, "ok")


def test_ready_check_endpoint(gateway, troubled):
    assert gateway.request("GET", "/ready", token=None).status == 200
    reply = troubled.gateway.request("GET", "/ready", token=None)
    assert reply.status == 503
    assert [row["source"] for row in reply.json["waiting_for"]] == ["broken"]


def test_server_status_endpoint(troubled):
    states = {
        row["source"]: row["state"] for row in troubled.gateway.request("GET", "/status").json["sources"]
    }
    assert states["lab"] == states["notes"] == "ready"
    assert states["broken"] in ("failed", "connecting")


# Time.


def test_default_timeout(gateway):
    arguments = {"duration": 30, "steps": 2}
    reply = gateway.call("slow__trigger_long_running_operation", arguments)
    assert reply.status == 504
    assert reply.json["error"]["code"] == "TIMEOUT"
    assert "slow did not answer" in reply.json["error"]["message"]


# Errors.


def test_server_error(gateway):
    arguments = {"timezone": "Nowhere/Land"}
    result = rpc(gateway, "tools/call", name="time__get_current_time", arguments=arguments)["result"]
    assert result["isError"]
    assert "Nowhere/Land" in result["content"][0]["text"]
    assert result["_meta"]["agent-gate/source"] == "time"


def test_network_error(revived):
    revived.lab.kill()
    gateway = revived.gateway
    eventually(lambda: source(gateway, "lab")["state"] != "ready", "the loss of the server")
    reply = gateway.call("lab__steps")
    assert reply.status == 503
    assert int(reply.headers["retry-after"]) > 0
    error = reply.json["error"]
    assert (error["code"], error["retryable"]) == ("DEPENDENCY_UNAVAILABLE", True)
    assert "lab" in error["message"]


def test_validation_error(gateway):
    reply = gateway.call("time__convert_time", {"source_timezone": "UTC", "time": 7})
    assert reply.status == 400
    error = reply.json["error"]
    assert error["code"] == "INVALID_ARGS"
    assert any("target_timezone" in detail for detail in error["details"]["errors"])


# The log.


def test_request_logging(gateway):
    call = gateway.call("time__get_current_time", UTC).json["call"]
    line = eventually(
        lambda: next((event for event in events(gateway) if event.get("call") == call), None), "its line"
    )
    assert (line["surface"], line["tool"], line["state"]) == ("rest", "time__get_current_time", "completed")
    assert 0 < line["seconds"] < 30


def test_error_logging(gateway):
    assert gateway.call("break_it").status == 502
    line = next(event for event in events(gateway) if "ZeroDivisionError" in event.get("error", ""))
    assert line["level"] == "error"
    assert "Traceback" in line["error"]
    assert "faulty.py" in line["error"]


def test_connection_logging(troubled):
    told = [event["event"] for event in events(troubled.gateway) if event.get("source") == "notes"]
    assert told[:2] == ["Source is connecting", "Source is ready"]


@pytest.mark.parametrize(("level", "wanted"), [("debug", True), ("info", True), ("error", False)])
def test_configurable_log_levels(tmp_path, level, wanted):
    files = configured({"notes": notes(tmp_path)}, TOKEN)
    with running(tmp_path, files, "--insecure", env={"LOG_LEVEL": level}) as started:
        wait_for_sources(started, "notes")
        levels = {event["level"] for event in events(started)}
        assert ("info" in levels) is wanted
        assert ("debug" in levels) is (level == "debug")
