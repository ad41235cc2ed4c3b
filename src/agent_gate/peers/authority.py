"""The pairing authority: a small CA that vouches for paired components and for nothing else.

A leaf says who a component is by exactly one name, a SPIFFE URI; of a certificate request nothing counts but its key.
"""

import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from agent_gate.net.tls.certificates import key_usage, private_pem
from agent_gate.peers.encoding import Malformed
from agent_gate.peers.messages import MOST_PEM
from agent_gate.peers.roles import dials, serves

CA_LIFETIME = timedelta(days=3652)
LEAF_LIFETIME = timedelta(days=30)
BACKDATED = timedelta(minutes=5)
REQUEST = re.compile(r"\s*-----BEGIN CERTIFICATE REQUEST-----[^-]+-----END CERTIFICATE REQUEST-----\s*")
UNREADABLE = (
    ValueError,
    TypeError,
    InvalidSignature,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
"""What reading a certificate or a request of somebody else may raise."""
PublicKey = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey


def component_uri(domain: str, component_type: str, component_id: str) -> str:
    return f"spiffe://{domain}/{component_type}/{component_id}"


def trust_domain(gateway_id: str) -> str:
    """The gateway's id as a SPIFFE trust domain."""
    return re.sub(r"[^a-z0-9._-]", "-", gateway_id.lower()).strip(".-_") or "gateway"


def spki(key: PublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


@dataclass(frozen=True)
class Leaf:
    """A certificate that was issued."""

    certificate: x509.Certificate

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def fingerprint(self) -> str:
        return f"sha256:{self.certificate.fingerprint(hashes.SHA256()).hex()}"

    @property
    def serial(self) -> str:
        return f"{self.certificate.serial_number:x}"

    @property
    def key(self) -> bytes:
        """The key it is for, to notice one that was certified before."""
        key = self.certificate.public_key()
        return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)

    def names(self) -> list[str]:
        """The URIs it is for; none where it is for anything else besides."""
        try:
            found = self.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            return []
        uris = found.get_values_for_type(x509.UniformResourceIdentifier)
        return uris if len(list(found)) == len(uris) else []

    @property
    def domain(self) -> str:
        """The trust domain of whom it is for; empty where it names nobody."""
        names = self.names()
        return names[0].removeprefix("spiffe://").partition("/")[0] if names else ""

    @property
    def not_before(self) -> float:
        return self.certificate.not_valid_before_utc.timestamp()

    @property
    def not_after(self) -> float:
        return self.certificate.not_valid_after_utc.timestamp()


@dataclass(frozen=True)
class CertificateSubject:
    """Who a certificate is for. `dials_gateway`: a tool host that may also connect to the gateway."""

    component_type: str
    component_id: str
    dials_gateway: bool = False

    def usages(self) -> list[x509.ObjectIdentifier]:
        server = [ExtendedKeyUsageOID.SERVER_AUTH] if serves(self.component_type) else []
        may_dial = dials(self.component_type, dials_gateway=self.dials_gateway)
        return server + ([ExtendedKeyUsageOID.CLIENT_AUTH] if may_dial else [])


@dataclass(frozen=True)
class Authority:
    """The CA's key and certificate; `repr` shows neither."""

    private: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    domain: str

    def __repr__(self) -> str:
        return f"Authority({self.domain})"

    @classmethod
    def new(cls, domain: str, now: float) -> "Authority":
        private = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"agent-gate pairing {domain}"[:64])])
        began = datetime.fromtimestamp(now, UTC)
        only = x509.NameConstraints([x509.UniformResourceIdentifier(domain)], None)
        built = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(private.public_key())
            .serial_number(secrets.randbits(127) + 1)
            .not_valid_before(began - BACKDATED)
            .not_valid_after(began + CA_LIFETIME)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(key_usage(signs_certificates=True), critical=True)
            .add_extension(only, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(private.public_key()), critical=False)
            .sign(private, hashes.SHA256())
        )
        return cls(private, built, domain)

    @classmethod
    def read(cls, key_pem: bytes, certificate_pem: bytes, domain: str) -> "Authority":
        private = serialization.load_pem_private_key(key_pem, None)
        certificate = x509.load_pem_x509_certificate(certificate_pem)
        if not isinstance(private, ec.EllipticCurvePrivateKey):
            raise Malformed("the authority's key is no P-256 key")
        if spki(private.public_key()) != Leaf(certificate).key:
            raise Malformed("the authority's key and certificate do not belong together")
        return cls(private, certificate, domain)

    @property
    def key_pem(self) -> bytes:
        return private_pem(self.private)

    @cached_property
    def pem(self) -> str:
        return Leaf(self.certificate).pem

    def issue(
        self, key: PublicKey, subject: CertificateSubject, now: float, lifetime: timedelta = LEAF_LIFETIME
    ) -> Leaf:
        """A certificate for this key and this component, and nothing else."""
        began = datetime.fromtimestamp(now, UTC)
        uri = component_uri(self.domain, subject.component_type, subject.component_id)
        built = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject.component_id)]))
            .issuer_name(self.certificate.subject)
            .public_key(key)
            .serial_number(secrets.randbits(127) + 1)
            .not_valid_before(began - BACKDATED)
            .not_valid_after(began + lifetime)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(subject.usages()), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri)]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.private.public_key()), critical=False
            )
            .sign(self.private, hashes.SHA256())
        )
        return Leaf(built)


def request_certificate(key: ec.EllipticCurvePrivateKey, component_id: str) -> str:
    """The request that a component sends: its key and its name."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, component_id)])
    built = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    return built.public_bytes(serialization.Encoding.PEM).decode()


def check_request(pem: str, subject: CertificateSubject, domain: str, identity_key: bytes) -> PublicKey:
    """The key of a certificate request. Whatever it asks for beyond its own name refuses it."""
    if len(pem) > MOST_PEM or not REQUEST.fullmatch(pem):
        raise Malformed("it is not one certificate request in PEM form")
    try:
        request = x509.load_pem_x509_csr(pem.encode())
        if not request.is_signature_valid:
            raise Malformed("it is not signed by its own key")
        names, extensions = request.subject, request.extensions
        key = request.public_key()
    except UNREADABLE as error:
        raise Malformed("it cannot be read") from error
    check_request_names(names, extensions, subject, domain)
    return check_request_key(key, identity_key)


def check_request_names(
    names: x509.Name, extensions: x509.Extensions, subject: CertificateSubject, domain: str
) -> None:
    common = [str(found.value) for found in names.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if any(name != subject.component_id for name in common):
        raise Malformed("it is for another component")
    for extension in extensions:
        if isinstance(extension.value, x509.BasicConstraints) and extension.value.ca:
            raise Malformed("it asks to be an authority")
        if isinstance(extension.value, x509.SubjectAlternativeName):
            uris = extension.value.get_values_for_type(x509.UniformResourceIdentifier)
            own = component_uri(domain, subject.component_type, subject.component_id)
            if any(uri != own for uri in uris):
                raise Malformed("it asks for the name of another component")


def check_request_key(key: object, identity_key: bytes) -> PublicKey:
    if isinstance(key, ed25519.Ed25519PublicKey):
        if key.public_bytes_raw() == identity_key:
            raise Malformed("its key is the identity key, which signs nothing else")
        return key
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        return key
    raise Malformed("its key is neither P-256 nor Ed25519")
