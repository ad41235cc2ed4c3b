"""The number that a yes must name: a browser shows it, the question does not.

So nobody says yes to somebody else's browser. Where a person presses instead of types, the number stands among others.
"""

import secrets
from collections.abc import Collection
from hashlib import sha256

from agent_gate.core.approval import Approval

LEAST, MOST = 10, 99
OFFERED = 6
UNSAID = "Say the number that the browser shows which wants to come in"
WRONG = "the number was not the one that the browser shows"


def new_number(waiting: Collection[str] = ()) -> str:
    """One that no other browser shows meanwhile, while there is such a one: a yes meant for it fits nobody else's."""
    numbers = [str(number) for number in range(LEAST, MOST + 1)]
    return secrets.choice([number for number in numbers if number not in waiting] or numbers)


def offered_numbers(approval: Approval) -> tuple[str, ...]:
    """The number among others, the same on every channel; none where a yes needs no number."""
    if not approval.asked.number:
        return ()
    found = [approval.asked.number]
    for byte in sha256(f"{approval.id}:{approval.asked.number}".encode()).digest():
        other = str(LEAST + byte % (MOST - LEAST + 1))
        if other not in found:
            found.append(other)
        if len(found) == OFFERED:
            break
    return tuple(sorted(found))
