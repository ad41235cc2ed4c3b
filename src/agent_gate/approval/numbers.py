"""The number that a yes must name: a browser shows it, the question does not.

So nobody says yes to somebody else's browser. Where a person presses instead of types, the number stands among others.
"""

import secrets
from hashlib import sha256

from agent_gate.core.approval import Approval

LEAST, MOST = 10, 99
OFFERED = 6
UNSAID = "Say the number that the browser shows which wants to come in"
WRONG = "the number was not the one that the browser shows"


def new_number() -> str:
    return str(LEAST + secrets.randbelow(MOST - LEAST + 1))


def offered_numbers(approval: Approval) -> tuple[str, ...]:
    """The number among others, the same on every channel; none where a yes needs no number."""
    if not approval.number:
        return ()
    found = [approval.number]
    for byte in sha256(f"{approval.id}:{approval.number}".encode()).digest():
        other = str(LEAST + byte % (MOST - LEAST + 1))
        if other not in found:
            found.append(other)
        if len(found) == OFFERED:
            break
    return tuple(sorted(found))
