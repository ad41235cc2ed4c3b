"""What the pages have in common that people reach by a link: no scripts, nothing foreign, in no frame."""

from base64 import b64encode
from hashlib import sha256

from agent_gate.net.http import Header

COLOURS = (
    ":root{color-scheme:light dark;--ground:#fbfaf7;--ink:#23211c;--soft:#6b675d;--line:#c9c4b6;--sunk:#f2f0ea;--you:#a63f0b}"
    "@media(prefers-color-scheme:dark){:root{--ground:#191814;--ink:#ece8dd;--soft:#a09a8b;--line:#4a463d;--sunk:#13120f;--you:#f0925a}}"
    "h1{font-size:1.25rem;line-height:1.35;overflow-wrap:anywhere}"
)


def headers_for(style: str) -> tuple[Header, ...]:
    """The headers of a page whose one `<style>` is this text."""
    known = b64encode(sha256(style.encode()).digest()).decode()
    return (
        (
            b"content-security-policy",
            f"default-src 'none'; style-src 'sha256-{known}'; form-action 'self'; base-uri 'none'; "
            "frame-ancestors 'none'".encode(),
        ),
        (b"x-frame-options", b"DENY"),
        # Not no-referrer: a browser then sends the form with `Origin: null`, which no listener answers.
        (b"referrer-policy", b"same-origin"),
        (b"cache-control", b"no-store"),
    )
