"""What paired machines and those that would be send: pairing messages, requests and answers of hosts, events.

The first byte chooses the kind. What is read is in one form only: written again it is read as the same.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from cryptography import x509
from tests.fuzz.fuzzing import Target

from agent_gate.peers import messages
from agent_gate.peers.authority import CertificateSubject, check_request
from agent_gate.peers.encoding import Malformed
from agent_gate.peers.envelope import read_event
from agent_gate.peers.messages import read_pair_message
from agent_gate.peers.toolwire import HostReply, HostRequest, Offer, read_wire

SUBJECT = CertificateSubject("tool_host", "memory-east")


def pairing(kind: type[messages.PairMessage]) -> Callable[[bytes], Any]:
    return lambda data: read_pair_message(data, kind)[0]


def requested(data: bytes) -> x509.Certificate | None:
    check_request(data.decode("utf-8", "replace"), SUBJECT, "home", bytes(32))
    return None


READERS: tuple[Callable[[bytes], Any], ...] = (
    pairing(messages.Init),
    pairing(messages.PeerIdentity),
    pairing(messages.ChallengeResponse),
    pairing(messages.CsrRequest),
    pairing(messages.CsrIssued),
    requested,
    lambda data: read_wire(data, HostRequest),
    lambda data: read_wire(data, HostReply),
    lambda data: read_wire(data, Offer),
    read_event,
)


def run(data: bytes) -> None:
    read = READERS[data[0] % len(READERS)] if data else READERS[0]
    try:
        found = read(data[1:])
    except Malformed:
        return
    if isinstance(found, messages.PairMessage):
        assert read(msgspec.json.encode(found.as_dict())) == found
    elif found is not None:
        assert read(msgspec.json.encode(found)) == found


TARGET = Target("peer_messages", run)
