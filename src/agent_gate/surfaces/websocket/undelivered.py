"""Keeps the outcome of a call whose caller went away before the answer."""

from agent_gate.core.call import Call, Outcome, State, encode
from agent_gate.core.catalog import Shelf
from agent_gate.core.ports import Clock
from agent_gate.observe.redact import mask_arguments
from agent_gate.results.kept import keep
from agent_gate.store.statement import Store


class Undelivered:
    """Writes to the kept results; what is kept already, because it was asked or had a key, stays as it is."""

    def __init__(self, store: Store, shelf: Shelf, clock: Clock) -> None:
        self._store, self._shelf, self._clock = store, shelf, clock

    def keep(self, call: Call, outcome: Outcome) -> None:
        tool = self._shelf.catalog.find(call.tool)
        if tool is None or outcome.state is State.REFUSED or outcome.call_id != call.id:
            return
        shown = encode(mask_arguments(call.arguments, tool.definition.secret)).decode()
        signature = tool.sign(call.arguments)
        self._store.post(keep(call, tool.wire, signature, shown, outcome, self._clock.now()))
