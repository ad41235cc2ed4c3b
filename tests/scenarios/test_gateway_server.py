"""The gateway server's scenarios, one test each under the scenario's own name, against real processes."""

import re
import signal

import pytest
from tests.gateway import TOKEN, running
from tests.scenarios.gateway_scenes import (
    EAGER,
    UTC,
    child,
    children,
    configured,
    events,
    notes,
    rpc,
    running_pids,
    source,
    tool_names,
    wait_for_sources,
)
from tests.waiting import wait_until

from agent_gate.sources.state import delay


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

    def told():
        logged = [event for event in events(troubled.gateway) if event.get("source") == "broken"]
        return any("broken" in event.get("reason", "") and event["level"] == "error" for event in logged)

    assert wait_until(told, "the reason in the log")


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


def test_connection_pooling(gateway):
    before = children(gateway.process.pid)
    for _ in range(5):
        assert gateway.call("time__get_current_time", UTC).status == 200
        assert gateway.call("github_api__read_graph").status == 200
    assert children(gateway.process.pid) == before


def test_connection_health_monitoring(revived):
    gateway = revived.gateway
    revived.lab.kill()
    lost = wait_until(
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
        wait_until(lambda: not running_pids(servers), "the end of its servers")


def test_health_check_endpoint(gateway):
    reply = gateway.request("GET", "/health", token=None)
    assert (reply.status, reply.json["status"]) == (200, "ok")


def test_ready_check_endpoint(gateway, troubled):
    assert gateway.request("GET", "/ready", token=None).status == 200
    reply = troubled.gateway.request("GET", "/ready", token=None)
    assert reply.status == 503
    assert [row["source"] for row in reply.json["waiting_for"]] == ["broken"]

    def reason():
        return troubled.gateway.request("GET", "/ready", token=None).json["waiting_for"][0]["reason"]

    assert wait_until(reason, "the reason why it is not ready")


def test_server_status_endpoint(troubled):
    states = {
        row["source"]: row["state"] for row in troubled.gateway.request("GET", "/status").json["sources"]
    }
    assert states["lab"] == states["notes"] == "ready"
    assert states["broken"] in ("failed", "connecting")


def test_default_timeout(gateway):
    arguments = {"duration": 30, "steps": 2}
    reply = gateway.call("slow__trigger_long_running_operation", arguments)
    assert reply.status == 504
    assert reply.json["error"]["code"] == "TIMEOUT"
    assert "did not answer" in reply.json["error"]["message"]


def test_server_error(gateway):
    arguments = {"timezone": "Nowhere/Land"}
    result = rpc(gateway, "tools/call", name="time__get_current_time", arguments=arguments)["result"]
    assert result["isError"]
    assert "Nowhere/Land" in result["content"][0]["text"]
    assert result["_meta"]["agent-gate/source"] == "time"


def test_network_error(revived):
    revived.lab.kill()
    gateway = revived.gateway
    wait_until(lambda: source(gateway, "lab")["state"] != "ready", "the loss of the server")
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


def test_request_logging(gateway):
    call = gateway.call("time__get_current_time", UTC).json["call"]
    line = wait_until(
        lambda: next((event for event in events(gateway) if event.get("call") == call), None), "its line"
    )
    assert (line["surface"], line["tool"], line["state"]) == ("rest", "time__get_current_time", "completed")
    assert 0 < line["seconds"] < 30


def test_request_logging_of_what_is_no_call(gateway):
    rpc(gateway, "tools/list")
    rpc(gateway, "tools/call", name="no_such", arguments={})
    assert gateway.request("GET", "/api/tools/nothing?token=hidden").status == 404

    def lines():
        told = [event for event in events(gateway) if event["event"] == "Request ended"]
        return told if any(event["path"] == "/api/tools/nothing" for event in told) else None

    told = wait_until(lines, "the line of the last request")
    seen = [(e["method"], e["path"], e.get("rpc"), e.get("tool"), e["status"]) for e in told]
    assert ("POST", "/mcp", "tools/list", None, 200) in seen
    assert ("POST", "/mcp", "tools/call", "no_such", 200) in seen
    assert ("GET", "/api/tools/nothing", None, "nothing", 404) in seen
    assert all(0 <= event["seconds"] < 30 for event in told)
    assert "hidden" not in gateway.stderr


def test_error_logging(gateway):
    assert gateway.call("break_it").status == 502
    line = next(event for event in events(gateway) if "ZeroDivisionError" in event.get("error", ""))
    assert line["level"] == "error"
    assert "Traceback" in line["error"]
    assert "faulty.py" in line["error"]


def test_connection_logging(troubled):
    told = [event["event"] for event in events(troubled.gateway) if event.get("source") == "notes"]
    assert told[0] == "Source is ready"


@pytest.mark.parametrize(("level", "wanted"), [("debug", True), ("info", True), ("error", False)])
def test_configurable_log_levels(tmp_path, level, wanted):
    files = configured({"notes": notes(tmp_path)}, TOKEN, log={"level": "warning"})
    with running(tmp_path, files, "--insecure", env={"LOG_LEVEL": level}) as started:
        wait_for_sources(started, "notes")
        levels = {event["level"] for event in events(started)}
        assert ("info" in levels) is wanted
        assert ("debug" in levels) is (level == "debug")


@pytest.mark.parametrize(("form", "is_json"), [("text", False), ("json", True), ("auto", True)])
def test_the_configuration_chooses_how_logs_are_written(tmp_path, form, is_json):
    files = configured({"broken": child(["false"])}, TOKEN, log={"format": form})
    with running(tmp_path, files, "--insecure") as started:
        line = wait_until(
            lambda: next((line for line in started.stderr.splitlines() if "Source is failed" in line), None),
            "the line about the server",
        )
        assert line.startswith("{") is is_json
