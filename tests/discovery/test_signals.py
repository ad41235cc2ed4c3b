"""A signal is data: one more is its own file and its place in the list."""

import pytest
from tests.discovery.tools import catalog

from agent_gate.core.tool import Definition
from agent_gate.discovery import rank
from agent_gate.discovery.rank import Index
from agent_gate.discovery.signals import SIGNALS, Signal

TOOLS = catalog(
    {
        "lab": [
            Definition(name="list_orders", description="List orders"),
            Definition(name="git_status", description="Shows the status of the working tree"),
            Definition(name="run_sql", description="Run a read-only SQL statement"),
            Definition(name="delete_order", description="Delete an order"),
        ]
    }
).tools


def found(query):
    return [hit.tool.name for hit in Index(TOOLS, {}).search(query, 8)]


def test_a_signal_that_is_added_ranks_with_the_others(monkeypatch):
    def rate(asked):
        return {place: 1.0 for place, one in enumerate(asked.documents) if one.tool.name == "git_status"}

    assert found("list orders")[0] == "list_orders"
    monkeypatch.setattr(rank, "SIGNALS", (*SIGNALS, Signal("favourite", 9.0, rate)))
    assert found("list orders")[0] == "git_status"


def test_every_signal_has_a_name_of_its_own():
    assert len({signal.name for signal in SIGNALS}) == len(SIGNALS)


@pytest.mark.parametrize(
    "query", ["how many customers came per month", "average price by category", "top ten buyers"]
)
def test_a_figure_over_records_is_asked_of_a_tool_that_runs_queries(query):
    assert "run_sql" in found(query)[:3]


def test_what_is_asked_to_be_shown_is_rarely_what_deletes_it():
    assert found("show my orders").index("list_orders") < found("show my orders").index("delete_order")
