"""The pairing handshake from the component's side: a tool host, a subscriber or a CLI that joins a gateway.

A component believes one gateway, whose public key stands in its own settings, and installs only a certificate that
this gateway signed in this handshake, for its own key and its own name.
"""

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol, TypeVar

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from agent_gate.core.ports import Clock
from agent_gate.errors import PairingFailed
from agent_gate.net.tls.certificates import private_pem
from agent_gate.observe.failpoint import reach
from agent_gate.peers import messages
from agent_gate.peers.authority import UNREADABLE, Leaf, component_uri, request_certificate, spki
from agent_gate.peers.challenge import challenge_context, open_challenge
from agent_gate.peers.encoding import Malformed, canonical, from_base64, from_time, to_base64
from agent_gate.peers.messages import PairMessage, read_pair_message
from agent_gate.peers.pairing import (
    HANDSHAKES_A_MINUTE,
    INSTALL_SECONDS,
    STEP_SECONDS,
    TOO_OFTEN,
    TOTAL_SECONDS,
    Line,
)
from agent_gate.peers.signing import IdentityKey, Transcript

FRESH_SECONDS = 120.0
REMEMBERED_SECONDS = 600.0
M = TypeVar("M", bound=PairMessage)


class ReplayMemory(Protocol):
    """The initiations seen lately, kept across restarts."""

    def is_new(self, pairing_id: str, nonce: str, now: float) -> bool:
        """Whether this one was never seen; from now on it was. Durable before it returns."""
        ...

    def lately(self, now: float) -> int:
        """How many of them came within the last minute."""
        ...


@dataclass(frozen=True)
class Component:
    """Who joins, and which gateway it believes."""

    component_type: str
    component_id: str
    identity: IdentityKey
    gateway_key: bytes


@dataclass(frozen=True)
class Membership:
    """What a component is left with: its certificate and key, the authority it believes, and its gateway's name."""

    certificate_pem: str
    key_pem: bytes
    authority_pem: str
    gateway_id: str
    fingerprint: str
    not_after: float

    def __repr__(self) -> str:
        return f"Membership({self.gateway_id}, {self.fingerprint})"


Install = Callable[[Membership], Awaitable[None]]


