"""Named places where the crash harness kills the process, so that every window between two states is tried.

`AGENT_GATE_FAILPOINT=name` dies at the first pass, `name:3` at the third. Without it a place costs one comparison.
"""

import os

NAMES = (
    "after_receive",
    "after_decide",
    "before_pending_commit",
    "after_pending_commit",
    "after_notify",
    "before_approve_commit",
    "after_approve_commit",
    "before_dispatch_commit",
    "after_dispatch_commit",
    "mid_upstream_write",
    "after_upstream_reply",
    "before_complete_commit",
    "after_complete_commit",
    "mid_deliver",
)
PAIRING = (
    "pair_initiated",
    "pair_met",
    "pair_challenged",
    "pair_requested",
    "pair_issued",
    "pair_handed_over",
    "pair_installed",
    "pair_active",
)
JOINING = (
    "join_initiated",
    "join_introduced",
    "join_answered",
    "join_requested",
    "join_issued",
    "join_kept",
    "join_installed",
    "join_complete",
)
"""The same for the two sides of a handshake."""
EXIT_CODE = 137

_name, _, _count = os.environ.get("AGENT_GATE_FAILPOINT", "").partition(":")
_left = int(_count or 1)
armed = bool(_name)
"""Whether any place was chosen; the places that every call passes ask this first."""


def reach(name: str) -> None:
    """Die here if this is the chosen place and the chosen pass."""
    global _left
    if name == _name:
        _left -= 1
        if _left == 0:
            os.write(2, f"failpoint {name}\n".encode())
            os._exit(EXIT_CODE)


def chosen(name: str) -> bool:
    """Whether the harness picked this place, for code that must do more than pass it."""
    return name == _name
