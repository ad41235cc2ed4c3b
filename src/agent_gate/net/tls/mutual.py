"""TLS between paired machines: 1.3 and nothing older, one authority, both sides show a certificate, no tickets.

A session that is resumed is not verified again, so none can be: a certificate that was taken back must not come in on
the strength of an earlier connection.
"""

import asyncio
import os
import ssl
from dataclasses import dataclass, field

from agent_gate.errors import ConfigError


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its key, both in PEM; `repr` shows the certificate alone."""

    certificate: str
    key: bytes = field(repr=False)

    def load_into(self, context: ssl.SSLContext) -> None:
        """OpenSSL reads them from a file only; this one is in memory and has no name."""
        handle = os.memfd_create("certificate", os.MFD_CLOEXEC)
        try:
            os.write(handle, self.certificate.encode() + b"\n" + self.key)
            context.load_cert_chain(f"/proc/self/fd/{handle}")
        except ssl.SSLError as error:
            raise ConfigError(f"this certificate and key cannot be used: {error.reason}") from None
        finally:
            os.close(handle)


def newest_only(context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
    context.options |= ssl.OP_NO_TICKET
    context.set_alpn_protocols(["http/1.1"])
    return context


def mutual_client(own: KeyPair, authority: str) -> ssl.SSLContext:
    """For connections to machines that `authority` vouches for. Names are addresses there and prove nothing: whoever
    dials compares the certificate itself."""
    context = newest_only(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    context.check_hostname = False
    context.load_verify_locations(cadata=authority)
    own.load_into(context)
    return context


def mutual_server(own: KeyPair, authority: str) -> ssl.SSLContext:
    """For a listener that only machines come to that `authority` vouches for."""
    context = own_server(own)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=authority)
    return context


def own_server(own: KeyPair) -> ssl.SSLContext:
    """For a listener that does not know yet who may come: it shows a certificate and asks for none."""
    context = newest_only(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    context.num_tickets = 0
    own.load_into(context)
    return context


def unverified_client(own: KeyPair | None = None) -> ssl.SSLContext:
    """For the one connection that pairing makes to a stranger, whose certificate is compared with what it signs."""
    context = newest_only(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if own is not None:
        own.load_into(context)
    return context


def shown_certificate(transport: asyncio.BaseTransport) -> bytes:
    """The certificate that the other side of a connection showed, in DER; empty where it showed none."""
    tls = transport.get_extra_info("ssl_object")
    return (tls.getpeercert(binary_form=True) or b"") if tls is not None else b""
