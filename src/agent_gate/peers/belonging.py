"""What a component does with its membership: it shows its certificate, and believes its own gateway alone."""

import ssl
from functools import cached_property

from cryptography import x509

from agent_gate.net.tls.mutual import KeyPair, mutual_client
from agent_gate.peers.authority import Leaf, component_uri
from agent_gate.peers.joining import Membership
from agent_gate.peers.passport import renewal
from agent_gate.peers.roles import GATEWAY


class Belonging:
    """One membership in use."""

    def __init__(self, membership: Membership) -> None:
        self.membership = membership

    @property
    def pair(self) -> KeyPair:
        return KeyPair(self.membership.certificate_pem, self.membership.key_pem)

    @cached_property
    def leaf(self) -> Leaf:
        return Leaf(x509.load_pem_x509_certificate(self.membership.certificate_pem.encode()))

    @property
    def gateway_uri(self) -> str:
        return component_uri(self.leaf.domain, GATEWAY, self.membership.gateway_id)

    @property
    def renew_at(self) -> float:
        return renewal(self.leaf.not_before, self.leaf.not_after)

    def context(self) -> ssl.SSLContext:
        """For connections to the gateway; whoever dials asks `check_gateway` too."""
        return mutual_client(self.pair, self.membership.authority_pem)

    def check_gateway(self, certificate: bytes) -> None:
        """Other components have certificates of the same authority; only one of the gateway will do."""
        if not certificate or Leaf(x509.load_der_x509_certificate(certificate)).names() != [self.gateway_uri]:
            raise ssl.SSLCertVerificationError(
                "what answers is not the gateway that this component belongs to"
            )
