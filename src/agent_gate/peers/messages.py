"""The messages of the pairing handshake, read strictly: no unknown, missing or repeated field, nothing too long."""

from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from agent_gate.core.strict import MalformedJson, strict_json
from agent_gate.peers.encoding import Malformed

VERSION = "v1"
MOST_BYTES = 64 << 10
MOST_PEM = 8 << 10

Name = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")]
Id = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_-]{8,64}\Z")]
Short = Annotated[str, Meta(max_length=512)]
Fingerprint = Annotated[str, Meta(pattern=r"\Asha256:[0-9a-f]{64}\Z")]
Pem = Annotated[str, Meta(max_length=MOST_PEM)]


class GatewayPart(Struct, frozen=True, forbid_unknown_fields=True):
    gateway_id: Name
    public_key_ed25519: Short
    nonce: Short
    issued_at: Short


class RemotePart(Struct, frozen=True, forbid_unknown_fields=True):
    component_type: Name
    component_id: Name
    public_key_ed25519: Short
    public_key_x25519: Short
    mtls_cert_fingerprint: Fingerprint


class PairMessage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """What every message has. `version` stands there to be checked, not chosen."""

    version: Annotated[str, Meta(pattern=r"\Av1\Z")] = VERSION
    pairing_id: Id

    def as_dict(self) -> dict[str, Any]:
        built: dict[str, Any] = msgspec.to_builtins(self)
        return {name: value for name, value in built.items() if value is not None}


class Init(PairMessage, frozen=True, kw_only=True, tag="pair.init"):
    gateway: GatewayPart
    sig_ed25519: Short | None = None


class PeerIdentity(PairMessage, frozen=True, kw_only=True, tag="pair.identity"):
    remote: RemotePart
    sig_ed25519: Short | None = None


class Challenge(PairMessage, frozen=True, kw_only=True, tag="pair.challenge"):
    challenge_id: Id
    ciphertext: Short
    aad: Short


class ChallengeResponse(PairMessage, frozen=True, kw_only=True, tag="pair.challenge_response"):
    challenge_id: Id
    challenge_plaintext: Short
    sig_ed25519: Short | None = None


class CsrRequest(PairMessage, frozen=True, kw_only=True, tag="pair.csr_request"):
    csr_pem: Pem
    sig_ed25519: Short | None = None


class CsrIssued(PairMessage, frozen=True, kw_only=True, tag="pair.csr_issued"):
    certificate_pem: Pem
    certificate_chain_pem: Annotated[list[Pem], Meta(max_length=4)]
    serial_number: Short
    mtls_cert_fingerprint: Fingerprint
    not_before: Short
    not_after: Short
    sig_ed25519: Short | None = None


class CsrInstalled(PairMessage, frozen=True, kw_only=True, tag="pair.csr_installed"):
    mtls_cert_fingerprint: Fingerprint
    sig_ed25519: Short | None = None


class Complete(PairMessage, frozen=True, kw_only=True, tag="pair.complete"):
    status: Annotated[str, Meta(pattern=r"\Aok\Z")] = "ok"


class PairError(PairMessage, frozen=True, kw_only=True, tag="pair.error"):
    """Either side says why it stops. It changes nothing but the sentence that a person reads."""

    code: Short
    message: Short = ""


M = TypeVar("M", bound=PairMessage)


def read_pair_message(text: str | bytes, expected: type[M]) -> tuple[M | PairError, dict[str, Any]]:
    """The message of the one type that may come now (or `pair.error`), and its fields as they were sent."""
    if len(text if isinstance(text, bytes) else text.encode(errors="replace")) > MOST_BYTES:
        raise Malformed(f"a message has more than {MOST_BYTES} bytes")
    try:
        fields = strict_json(text)
    except MalformedJson as error:
        raise Malformed(str(error)) from None
    if not isinstance(fields, dict) or "version" not in fields:
        raise Malformed("it is no message of this protocol")
    if fields.get("type") == PairError.__struct_config__.tag:
        return convert(fields, PairError), fields
    return convert(fields, expected), fields


def convert(fields: dict[str, Any], kind: type[M]) -> M:
    wanted = kind.__struct_config__.tag
    if fields.get("type") != wanted:
        raise Malformed(f"{wanted} was expected, and something else came")
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        raise Malformed(f"{wanted}: {error}") from None
