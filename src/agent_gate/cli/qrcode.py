"""A link as a code that a phone reads from the screen."""

from io import StringIO
from urllib.parse import urlsplit

from agent_gate.net.addresses import is_here


def code_for_a_phone(url: str) -> str:
    """The code in characters of a terminal; empty where only this machine reaches the address."""
    if is_here(urlsplit(url).hostname or ""):
        return ""
    import segno  # it takes longer to import than to draw, for the few who see it

    code = StringIO()
    segno.make(url, error="l").terminal(code, compact=True, border=2)
    return code.getvalue()
