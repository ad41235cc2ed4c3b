"""The certificate that a listener shows: its files, its names, and its fingerprint, `sha256:<hex>` of its DER form."""

import base64
import re
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509

from agent_gate.errors import ConfigError
from agent_gate.net.tls.trust import fingerprint_der

PEM = re.compile(r"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Where the certificate and its key are, the fingerprint that clients pin, and the names it is for."""

    cert: Path
    key: Path
    fingerprint: str
    names: tuple[str, ...] = ()


def named_certificate(cert: Path, key: Path) -> CertificateFiles:
    """The certificate and key in these files."""
    try:
        pem = cert.read_bytes()
        return CertificateFiles(cert, key, fingerprint(pem.decode("latin-1")), names_in(pem))
    except OSError as error:
        raise ConfigError(f"cannot read the certificate {cert}: {error.strerror or error}") from error
    except ConfigError as error:
        raise ConfigError(f"cannot use the certificate {cert}: {error.message}") from None


def fingerprint(pem: str) -> str:
    """The fingerprint of the first certificate in a PEM file."""
    match = PEM.search(pem)
    if match is None:
        raise ConfigError("there is no certificate in this PEM file")
    try:
        return fingerprint_der(base64.b64decode(match[1]))
    except ValueError:
        raise ConfigError("the certificate in this PEM file is damaged") from None


def names_in(pem: bytes) -> tuple[str, ...]:
    """The names and addresses that the first certificate in a PEM file is for; none that stand for many."""
    try:
        found = x509.load_pem_x509_certificate(pem).extensions
        names = found.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    except ValueError:
        raise ConfigError("the certificate in this PEM file is damaged") from None
    addresses = (str(address) for address in names.get_values_for_type(x509.IPAddress))
    return (*(name for name in names.get_values_for_type(x509.DNSName) if "*" not in name), *addresses)


def server_context(cert: Path | str, key: Path | str) -> ssl.SSLContext:
    """TLS 1.2 or newer with this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])

    def no_passphrase() -> str:
        raise ConfigError(
            f"the key {key} is locked with a passphrase, which nobody can type into a service. "
            f"Unlock it: openssl pkey -in {key} -out unlocked.key"
        )

    try:
        context.load_cert_chain(cert, key, no_passphrase)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"cannot use the certificate {cert} with the key {key}: {error}") from error
    return context


def renew(context: ssl.SSLContext, cert: Path | str, key: Path | str) -> None:
    """Have the next handshakes on a listener with `context` use this certificate.

    It gets a context of its own: loaded into the old one, a certificate with another kind of key would stand beside
    the one that it replaces, and clients would choose.
    """
    fresh = server_context(cert, key)

    def choose(connection: ssl.SSLObject, _name: str, _context: ssl.SSLContext) -> None:
        connection.context = fresh

    context.sni_callback = choose
