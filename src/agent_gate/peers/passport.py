"""What the gateway shows of itself to its peers: a certificate of its own authority, made anew long before it ends."""

import ssl
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric import ec

from agent_gate.core.ports import Clock
from agent_gate.net.tls.certificates import private_pem
from agent_gate.net.tls.mutual import KeyPair, mutual_client, mutual_server
from agent_gate.peers.authority import CertificateSubject, Leaf
from agent_gate.peers.identity import GatewayIdentity
from agent_gate.peers.roles import GATEWAY


def renewal(not_before: float, not_after: float) -> float:
    """When a certificate is replaced: after two thirds of its time."""
    return not_before + (not_after - not_before) * 2 / 3


@dataclass(frozen=True, slots=True)
class Shown:
    pair: KeyPair
    leaf: Leaf
    context: ssl.SSLContext


class Passport:
    """The certificate and the TLS context in use, made for the first peer. Whoever keeps a connection asks whether
    the context is still it."""

    def __init__(self, identity: GatewayIdentity, clock: Clock) -> None:
        self._identity, self._clock = identity, clock
        self._shown: Shown | None = None
        self._due = 0.0

    def _make(self) -> Shown:
        key, identity = ec.generate_private_key(ec.SECP256R1()), self._identity
        subject = CertificateSubject(GATEWAY, identity.gateway_id)
        leaf = identity.authority.issue(key.public_key(), subject, self._clock.now())
        pair = KeyPair(leaf.pem, private_pem(key))
        return Shown(pair, leaf, mutual_client(pair, identity.authority.pem))

    def _current(self) -> Shown:
        if self._shown is None or self._clock.now() >= self._due:
            self._shown = self._make()
            self._due = renewal(self._shown.leaf.not_before, self._shown.leaf.not_after)
        return self._shown

    @property
    def pair(self) -> KeyPair:
        return self._current().pair

    @property
    def context(self) -> ssl.SSLContext:
        return self._current().context

    @property
    def fingerprint(self) -> str:
        return self._current().leaf.fingerprint

    def listening(self, *, strangers: bool) -> ssl.SSLContext:
        """For the listener that peers come to; with `strangers` also those who have no certificate yet."""
        context = mutual_server(self.pair, self._identity.authority.pem)
        if strangers:
            context.verify_mode = ssl.CERT_OPTIONAL
        return context
