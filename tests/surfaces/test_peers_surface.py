"""What a paired component may ask by headers as well as by its address, and how much of it is taken."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from tests.peers.handshakes import ShiftedClock
from tests.remote.components import Joined
from tests.rows import opened

from agent_gate.calls.events import EventFeed
from agent_gate.net.http import Request, Response, StreamResponse
from agent_gate.peers.authority import Authority, CertificateSubject, Leaf
from agent_gate.peers.authorization import NOTHING_SAID, PeerPolicy
from agent_gate.peers.leases import PeerLeases
from agent_gate.peers.pairing import Candidate
from agent_gate.peers.records import Peers
from agent_gate.peers.signing import IdentityKey
from agent_gate.store import StoreSettings
from agent_gate.surfaces.peers import surface
from agent_gate.surfaces.peers.surface import PeersSurface


class Door:
    """The gateway among its peers, as far as requests need it."""

    domain = "home"

    def __init__(self, peers: Peers) -> None:
        self.peers = peers


class Visiting:
    """Components on record that ask the surface what they could ask over mTLS."""

    def __init__(self, peers: Peers, feed: EventFeed, leases: PeerLeases, clock: ShiftedClock) -> None:
        self._peers, self._clock = peers, clock
        self._authority = Authority.new("home", clock.now())
        self._certificates: dict[str, bytes] = {}
        self.policy = NOTHING_SAID
        self._surface = PeersSurface(
            Door(peers),  # type: ignore[arg-type]
            feed,
            leases,
            clock,
            tenant="family",
            policy=lambda _name: self.policy,
            operator_api=None,  # type: ignore[arg-type]
        )

    async def pair(self, kind: Any, name: str) -> None:
        subject = CertificateSubject(kind, name)
        key = ec.generate_private_key(ec.SECP256R1()).public_key()
        leaf: Leaf = self._authority.issue(key, subject, self._clock.now())
        who = Candidate(subject, "wss://127.0.0.1:1/v1/pair", IdentityKey.new().public, name)
        await self._peers.note_issued(who, leaf)
        await self._peers.activate(who, leaf)
        self._certificates[name] = leaf.certificate.public_bytes(Encoding.DER)

    async def ask(self, name: str, method: str, target: str, body: bytes = b"", **headers: str) -> Any:
        fields = {key.replace("_", "-").encode(): value.encode() for key, value in headers.items()}
        certificate = self._certificates[name]
        return await self._surface.handle(
            Request(method, target.encode(), fields, body, certificate=certificate)
        )

    async def publish(self, **more: Any) -> Response:
        source = {"component_type": "listener", "component_id": "ear"}
        event = {**Joined.envelope("channel.message.received", source, {}), **more}
        found = await self.ask("ear", "POST", "/v1/events", msgspec.json.encode(event))
        assert isinstance(found, Response)
        return found

    async def hears(self, after: str = "", **headers: str) -> tuple[list[str], list[str]]:
        """The cursors and the texts that the subscriber is told."""
        answer = await self.ask("desk", "GET", f"/v1/events?once=1{after}", **headers)
        assert isinstance(answer, StreamResponse), answer
        lines = b"".join([chunk async for chunk in answer.chunks]).decode().splitlines()
        told = [msgspec.json.decode(line[6:]) for line in lines if line.startswith("data: ")]
        return [line[4:] for line in lines if line.startswith("id: ")], [one["event_id"] for one in told]


@asynccontextmanager
async def visiting(folder: Path) -> AsyncIterator[Visiting]:
    clock = ShiftedClock()
    async with opened(StoreSettings(path=folder / "gate.db")) as store:
        peers = Peers(store, clock)
        await peers.load()
        feed = EventFeed(store, clock, tenant="family", gateway_id="gw")
        found = Visiting(peers, feed, PeerLeases(store, clock, lambda _gateway: True), clock)
        await found.pair("listener", "ear")
        await found.pair("subscriber", "desk")
        yield found


async def test_a_stream_goes_on_after_the_event_that_a_header_names_and_begins_now_without_one(
    tmp_path: Path,
) -> None:
    async with visiting(tmp_path) as found:
        for name in ("one", "two", "three"):
            assert (await found.publish(event_id=name)).status == 202
        cursors, told = await found.hears("&after=0.0")
        assert told == ["one", "two", "three"]
        assert (await found.hears(last_event_id=cursors[1]))[1] == ["two", "three"]
        assert (await found.hears())[1] == []


async def test_a_lease_may_be_named_by_a_header(tmp_path: Path) -> None:
    async with visiting(tmp_path) as found:
        await found.publish(event_id="one")
        wish = msgspec.json.encode({"capabilities": ["events.subscribe:cron.*"]})
        lease = msgspec.json.decode((await found.ask("desk", "POST", "/v1/leases", wish)).body)
        assert set(lease) == {"lease_id", "capabilities", "expires_at", "disconnect_bound", "scope"}
        assert (await found.hears("&after=0.0"))[1] == ["one"]
        assert (await found.hears("&after=0.0", agent_gate_lease=lease["lease_id"]))[1] == []
        refused = await found.ask("desk", "GET", "/v1/events", agent_gate_lease="of-nobody")
        assert refused.status == 403


async def test_an_event_has_64_kib_at_most_and_a_minute_so_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surface, "EVENTS_A_MINUTE", 2)
    async with visiting(tmp_path) as found:
        monkeypatch.setattr(ShiftedClock, "monotonic", staticmethod(lambda: 30.0))
        assert (await found.publish(payload={"text": "x" * (64 << 10)})).status == 400
        assert [(await found.publish()).status for _ in range(3)] == [202, 202, 429]
        monkeypatch.setattr(ShiftedClock, "monotonic", staticmethod(lambda: 61.0))
        assert (await found.publish()).status == 202


async def test_what_the_policy_says_counts_for_the_next_request_and_the_next_event(tmp_path: Path) -> None:
    async with visiting(tmp_path) as found:
        await found.publish(event_id="one")
        answer = await found.ask("desk", "GET", "/v1/events?once=1&after=0.0")
        found.policy = PeerPolicy(deny=("events.subscribe:channel.*", "events.publish:channel.*"))
        assert not any([b"data: " in chunk async for chunk in answer.chunks])
        assert (await found.publish()).status == 403
