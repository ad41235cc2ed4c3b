"""Whom a client trusts: the system's authorities, one of its own, or exactly one certificate by its fingerprint.

Imports nothing heavy, because programs that must start at once use it too.
"""

import hmac
import re
import ssl
from hashlib import sha256
from pathlib import Path

from agent_gate.errors import ConfigError


def made_authority(folder: Path) -> Path | None:
    """What to trust of the certificates that a gateway made in its `tls` folder; None where it made none."""
    return next((path for name in ("ca.crt", "gateway.crt") if (path := folder / name).is_file()), None)


def client_context(ca: Path | str | None = None, fingerprint: str | None = None) -> ssl.SSLContext:
    """Trust the system's authorities, or only `ca`, or (checked after the handshake) one fingerprint."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if fingerprint is not None:
        plain_fingerprint(fingerprint)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif ca is not None:
        try:
            context.load_verify_locations(cafile=ca)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"Cannot use {ca} as certificate authority: {error}") from None
    else:
        context.load_default_certs()
    return context


def fingerprint_der(der: bytes) -> str:
    return f"sha256:{sha256(der).hexdigest()}"


def plain_fingerprint(text: str) -> str:
    """`AA:BB:…`, plain hex and `sha256:…` are the same fingerprint."""
    digits = text.strip().lower().removeprefix("sha256:").replace(":", "")
    if not re.fullmatch(r"[0-9a-f]{64}", digits):
        raise ConfigError("A fingerprint is sha256: followed by 64 hex digits")
    return digits


def is_pinned(der: bytes | None, expected: str) -> bool:
    """Whether the certificate that the other side showed is the pinned one."""
    return hmac.compare_digest(sha256(der or b"").hexdigest(), plain_fingerprint(expected))


def check_fingerprint(ssl_object: ssl.SSLObject | ssl.SSLSocket, expected: str) -> None:
    """Compare the peer's certificate with the pinned one, after the handshake."""
    der = ssl_object.getpeercert(binary_form=True)
    if not is_pinned(der, expected):
        seen = fingerprint_der(der) if der else "missing"
        raise ssl.SSLCertVerificationError(f"the certificate is not the pinned one; it is {seen}")
