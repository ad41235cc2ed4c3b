"""Both sides of a handshake in one process, with somebody in the middle who may change what passes."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agent_gate.core.ports import SystemClock
from agent_gate.errors import PairingFailed
from agent_gate.peers.authority import Authority, CertificateSubject, Leaf
from agent_gate.peers.joining import Component, Joining, Membership
from agent_gate.peers.pairing import Candidate, Pairing, Wish
from agent_gate.peers.signing import IdentityKey

OWN_CERTIFICATE = "sha256:" + "ab" * 32
TOOL = CertificateSubject("tool_host", "memory-east")
Meddle = Callable[[dict[str, Any]], list[dict[str, Any] | str]]


def passed(message: dict[str, Any]) -> list[dict[str, Any] | str]:
    return [message]


class MemoryLine:
    """One end of a line: what is sent passes `meddle` and arrives at the other end."""

    def __init__(self, certificate: str | None, meddle: Meddle) -> None:
        self.certificate_fingerprint = certificate
        self.arrived: asyncio.Queue[str] = asyncio.Queue()
        self.other: MemoryLine | None = None
        self.sent: list[dict[str, Any]] = []
        self._meddle = meddle

    async def send(self, text: str) -> None:
        assert self.other is not None
        message = json.loads(text)
        self.sent.append(message)
        for passing in self._meddle(message):
            self.other.arrived.put_nowait(passing if isinstance(passing, str) else json.dumps(passing))

    async def receive(self) -> str:
        return await self.arrived.get()


def a_line(
    to_remote: Meddle = passed, to_gateway: Meddle = passed, certificate: str | None = OWN_CERTIFICATE
) -> tuple[MemoryLine, MemoryLine]:
    near, far = MemoryLine(certificate, to_remote), MemoryLine(None, to_gateway)
    near.other, far.other = far, near
    return near, far


class Ledger:
    def __init__(self) -> None:
        self.issued: list[Leaf] = []
        self.active: list[Leaf] = []
        self.revoked: list[Leaf] = []

    async def note_issued(self, peer: Candidate, leaf: Leaf) -> None:
        self.issued.append(leaf)

    async def activate(self, peer: Candidate, leaf: Leaf) -> None:
        self.active.append(leaf)

    async def revoke_issued(self, leaf: Leaf) -> None:
        self.revoked.append(leaf)


class Seen:
    def __init__(self) -> None:
        self.pairs: set[tuple[str, str]] = set()

    def is_new(self, pairing_id: str, nonce: str, now: float) -> bool:
        new = (pairing_id, nonce) not in self.pairs
        self.pairs.add((pairing_id, nonce))
        return new

    def lately(self, _now: float) -> int:
        return len(self.pairs)


class ShiftedClock(SystemClock):
    def __init__(self, by: float = 0.0) -> None:
        self.by = by

    def now(self) -> float:  # type: ignore[override]
        return SystemClock.now() + self.by


@dataclass
class World:
    """A gateway and a component that have not met."""

    gateway: IdentityKey = field(default_factory=IdentityKey.new)
    remote: IdentityKey = field(default_factory=IdentityKey.new)
    ledger: Ledger = field(default_factory=Ledger)
    seen: Seen = field(default_factory=Seen)
    installed: list[Membership] = field(default_factory=list)
    authority: Authority = field(default_factory=lambda: Authority.new("home", SystemClock.now()))
    component: CertificateSubject = TOOL
    clock: ShiftedClock = field(default_factory=ShiftedClock)
    remote_clock: ShiftedClock = field(default_factory=ShiftedClock)
    believed: bytes | None = None
    confirmed: list[str] = field(default_factory=list)

    async def confirm(self, fingerprint: str) -> bool:
        self.confirmed.append(fingerprint)
        return False

    async def install(self, membership: Membership) -> None:
        self.installed.append(membership)

    def pairing(self, line: MemoryLine) -> Pairing:
        return Pairing(line, self.gateway, "home", self.authority, self.ledger, self.clock, self.confirm)

    def joining(self, line: MemoryLine) -> Joining:
        component = Component(
            self.component.component_type,
            self.component.component_id,
            self.remote,
            self.believed or self.gateway.public,
        )
        return Joining(line, component, OWN_CERTIFICATE, self.seen, self.remote_clock, self.install)

    async def meet(
        self,
        near: MemoryLine,
        far: MemoryLine,
        wish: Wish | None = None,
    ) -> tuple[Candidate | PairingFailed, Membership | PairingFailed]:
        """Both sides to their end; the one left waiting when the other stopped sees the line close."""
        wish = wish or Wish(TOOL, "wss://127.0.0.1:1/v1/pair", self.remote.fingerprint)
        ours = asyncio.ensure_future(self.pairing(near).run(wish))
        theirs = asyncio.ensure_future(self.joining(far).run())
        pair = {ours, theirs}
        _, waiting = await asyncio.wait(pair, return_when=asyncio.FIRST_EXCEPTION)
        if waiting:
            await asyncio.wait(waiting, timeout=0.05)
        for task in pair:
            task.cancel()
        ended = await asyncio.gather(ours, theirs, return_exceptions=True)
        cut = PairingFailed("cut")
        return tuple(cut if isinstance(end, asyncio.CancelledError) else end for end in ended)  # type: ignore[return-value]
