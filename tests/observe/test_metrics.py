"""Metrics: bounded series in Prometheus' form, and a dashboard that asks only for what there is."""

import json
import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from tests.gateway import running

from agent_gate.observe.metrics import MOST_SERIES, OTHER, Counter, Histogram, Metrics

DASHBOARDS = Path(__file__).parents[2] / "dashboards"
PAGE = Path(__file__).parents[2] / "docs" / "telemetry.md"
NAME = re.compile(r"\b(?:agent_gate|mcp)_\w+")
LINE = re.compile(r'([a-z_:]+)(?:\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)')
CONFIG = """
gateway: {port: 0}
admin: {port: 0, socket: ./data/admin.sock}
agents: {pi: {token: token-of-the-first-agent-in-tests}}
services: {home: {url: "http://127.0.0.1:9", tools: tools.yaml}}
storage: {type: sqlite, path: ./data/gate.db}
"""
TOOLS = "tools: {look: {request: {method: GET, path: /look}}}\n"


@pytest.fixture(scope="module")
def exposed(tmp_path_factory):
    """The metrics of a running gateway, as a scraper gets them."""
    folder = tmp_path_factory.mktemp("gate")
    with running(folder, {"config.yaml": CONFIG, "tools.yaml": TOOLS}, "--insecure") as gate:
        gate.call("look", wait=0)
        gate.answer("deny")
        gate.call("nothing")
        return gate.admin.get("/metrics")


def names_in(text):
    """Series names, with a histogram's parts folded into it."""
    return {
        re.sub(r"_(bucket|sum|count)$", "", name) if "duration" in name or "wait" in name else name
        for name in NAME.findall(text)
    }


def described(exposed):
    return set(re.findall(r"# TYPE (\S+)", exposed))


def expressions():
    dashboard = json.loads((DASHBOARDS / "agent-gate.json").read_text())
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    alerts = YAML(typ="safe", pure=True).load((DASHBOARDS / "alerts.yaml").read_text())
    return shown + [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]


def test_the_dashboard_and_the_alerts_ask_only_for_series_that_exist(exposed):
    asked = set().union(*map(names_in, expressions()))
    assert asked <= described(exposed)


def test_every_series_is_on_the_dashboard(exposed):
    assert described(exposed) <= set().union(*map(names_in, expressions()))


def labels_of_series():
    labels = {
        series.name: {*series.labels, *getattr(series, "fixed", {})} for series in Metrics().series.values()
    }
    return labels | {
        "agent_gate_source_up": {"source"},
        "agent_gate_approvals_pending": set(),
        "agent_gate_connections": set(),
        "agent_gate_mcp_sessions": set(),
        "agent_gate_tasks": set(),
        "agent_gate_source_restarts_total": {"source"},
        "agent_gate_http_heads_total": {"of", "path"},
    }


def test_the_page_lists_every_series_with_its_labels():
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\|", PAGE.read_text(), re.MULTILINE)
    listed = {name: set(re.findall(r"\w+", re.sub(r"\([^)]*\)", "", labels))) for name, labels in rows}
    assert {name: labels for name, labels in listed.items() if NAME.fullmatch(name)} == labels_of_series()


def test_the_dashboard_uses_only_labels_that_exist():
    labels = {name: {*found, "le"} for name, found in labels_of_series().items()}
    for expression in expressions():
        known = set().union(*(labels[name] for name in names_in(expression)))
        used = {
            label.strip() for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(",")
        }
        used |= set(re.findall(r"[{,]\s*(\w+)\s*(?:=~|=|!=)", expression))
        assert used <= known, expression


def test_what_is_exposed_can_be_read_line_by_line(exposed):
    for line in exposed.splitlines():
        assert line.startswith("# ") or LINE.fullmatch(line), line
    assert 'agent_gate_policy_decisions_total{effect="ask",rule=""} 1' in exposed
    assert 'agent_gate_refusals_total{surface="rest",code="TOOL_NOT_FOUND"} 1' in exposed
    assert 'agent_gate_approval_wait_seconds_count{channel="terminal",verdict="denied"} 1' in exposed
    assert 'agent_gate_source_restarts_total{source="home"} 0' in exposed


def test_a_panel_has_its_own_place():
    panels = json.loads((DASHBOARDS / "agent-gate.json").read_text())["panels"]
    taken = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_labels_are_bounded_and_cannot_break_the_form():
    counter, histogram = Counter("c", "help", ("a",)), Histogram("h", "help", ("a",))
    for i in range(MOST_SERIES + 50):
        counter.add(f"tool{i}")
        histogram.observe(0.2, f"tool{i}")
    assert counter.values[OTHER,] == 50
    assert len(counter.values) == len(histogram.values) == MOST_SERIES + 1
    hostile = Counter("c", "help", ("a",))
    hostile.add('x"} 1\nforged 2 \\')
    assert list(hostile.lines()) == ['c{a="x\\"} 1\\nforged 2 \\\\"} 1']


def test_a_histogram_counts_up_to_its_own_bounds():
    histogram = Histogram("h", "help", (), (1.0, 900.0), {"m": "x"})
    for seconds in (0.5, 1.0, 30, 5000):
        histogram.observe(seconds)
    assert list(histogram.lines()) == [
        'h_bucket{m="x",le="1.0"} 2',
        'h_bucket{m="x",le="900.0"} 3',
        'h_bucket{m="x",le="+Inf"} 4',
        'h_sum{m="x"} 5031.5',
        'h_count{m="x"} 4',
    ]
