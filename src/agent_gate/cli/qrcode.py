"""A link as a code that a phone reads from the screen."""

from io import StringIO
from urllib.parse import urlsplit


def code_for_a_phone(url: str) -> str:
    """The code in characters of a terminal; empty where only this machine reaches the address."""
    if not reachable_from_elsewhere(url):
        return ""
    import segno  # it takes longer to import than to draw, for the few who see it

    code = StringIO()
    segno.make(url, error="l").terminal(code, compact=True, border=2)
    return code.getvalue()


def reachable_from_elsewhere(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host != "localhost" and not host.startswith("127.") and host != "::1"
