"""TLS for listeners: the certificate made at first start, and its fingerprint, `sha256:<hex>` of its DER form."""

import base64
import ipaddress
import os
import re
import ssl
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from agent_gate.errors import ConfigError
from agent_gate.net.trust import fingerprint_der

LIFETIME = timedelta(days=825)
LOOPBACK = ("localhost", "127.0.0.1", "::1")
PEM = re.compile(r"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Where the certificate and its key are, the fingerprint that clients pin, and the names it is for."""

    cert: Path
    key: Path
    fingerprint: str
    names: tuple[str, ...] = ()


def ensure_certificate(folder: Path, names: Iterable[str] = ()) -> CertificateFiles:
    """The gateway's own certificate in `folder`: made when there is none, or when it has expired."""
    cert, key = folder / "gateway.crt", folder / "gateway.key"
    if not (cert.is_file() and key.is_file()) or _expired(cert):
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make(cert, key, [*LOOPBACK, *(name for name in names if name not in LOOPBACK)])
        except OSError as error:
            raise ConfigError(f"cannot make the certificate {cert}: {error.strerror or error}") from error
    return named_certificate(cert, key)


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


def _expired(cert: Path) -> bool:
    try:
        loaded = x509.load_pem_x509_certificate(cert.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"cannot use the gateway's own certificate {cert}: {error}. "
            "Remove it to have another one made; clients that pin its fingerprint need the new one then"
        ) from error
    return loaded.not_valid_after_utc <= datetime.now(UTC)


def _make(cert: Path, key: Path, names: Sequence[str]) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    signed = _certificate(names, private)
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write(key, pem, 0o600)
    _write(cert, signed.public_bytes(serialization.Encoding.PEM), 0o644)


def _certificate(names: Sequence[str], private: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    now = datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "agent-gate")])
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(private.public_key()), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(private, hashes.SHA256())
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        pass
    try:
        return x509.DNSName(name if name.isascii() else name.encode("idna").decode("ascii"))
    except ValueError as error:
        raise ConfigError(f"{name!r} cannot stand in a certificate: {error}") from None


def _write(path: Path, data: bytes, mode: int) -> None:
    """Write a new file beside its place and move it there whole, never through a link."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
