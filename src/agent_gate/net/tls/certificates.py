"""The certificates made at a first start: a small authority that clients trust, and one for the listener below it.

`ca.crt` is what clients are given; `gateway.crt` is shown to them, with the authority behind it. The listener's is
made again when it ends or lacks a name, under the same authority, so that whoever trusts that goes on. A certificate
of an earlier version, which was its own authority, is kept until it ends: clients may have pinned it.
"""

import ipaddress
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from agent_gate.errors import ConfigError
from agent_gate.net.tls.files import CertificateFiles, named_certificate, names_in

LIFETIME = timedelta(days=825)
AUTHORITY_LIFETIME = timedelta(days=3650)
LOOPBACK = ("localhost", "127.0.0.1", "::1")
LEAF = "gateway.crt"

PrivateKey = ec.EllipticCurvePrivateKey


def ensure_certificate(folder: Path, names: Iterable[str] = ()) -> CertificateFiles:
    """The gateway's own certificate in `folder`: made when there is none, when it ends, or when it lacks a name."""
    cert, key = folder / LEAF, folder / "gateway.key"
    wanted = [*LOOPBACK, *(name for name in dict.fromkeys(names) if name not in LOOPBACK)]
    try:
        if not (cert.is_file() and key.is_file()) or _outdated(cert, wanted):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make(cert, key, wanted)
    except OSError as error:
        raise ConfigError(f"cannot make the certificate {cert}: {error.strerror or error}") from error
    return named_certificate(cert, key)


def _outdated(cert: Path, wanted: Sequence[str]) -> bool:
    pem = cert.read_bytes()
    try:
        loaded = x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise ConfigError(
            f"cannot use the gateway's own certificate {cert}: {error}. "
            "Remove it to have another one made; clients that pin its fingerprint need the new one then"
        ) from error
    if loaded.not_valid_after_utc <= datetime.now(UTC):
        return True
    kept = loaded.issuer == loaded.subject
    return not kept and not {_spelled(name) for name in wanted} <= set(names_in(pem))


def _make(cert: Path, key: Path, names: Sequence[str]) -> None:
    alternative = [_general_name(name) for name in names]
    authority, signer = _authority(cert.parent)
    private = ec.generate_private_key(ec.SECP256R1())
    leaf = _begun("agent-gate", authority.subject, private, LIFETIME)
    leaf = leaf.add_extension(x509.SubjectAlternativeName(alternative), critical=False)
    leaf = leaf.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    leaf = leaf.add_extension(key_usage(signs_certificates=False), critical=True)
    leaf = leaf.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    leaf = leaf.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
    )
    _write(key, private_pem(private), 0o600)
    _write(cert, b"".join(_public(one) for one in (leaf.sign(signer, hashes.SHA256()), authority)), 0o644)


def _authority(folder: Path) -> tuple[x509.Certificate, PrivateKey]:
    """The authority that is there, while it outlives what it signs; else a new one."""
    cert, key = folder / "ca.crt", folder / "ca.key"
    if cert.is_file() and key.is_file():
        try:
            known = x509.load_pem_x509_certificate(cert.read_bytes())
            private = serialization.load_pem_private_key(key.read_bytes(), None)
        except (ValueError, TypeError) as error:
            raise ConfigError(
                f"cannot use the gateway's own authority {cert}: {error}. Remove it and {key} to have another one "
                "made; clients that trust it need the new one then"
            ) from error
        if isinstance(private, PrivateKey) and known.not_valid_after_utc > datetime.now(UTC) + LIFETIME:
            return known, private
    fresh = ec.generate_private_key(ec.SECP256R1())
    # A name of its own: clients that remember an earlier authority would try its key on this one's certificates.
    name = f"agent-gate authority {os.urandom(4).hex()}"
    made = _begun(name, _named(name), fresh, AUTHORITY_LIFETIME)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    signed = made.add_extension(key_usage(signs_certificates=True), critical=True).sign(
        fresh, hashes.SHA256()
    )
    _write(key, private_pem(fresh), 0o600)
    _write(cert, _public(signed), 0o644)
    return signed, fresh


def _begun(
    subject: str, issuer: x509.Name, private: PrivateKey, lifetime: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_named(subject))
        .issuer_name(issuer)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(private.public_key()), critical=False)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _public(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def private_pem(private: PrivateKey) -> bytes:
    return private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(_spelled(name))


def _spelled(name: str) -> str:
    """A name as it stands in a certificate."""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        pass
    try:
        spelled = name if name.isascii() else name.encode("idna").decode("ascii")
        x509.DNSName(spelled)
    except ValueError as error:
        raise ConfigError(f"{name!r} cannot stand in a certificate: {error}") from None
    return spelled


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
