"""Where the answer to a sign-in may be sent: which addresses a client can have, and which of them is meant.

Addresses are compared as they are written. Only on loopback any port will do, since programs take a free one.
"""

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

from agent_gate.access.sign_in.faults import SignInFault

LONGEST = 2048
MOST = 20
SAFE = re.compile(r"[A-Za-z0-9._~:/?\[\]!$&'()*+,;=%-]+")
LOOPBACK = re.compile(r"http://(127\.0\.0\.1|\[::1\]|localhost)(?::[0-9]{1,5})?([/?].*|)")
HTTPS = re.compile(r"https://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[1-9][0-9]{0,4})?(?:[/?].*|)")
LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?")
NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
SCHEME = re.compile(r"[a-z][a-z0-9.+-]{1,63}")
ACTIVE = frozenset(
    [
        "about",
        "blob",
        "chrome",
        "data",
        "file",
        "filesystem",
        "ftp",
        "intent",
        "javascript",
        "jar",
        "mailto",
        "ms-appdata",
        "resource",
        "vbscript",
        "view-source",
        "ws",
        "wss",
    ]
)
"""Schemes that a browser acts on by itself; no program of its own waits behind them."""


def refuse(why: str) -> SignInFault:
    return SignInFault("invalid_redirect_uri", f"A redirect address {why}")


def check_redirect(uri: object) -> str:
    """An address that a client may register: HTTPS, loopback, or a scheme of its own program."""
    if not isinstance(uri, str) or not uri or len(uri) > LONGEST or not SAFE.fullmatch(uri):
        raise refuse("is not a plain address, or longer than 2048 characters")
    try:
        parts = urlsplit(uri)
        host, _port = parts.hostname or "", parts.port
    except ValueError:
        raise refuse("cannot be read") from None
    if "@" in parts.netloc or "\\" in uri or ".." in parts.path.split("/"):
        raise refuse("has a user, a backslash or a step back in it")
    if parts.scheme in ("http", "https") and not host:
        raise refuse("names no host")
    if parts.scheme == "https" and not is_plain_https(uri):
        raise refuse(
            "names its host in a way that can be read twice: write https://host[:port]/path in small letters, "
            "without a dot at the end, and an IP address in its plain form"
        )
    if parts.scheme == "http" and not is_loopback(uri):
        raise refuse("over plain HTTP can only lead to the computer itself; use https://")
    if parts.scheme not in ("http", "https") and (
        not SCHEME.fullmatch(parts.scheme) or parts.scheme in ACTIVE
    ):
        raise refuse("has a scheme that no program of its own waits behind")
    return uri


def check_redirects(uris: object) -> tuple[str, ...]:
    if not isinstance(uris, list) or not 0 < len(uris) <= MOST:
        raise SignInFault("invalid_redirect_uri", f"redirect_uris lists 1 to {MOST} addresses")
    return tuple(dict.fromkeys(check_redirect(uri) for uri in uris))


def is_plain_https(uri: str) -> bool:
    """Whether rules, people and browsers take the address for one and the same place."""
    found = HTTPS.fullmatch(uri)
    return found is not None and is_plain_host(found[1])


def is_plain_host(host: str) -> bool:
    labels = host.split(".")
    if host.startswith("[") or NUMERIC.fullmatch(labels[-1]):
        plain = host.strip("[]")
        try:
            return str(ip_address(plain)) == plain
        except ValueError:
            return False
    return all(LABEL.fullmatch(label) for label in labels)


def is_loopback(uri: str) -> bool:
    """Whether the address, exactly as it is written, is one of the computer on which the browser runs."""
    return LOOPBACK.fullmatch(uri) is not None


def portless(uri: str) -> str:
    """A loopback address without its port; any other as it is."""
    found = LOOPBACK.fullmatch(uri)
    return uri if found is None else f"http://{found[1]}{found[2]}"


def is_among(uri: str, registered: tuple[str, ...]) -> bool:
    """Whether an answer may be sent there: exactly as registered, on loopback with any port."""
    if uri in registered:
        return True
    try:
        check_redirect(uri)
    except SignInFault:
        return False
    return is_loopback(uri) and portless(uri) in {portless(one) for one in registered}


def destination(uri: str) -> str:
    """Where an answer goes, as people and rules know the place."""
    parts = urlsplit(uri)
    if parts.scheme == "https":
        return parts.netloc.lower().removesuffix(":443")
    if parts.scheme == "http":
        return "localhost"
    return f"{parts.scheme}:"
