"""Commands that a text advises, in backticks: with the options that name the gateway, they can be typed as they stand."""

import re
import shlex
from collections.abc import Sequence

ADVISED = re.compile(r"`agent-gate ([a-z]+)([^`]*)`")
ASKING = frozenset(
    [
        "agents",
        "approvals",
        "audit",
        "auth",
        "doctor",
        "entries",
        "events",
        "explain",
        "grants",
        "login",
        "operators",
        "peers",
        "policy",
        "secrets",
        "sources",
        "status",
        "tokens",
        "vault",
    ]
)
"""Commands that take the options which name a gateway."""


def complete(text: str, named: Sequence[str]) -> str:
    """The text with `named`, which options name the gateway, behind each command that takes them."""

    def whole(found: re.Match[str]) -> str:
        fits = found[1] in ASKING or (found[1] in ("serve", "check") and "--config" in named)
        return f"`agent-gate {found[1]}{found[2]} {shlex.join(named)}`" if fits else found[0]

    return ADVISED.sub(whole, text) if named else text
