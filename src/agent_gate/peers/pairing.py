"""The pairing handshake from the gateway's side, phase by phase, over a line to the component.

Nothing is believed before its signature: the component's key is the one that the operator pinned or confirmed, the
line ends where its certificate says, and what was signed covers everything said before.
"""

import asyncio
import hmac
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol, TypeVar

from agent_gate.core.call import new_id
from agent_gate.core.ports import Clock
from agent_gate.errors import PairingFailed
from agent_gate.observe.failpoint import reach
from agent_gate.peers import messages
from agent_gate.peers.authority import Authority, CertificateSubject, Leaf, PublicKey, check_request
from agent_gate.peers.challenge import PLAIN_BYTES, challenge_context, seal_challenge
from agent_gate.peers.encoding import Malformed, from_base64, to_base64, to_time
from agent_gate.peers.messages import PairMessage, read_pair_message
from agent_gate.peers.roles import NOTHING_NOTED, PeerNotes
from agent_gate.peers.signing import IdentityKey, Transcript, check_public_key, key_fingerprint

STEP_SECONDS = 10.0
TOTAL_SECONDS = 120.0
INSTALL_SECONDS = 60.0
NONCE_BYTES = 32
HANDSHAKES_A_MINUTE = 5
TOO_OFTEN = f"{HANDSHAKES_A_MINUTE} handshakes a minute are enough; try again in a minute"
M = TypeVar("M", bound=PairMessage)


class Line(Protocol):
    """A connection that carries the handshake. `certificate`: what the other end showed of itself over TLS, in DER."""

    @property
    def certificate_fingerprint(self) -> str | None: ...
    async def send(self, text: str) -> None: ...
    async def receive(self) -> str | bytes: ...


class PeerLedger(Protocol):
    """Where what was issued is written down, durably, before anybody relies on it."""

    async def note_issued(self, peer: "Candidate", leaf: Leaf, /) -> None:
        """An issued certificate that is not confirmed is revoked after a while. Raises `PairingFailed` where the key
        was certified for another component."""
        ...

    async def activate(self, peer: "Candidate", leaf: Leaf, /) -> None: ...
    async def revoke_issued(self, leaf: Leaf, /) -> None: ...


@dataclass(frozen=True)
class Wish:
    """Whom the operator wants to pair. `pin` is the fingerprint of the component's key, where it is known."""

    subject: CertificateSubject
    endpoint: str
    pin: str | None = None
    notes: PeerNotes = NOTHING_NOTED


@dataclass(frozen=True)
class Candidate:
    """A component that proved who it is."""

    subject: CertificateSubject
    endpoint: str
    identity_key: bytes
    pairing_id: str
    notes: PeerNotes = NOTHING_NOTED


TellPhase = Callable[[int, str], None]
"""Hears of each phase as it is reached."""

Confirm = Callable[[str], Awaitable[bool]]
"""Shows the fingerprint of a key that nobody pinned; true where a person compared it and says yes."""