@dataclass
class Joining:
    """One handshake. `own_certificate` is the fingerprint of what this end shows over TLS."""

    line: Line
    component: Component
    own_certificate: str
    seen: ReplayMemory
    clock: Clock
    install: Install
    transcript: Transcript = field(default_factory=Transcript)
    pairing_id: str = ""

    async def run(self) -> Membership:
        """Join, or raise `PairingFailed`; the gateway is told why."""
        try:
            async with asyncio.timeout(TOTAL_SECONDS):
                return await self._walk_phases()
        except TimeoutError:
            await self._refuse("TIMEOUT", "the gateway did not answer in time")
        except Malformed as error:
            await self._refuse("PROTOCOL", str(error))
        except (ConnectionError, EOFError, OSError) as error:
            raise PairingFailed(f"The gateway's connection was lost ({type(error).__name__})") from None

    async def _walk_phases(self) -> Membership:
        gateway = await self._receive_initiation()
        reach("join_initiated")
        encryption = X25519PrivateKey.generate()
        await self._introduce(encryption)
        reach("join_introduced")
        await self._answer_challenge(encryption)
        reach("join_answered")
        key = ec.generate_private_key(ec.SECP256R1())
        csr = request_certificate(key, self.component.component_id)
        await self._send(messages.CsrRequest(pairing_id=self.pairing_id, csr_pem=csr), sign=True)
        reach("join_requested")
        membership = await self._receive_certificate(key, gateway.gateway_id)
        reach("join_issued")
        await self.install(membership)
        reach("join_kept")
        installed = messages.CsrInstalled(
            pairing_id=self.pairing_id, mtls_cert_fingerprint=membership.fingerprint
        )
        await self._send(installed, sign=True)
        reach("join_installed")
        await self._receive(messages.Complete)
        reach("join_complete")
        return membership

    async def _receive_initiation(self) -> messages.GatewayPart:
        init, fields = await self._receive(messages.Init)
        self.pairing_id, part = init.pairing_id, init.gateway
        named = from_base64(part.public_key_ed25519, 32)
        if not hmac.compare_digest(named, self.component.gateway_key):
            await self._refuse("SIGNATURE_INVALID", "another gateway is configured here")
        await self._check_signature(fields)
        now = self.clock.now()
        if abs(now - from_time(part.issued_at)) > FRESH_SECONDS:
            await self._refuse(
                "CLOCK_SKEW", "the initiation is too old, or the clocks differ by over two minutes"
            )
        from_base64(part.nonce, 32)
        if not self.seen.is_new(init.pairing_id, part.nonce, now):
            await self._refuse("REPLAYED", "this initiation was seen before")
        if self.seen.lately(now) > HANDSHAKES_A_MINUTE:
            await self._refuse("RATE_LIMITED", TOO_OFTEN)
        self.transcript.add(fields)
        return part

    async def _introduce(self, encryption: X25519PrivateKey) -> None:
        part = messages.RemotePart(
            component_type=self.component.component_type,
            component_id=self.component.component_id,
            public_key_ed25519=self.component.identity.public_text,
            public_key_x25519=to_base64(encryption.public_key().public_bytes_raw()),
            mtls_cert_fingerprint=self.own_certificate,
        )
        await self._send(messages.PeerIdentity(pairing_id=self.pairing_id, remote=part), sign=True)

    async def _answer_challenge(self, encryption: X25519PrivateKey) -> None:
        challenge, fields = await self._receive(messages.Challenge)
        context = challenge_context(self.pairing_id, challenge.challenge_id, self.transcript.digest())
        if from_base64(challenge.aad) != context:
            await self._refuse("CHALLENGE_FAILED", "the challenge belongs to another handshake")
        plain = open_challenge(from_base64(challenge.ciphertext), encryption, context)
        self.transcript.add(fields)
        answer = messages.ChallengeResponse(
            pairing_id=self.pairing_id,
            challenge_id=challenge.challenge_id,
            challenge_plaintext=to_base64(plain),
        )
        await self._send(answer, sign=True)

    async def _receive_certificate(self, key: ec.EllipticCurvePrivateKey, gateway_id: str) -> Membership:
        issued, fields = await self._receive(messages.CsrIssued, INSTALL_SECONDS)
        await self._check_signature(fields)
        if len(issued.certificate_chain_pem) != 1:
            await self._refuse("CSR_REFUSED", "the chain is not exactly one authority")
        authority_pem = issued.certificate_chain_pem[0]
        leaf = self._check_leaf(issued, key, authority_pem)
        self.transcript.add(fields)
        return Membership(
            certificate_pem=issued.certificate_pem,
            key_pem=private_pem(key),
            authority_pem=authority_pem,
            gateway_id=gateway_id,
            fingerprint=leaf.fingerprint,
            not_after=leaf.not_after,
        )

    def _check_leaf(
        self, issued: messages.CsrIssued, key: ec.EllipticCurvePrivateKey, authority_pem: str
    ) -> Leaf:
        try:
            leaf = Leaf(x509.load_pem_x509_certificate(issued.certificate_pem.encode()))
            authority = x509.load_pem_x509_certificate(authority_pem.encode())
            leaf.certificate.verify_directly_issued_by(authority)
            certified = leaf.key
        except UNREADABLE:
            raise Malformed("the certificate was not issued by the authority beside it") from None
        if certified != spki(key.public_key()):
            raise Malformed("the certificate is for another key")
        if leaf.fingerprint != issued.mtls_cert_fingerprint:
            raise Malformed("the certificate has another fingerprint than the gateway says")
        self._check_name(leaf)
        return leaf

    def _check_name(self, leaf: Leaf) -> None:
        own = component_uri(leaf.domain, self.component.component_type, self.component.component_id)
        if leaf.names() != [own]:
            raise Malformed("the certificate is for another component")

    async def _send(self, message: PairMessage, *, sign: bool = False) -> None:
        text = self.transcript.write(message.as_dict(), self.component.identity if sign else None)
        async with asyncio.timeout(STEP_SECONDS):
            await self.line.send(text)

    async def _receive(self, expected: type[M], seconds: float | None = None) -> tuple[M, dict[str, Any]]:
        async with asyncio.timeout(seconds or STEP_SECONDS):
            text = await self.line.receive()
        message, fields = read_pair_message(text, expected)
        if isinstance(message, messages.PairError):
            raise PairingFailed(f"The gateway stopped the handshake: {message.message[:200]}")
        if self.pairing_id and message.pairing_id != self.pairing_id:
            raise Malformed("it answers another handshake")
        return message, fields

    async def _check_signature(self, fields: dict[str, Any]) -> None:
        if not self.transcript.verifies(fields, self.component.gateway_key):
            await self._refuse("SIGNATURE_INVALID", "the gateway's signature does not fit what was said")

    async def _refuse(self, code: str, why: str) -> NoReturn:
        """Tell the gateway why, as far as that still reaches it, and stop."""
        error = messages.PairError(pairing_id=self.pairing_id or "unknown0", code=code, message=why)
        try:
            async with asyncio.timeout(STEP_SECONDS):
                await self.line.send(canonical(error.as_dict()).decode())
        except (ConnectionError, EOFError, OSError, TimeoutError):
            pass
        raise PairingFailed(f"Pairing was refused: {why}", details={"code": code})
