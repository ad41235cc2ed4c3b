"""One state change of a call into the chained row that records it, and back."""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_gate.core.call import STEPS, State
from agent_gate.store import Param, Statement

COLUMNS = "call, step, at, state, caller, tool, body, chain, seq, hash"
INSERT = f"INSERT INTO record ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
SELECT = f"SELECT {COLUMNS} FROM record"

PLACES = {state: (STEPS[state], state.value) for state in State}

encode = msgspec.json.Encoder(order="deterministic").encode


class Row(msgspec.Struct, frozen=True):
    """A row of the record as stored. `body` is JSON text with everything that has no column."""

    call: str
    step: int
    at: float
    state: str
    caller: str
    tool: str
    body: str
    chain: str
    seq: int
    hash: str

    @property
    def content(self) -> tuple[Param, ...]:
        """What the row's hash covers besides its place in the chain."""
        return (self.call, self.step, self.at, self.state, self.caller, self.tool, self.body)

    def decoded(self) -> dict[str, Any]:
        """The row with its body as values."""
        return {**msgspec.structs.asdict(self), "body": msgspec.json.decode(self.body)}


RowBody = Mapping[str, Any] | msgspec.Struct | msgspec.Raw


def row(call_id: str, state: State, at: float, caller: str, tool: str, body: RowBody) -> Statement:
    """The append of one state change. A second row for the same step of a call is a `Conflict`.

    `body` arrives redacted. The last three columns are filled by the writer.
    """
    step, text = PLACES[state]
    return Statement(
        INSERT, (call_id, step, float(at), text, caller, tool, encode(body).decode()), None, True
    )