@dataclass
class Pairing:
    line: Line
    identity: IdentityKey
    gateway_id: str
    authority: Authority
    ledger: PeerLedger
    clock: Clock
    confirm: Confirm
    told: TellPhase = lambda _phase, _text: None
    pairing_id: str = field(default_factory=new_id)
    transcript: Transcript = field(default_factory=Transcript)
    phase: int = 0

    async def run(self, wish: Wish) -> Candidate:
        """Pair, or raise `PairingFailed` with the phase and the reason."""
        try:
            async with asyncio.timeout(TOTAL_SECONDS):
                return await self._walk_phases(wish)
        except TimeoutError:
            self._fail("TIMEOUT", "the other side did not answer in time")
        except Malformed as error:
            self._fail("PROTOCOL", str(error))
        except (ConnectionError, EOFError, OSError) as error:
            self._fail("UNREACHABLE", f"the connection was lost ({type(error).__name__})")

    async def _walk_phases(self, wish: Wish) -> Candidate:
        await self._initiate()
        reach("pair_initiated")
        remote = await self._meet(wish)
        reach("pair_met")
        key = check_public_key(remote.public_key_ed25519)
        candidate = Candidate(wish.subject, wish.endpoint, key, self.pairing_id, wish.notes)
        await self._challenge(candidate, from_base64(remote.public_key_x25519, 32))
        reach("pair_challenged")
        leaf = self._issue(candidate, await self._receive_request(candidate))
        reach("pair_requested")
        await self.ledger.note_issued(candidate, leaf)
        reach("pair_issued")
        try:
            await self._hand_over(candidate, leaf)
        except BaseException:
            await asyncio.shield(self.ledger.revoke_issued(leaf))
            raise
        reach("pair_installed")
        await self.ledger.activate(candidate, leaf)
        reach("pair_active")
        await self._complete()
        return candidate

    async def _initiate(self) -> None:
        self._reach(1, "sending the signed initiation")
        part = messages.GatewayPart(
            gateway_id=self.gateway_id,
            public_key_ed25519=self.identity.public_text,
            nonce=to_base64(os.urandom(NONCE_BYTES)),
            issued_at=to_time(self.clock.now()),
        )
        await self._send(messages.Init(pairing_id=self.pairing_id, gateway=part), sign=True)

    async def _meet(self, wish: Wish) -> messages.RemotePart:
        self._reach(2, "checking who answers")
        identity, fields = await self._receive(messages.PeerIdentity)
        remote = identity.remote
        key = check_public_key(remote.public_key_ed25519)
        self._check_signature(fields, key)
        named = (remote.component_type, remote.component_id)
        if named != (wish.subject.component_type, wish.subject.component_id):
            self._fail("IDENTITY_MISMATCH", f"it calls itself {named[1]} ({named[0]})")
        shown = self.line.certificate_fingerprint
        if shown is not None and not hmac.compare_digest(shown, remote.mtls_cert_fingerprint):
            self._fail(
                "IDENTITY_MISMATCH",
                "somebody stands between: the line shows another certificate than its own",
            )
        await self._check_key(key_fingerprint(key), wish.pin)
        self.transcript.add(fields)
        return remote

    async def _check_key(self, fingerprint: str, pin: str | None) -> None:
        """The operator's own look at the key: the pin, or a yes on a terminal; nothing else will do."""
        if pin is not None:
            if not hmac.compare_digest(pin.lower(), fingerprint):
                self._fail("IDENTITY_MISMATCH", f"its key is {fingerprint}, and another one was named")
        elif not await self.confirm(fingerprint):
            self._fail(
                "NOT_CONFIRMED", f"nobody confirmed its key {fingerprint}; name it with --remote-fingerprint"
            )

    async def _challenge(self, candidate: Candidate, encryption_key: bytes) -> None:
        self._reach(3, "challenging its keys")
        plain, name = os.urandom(PLAIN_BYTES), new_id()
        context = challenge_context(self.pairing_id, name, self.transcript.digest())
        sealed = seal_challenge(plain, encryption_key, context)
        await self._send(
            messages.Challenge(
                pairing_id=self.pairing_id,
                challenge_id=name,
                ciphertext=to_base64(sealed),
                aad=to_base64(context),
            )
        )
        answer, fields = await self._receive(messages.ChallengeResponse)
        self._check_signature(fields, candidate.identity_key)
        right = hmac.compare_digest(from_base64(answer.challenge_plaintext, PLAIN_BYTES), plain)
        if answer.challenge_id != name or not right:
            self._fail("CHALLENGE_FAILED", "it cannot read what was encrypted for its key")
        self.transcript.add(fields)

    async def _receive_request(self, candidate: Candidate) -> PublicKey:
        self._reach(4, "reading its certificate request")
        request, fields = await self._receive(messages.CsrRequest)
        self._check_signature(fields, candidate.identity_key)
        self.transcript.add(fields)
        try:
            return check_request(
                request.csr_pem, candidate.subject, self.authority.domain, candidate.identity_key
            )
        except Malformed as error:
            self._fail("CSR_REFUSED", f"its certificate request is refused: {error}")

    def _issue(self, candidate: Candidate, key: PublicKey) -> Leaf:
        self._reach(5, "issuing its certificate")
        return self.authority.issue(key, candidate.subject, self.clock.now())

    async def _hand_over(self, candidate: Candidate, leaf: Leaf) -> None:
        issued = messages.CsrIssued(
            pairing_id=self.pairing_id,
            certificate_pem=leaf.pem,
            certificate_chain_pem=[self.authority.pem],
            serial_number=leaf.serial,
            mtls_cert_fingerprint=leaf.fingerprint,
            not_before=to_time(leaf.not_before),
            not_after=to_time(leaf.not_after),
        )
        await self._send(issued, sign=True)
        reach("pair_handed_over")
        self._reach(6, "waiting until it is installed")
        installed, fields = await self._receive(messages.CsrInstalled, INSTALL_SECONDS)
        self._check_signature(fields, candidate.identity_key)
        if installed.mtls_cert_fingerprint != leaf.fingerprint:
            self._fail("CSR_REFUSED", "it installed another certificate than the issued one")
        self.transcript.add(fields)

    async def _complete(self) -> None:
        """A lost last message changes nothing: the component is paired once the record says so."""
        self._reach(7, "paired")
        try:
            await self._send(messages.Complete(pairing_id=self.pairing_id))
        except (ConnectionError, EOFError, OSError, TimeoutError):
            return

    def _reach(self, phase: int, text: str) -> None:
        self.phase = phase
        self.told(phase, text)

    async def _send(self, message: PairMessage, *, sign: bool = False) -> None:
        text = self.transcript.write(message.as_dict(), self.identity if sign else None)
        async with asyncio.timeout(STEP_SECONDS):
            await self.line.send(text)

    async def _receive(self, expected: type[M], seconds: float | None = None) -> tuple[M, dict[str, Any]]:
        async with asyncio.timeout(seconds or STEP_SECONDS):
            text = await self.line.receive()
        message, fields = read_pair_message(text, expected)
        if isinstance(message, messages.PairError):
            self._fail(message.code[:40], f"the other side stopped: {message.message[:200]}")
        if message.pairing_id != self.pairing_id:
            self._fail("PROTOCOL", "it answered another handshake")
        return message, fields

    def _check_signature(self, fields: dict[str, Any], key: bytes) -> None:
        if not self.transcript.verifies(fields, key):
            self._fail("SIGNATURE_INVALID", "its signature does not fit what was said")

    def _fail(self, code: str, why: str) -> NoReturn:
        raise PairingFailed(
            f"Pairing failed in phase {self.phase} of 7: {why}. Nothing was paired",
            details={"phase": self.phase, "code": code},
        )
