"""The record of every call: rows, their hash chain, its seals, and the ways to read and export it."""

from agent_gate.audit.cut import Cut, Cutter
from agent_gate.audit.heads import Heads
from agent_gate.audit.query import Filters, RecordPage, export, search, show
from agent_gate.audit.record import Row, row
from agent_gate.audit.seal import Sealer, ensure_key, read_unfinished
from agent_gate.audit.verify import Problem, VerifyReport, list_chains, verify

__all__ = [
    "Cut",
    "Cutter",
    "Filters",
    "Heads",
    "Problem",
    "RecordPage",
    "Row",
    "Sealer",
    "VerifyReport",
    "ensure_key",
    "export",
    "list_chains",
    "read_unfinished",
    "row",
    "search",
    "show",
    "verify",
]
