"""Who stands at the other end of an mTLS connection, asked anew for every request."""

from dataclasses import dataclass
from functools import lru_cache

from cryptography import x509

from agent_gate.errors import PairingRequired
from agent_gate.peers.authority import Leaf
from agent_gate.peers.authorization import ANYTHING, PeerLease, PeerPolicy, Scope, check_allowed, why_not
from agent_gate.peers.records import Peer, Peers


@lru_cache(maxsize=4096)
def shown(certificate: bytes) -> tuple[str, str, str]:
    """A certificate's fingerprint, the one name it is for, and that name's domain; TLS has verified the rest."""
    leaf = Leaf(x509.load_der_x509_certificate(certificate))
    names = leaf.names()
    return leaf.fingerprint, names[0] if len(names) == 1 else "", leaf.domain


def peer_of(peers: Peers, certificate: bytes, domain: str) -> Peer:
    """The active peer whose current certificate this is; `PairingRequired` for everybody else."""
    if not certificate:
        raise PairingRequired("Show the certificate that pairing gave you")
    fingerprint, name, named_domain = shown(certificate)
    if named_domain != domain:
        raise PairingRequired("The certificate is of another gateway. Pair the component with this one")
    return peers.authorize(fingerprint, name, domain)


@dataclass(frozen=True, slots=True)
class PairedVisitor:
    """A component that was let in, with what it may do."""

    peer: Peer
    policy: PeerPolicy
    lease: PeerLease | None = None

    def may(self, action: str, about: Scope = ANYTHING) -> bool:
        return not why_not(action, self.peer.component_type, self.policy, self.lease, about)

    def check(self, action: str, about: Scope = ANYTHING) -> None:
        check_allowed(action, self.peer.component_type, self.policy, self.lease, about)
