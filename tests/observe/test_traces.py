"""Traces: ids that follow from the call, the conventions' names, and what leaves the machine."""

import json
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gateway import running

from agent_gate.core.call import Call, Caller, new_id
from agent_gate.errors import ConfigError
from agent_gate.observe.redact import Redactor
from agent_gate.observe.trace import outgoing, root, span_id, trace_of
from agent_gate.observe.tracing import tracer_to

TOOLS = """
tools:
  light:
    signature: "{name}"
    args: {name: {required: true}, pin: {required: false, secret: true}}
    request: {method: POST, path: /light}
"""
CONFIG = """
gateway: {{port: 0}}
admin: {{port: 0, socket: ./data/admin.sock}}
agents: {{pi: {{token: token-of-the-first-agent-in-tests}}}}
services: {{home: {{url: "{api}", tools: tools.yaml}}}}
storage: {{type: sqlite, path: ./data/gate.db}}
permissions: permissions.yaml
{more}
"""
RULES = """
rules:
  - {pattern: "light(free)", action: allow}
  - {pattern: "light(never)", action: deny}
defaults: [{pattern: "*", action: ask}]
"""
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def files(api, more=""):
    return {
        "config.yaml": CONFIG.format(api=api.url, more=more),
        "tools.yaml": TOOLS,
        "permissions.yaml": RULES,
    }


def telemetry(collector):
    return f'telemetry: {{otlp_endpoint: "{collector.url}"}}'


def call(**more):
    return Call(tool="t", arguments={}, caller=Caller(name="pi"), **more)


def test_a_call_without_a_trace_is_its_own_and_one_with_a_trace_joins_it():
    mine = call()
    assert trace_of(mine.id, None) == (mine.id, None, "01")
    assert trace_of(mine.id, PARENT) == ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "01")
    assert trace_of(mine.id, root(mine.id)).parent is None
    assert len({span_id(mine.id, part) for part in ("call", "policy", "approval", "source")}) == 4


def test_what_goes_out_names_the_gateways_own_span_or_nothing_at_all():
    assert outgoing(call()) is None
    sent = outgoing(mine := call(trace=PARENT))
    assert sent == f"00-0af7651916cd43dd8448eb211c80319c-{span_id(mine.id, 'source')}-01"


@given(st.text(max_size=80))
def test_a_header_that_is_no_traceparent_is_as_good_as_none(text):
    ident = new_id()
    assert trace_of(ident, text).trace_id == ident or trace_of(ident, text).parent is not None
    assert outgoing(call(trace=text)) is None or text.count("-") >= 3


def test_the_spans_of_an_allowed_call(tmp_path, api, collector):
    with running(tmp_path, files(api, telemetry(collector)), "--insecure") as gate:
        reply = gate.call("light", {"name": "free", "pin": "secret-pin-1"}, headers={"traceparent": PARENT})
        ident = reply.json["call"]
        row = gate.admin.get(f"/api/calls/{ident}")[0]
    spans = collector.spans()
    [server] = [span for span in spans["tools/call light"] if span["kind"] == 2]
    [source] = [span for span in spans["tools/call light"] if span["kind"] == 3]
    [policy] = spans["policy"]
    assert {path for path, _ in collector.requests} == {"/v1/traces"}
    assert server["trace"] == policy["trace"] == source["trace"] == "0af7651916cd43dd8448eb211c80319c"
    assert (server["parent"], server["kind"]) == ("b7ad6b7169203331", 2)
    assert (source["parent"], source["kind"]) == (server["id"], 3)
    assert policy["parent"] == server["id"]
    expected = {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "light",
        "gen_ai.tool.call.id": ident,
        "agent_gate.decision": "allow",
        "agent_gate.agent": "pi",
        "agent_gate.surface": "rest",
        "agent_gate.state": "completed",
    }
    assert expected.items() <= server["attributes"].items()
    assert source["attributes"]["agent_gate.source"] == "home"
    assert server["service"] == "agent-gate"
    assert row["body"]["trace"] == PARENT
    assert api.requests[0]["headers"]["traceparent"] == f"00-{server['trace']}-{source['id']}-01"
    assert "secret-pin-1" not in str(collector.requests)


def test_the_wait_for_a_person_is_a_span_and_logs_carry_the_trace(tmp_path, api, collector):
    with running(tmp_path, files(api, telemetry(collector)), "--insecure") as gate:
        ident = gate.call("light", {"name": "hall"}, wait=0).json["call"]
        gate.answer()
        gate.request("GET", f"/api/calls/{ident}?wait=5")
        denied = gate.call("light", {"name": "attic"}, wait=0).json["call"]
        gate.answer("deny")
        gate.call("light", {"name": "never"})
        api.replies["*"] = (500, {}, b"{}")
        failed = gate.call("light", {"name": "free"})
        assert failed.status == 502
        row = gate.admin.get(f"/api/calls/{ident}")[0]
    spans = collector.spans()
    approved, refused = spans["approval"]
    assert approved["trace"] == ident
    assert row["body"]["trace"] == root(ident)
    assert approved["attributes"]["agent_gate.approval.status"] == "approved"
    assert approved["attributes"]["agent_gate.approval.approver"] == "operator"
    assert approved["attributes"]["agent_gate.approval.channel"] == "terminal"
    assert approved["seconds"] > 0
    assert refused["trace"] == denied
    ends = {s["attributes"].get("error.type") for s in spans["tools/call light"] if s["kind"] == 2}
    assert ends == {None, "APPROVAL_DENIED", "FORBIDDEN", "UPSTREAM_ERROR"}
    waiting = [json.loads(line) for line in gate.stderr.splitlines() if '"Waiting for a person"' in line]
    assert waiting[0]["trace_id"] == ident
    assert waiting[0]["call"] == ident


def test_an_approved_call_keeps_its_trace_across_a_restart(tmp_path, api, collector):
    with running(tmp_path, files(api, telemetry(collector)), "--insecure") as gate:
        ident = gate.call("light", {"name": "hall"}, wait=0, headers={"traceparent": PARENT}).json["call"]
        gate.kill()
        gate.start()
        gate.answer()
        gate.request("GET", f"/api/calls/{ident}?wait=5")
    spans = collector.spans()
    assert {s["trace"] for s in spans["tools/call light"]} == {"0af7651916cd43dd8448eb211c80319c"}
    assert api.requests[0]["headers"]["traceparent"].startswith("00-0af7651916cd43dd8448eb211c80319c-")


def test_a_collector_that_is_away_costs_the_calls_nothing(tmp_path, api):
    away = 'telemetry: {otlp_endpoint: "http://127.0.0.1:9"}'
    with running(tmp_path, files(api, away), "--insecure") as gate:
        assert gate.call("light", {"name": "free"}).status == 200
        assert gate.stop() == 0


def test_without_an_endpoint_nothing_is_imported_and_no_trace_is_made_up(tmp_path, api):
    with running(tmp_path, files(api), "--insecure") as gate:
        reply = gate.call("light", {"name": "free"})
        assert reply.status == 200
        assert "trace" not in gate.admin.get(f"/api/calls/{reply.json['call']}")[0]["body"]
    assert "traceparent" not in api.requests[0]["headers"]
    code = "import agent_gate.app, sys; print([m for m in sys.modules if m.startswith(('opentelemetry', 'requests'))])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )


def test_an_endpoint_without_the_extra_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "agent_gate.observe.otlp", None)
    with pytest.raises(ConfigError, match=re.escape("pip install 'agent-gate[otel]'")):
        tracer_to("http://127.0.0.1:4318", "home", Redactor())
