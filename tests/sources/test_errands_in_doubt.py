"""An errand of which nobody knows whether it was written down is taken back, and its call has an unknown outcome."""

import pytest
from tests.tools import catalog, yaml_tool

from agent_gate.core.call import Call, Caller, Case, Decision
from agent_gate.core.ports import Job, SystemClock
from agent_gate.errors import DependencyUnavailable, OutcomeUnknown
from agent_gate.sources.errands.errands import Errands
from agent_gate.store.statement import InDoubt
from agent_gate.store.words import GatewayWords


class AwayStore:
    """A database that went away: `error` is what is said of each write."""

    chain, shared, now = "one", True, "0"

    def __init__(self, error):
        self._error, self.posted = error, []

    async def write(self, *_statements):
        raise self._error

    def post(self, *statements):
        self.posted += statements


def asked(store):
    errands = Errands(
        store,
        SystemClock(),
        b"k" * 32,
        alone=None,
        pins=None,
        words=GatewayWords(store),
        is_alive=lambda _gateway: True,
        shelf=None,
        keepers={},
    )
    [tool] = catalog(yaml_tool("tally")).tools
    case = Case(
        call=Call(tool=tool.id, arguments={}, caller=Caller(name="a")),
        tool=tool,
        signature="",
        decision=Decision(effect="allow"),
        arguments_hash="",
        definition_hash="",
    )
    return errands.ask("tally", Job(case=case, deadline=SystemClock.monotonic() + 10))


async def test_an_errand_whose_commit_is_in_doubt_is_withdrawn_and_unknown():
    store = AwayStore(InDoubt("The record cannot be written: the connection was lost."))
    with pytest.raises(OutcomeUnknown, match="It may have run"):
        await asked(store)
    assert {statement.params[1] for statement in store.posted} == {"waiting", "taken"}


async def test_an_errand_that_was_not_written_down_was_not_sent():
    store = AwayStore(DependencyUnavailable("The record cannot be written: disk full."))
    with pytest.raises(DependencyUnavailable) as refused:
        await asked(store)
    assert not isinstance(refused.value, OutcomeUnknown)
    assert store.posted == []
