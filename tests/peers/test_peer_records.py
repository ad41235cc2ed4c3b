"""Peers on record: what was issued, what counts now, and what a revocation or a crash leaves behind."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from tests.peers.handshakes import TOOL, ShiftedClock
from tests.rows import opened

from agent_gate.core.ports import SystemClock
from agent_gate.errors import ConfigError, InvalidArgs, PairingFailed, PairingRequired
from agent_gate.peers.authority import Authority, CertificateSubject, Leaf, component_uri
from agent_gate.peers.identity import ensure_identity
from agent_gate.peers.pairing import Candidate
from agent_gate.peers.records import Peers
from agent_gate.peers.signing import IdentityKey
from agent_gate.store import Store, StoreSettings
from agent_gate.vault.vault import Vault

AUTHORITY = Authority.new("home", SystemClock.now())
URI = component_uri("home", TOOL.component_type, TOOL.component_id)


def candidate(subject: CertificateSubject = TOOL, key: IdentityKey | None = None) -> Candidate:
    identity = key or IdentityKey.new()
    return Candidate(subject, "wss://127.0.0.1:1/v1/pair", identity.public, "pairing-1")


def a_leaf(
    clock: ShiftedClock, subject: CertificateSubject = TOOL, key: ec.EllipticCurvePrivateKey | None = None
) -> Leaf:
    private = key or ec.generate_private_key(ec.SECP256R1())
    return AUTHORITY.issue(private.public_key(), subject, clock.now())


@asynccontextmanager
async def loaded(folder: Path) -> AsyncIterator[tuple[Store, Peers, ShiftedClock]]:
    async with opened(StoreSettings(path=folder / "data" / "gate.db")) as store:
        clock = ShiftedClock()
        peers = Peers(store, clock)
        await peers.load()
        yield store, peers, clock


async def test_only_the_current_certificate_of_an_active_peer_is_let_in(tmp_path: Path) -> None:
    async with loaded(tmp_path) as (store, peers, clock):
        leaf, who = a_leaf(clock), candidate()
        await peers.note_issued(who, leaf)
        with pytest.raises(PairingRequired):
            peers.authorize(leaf.fingerprint, URI, "home")
        await peers.activate(who, leaf)
        assert peers.authorize(leaf.fingerprint, URI, "home").name == "memory-east"
        with pytest.raises(PairingRequired):
            peers.authorize(leaf.fingerprint, component_uri("home", "tool_host", "other"), "home")
        newer = a_leaf(clock)
        await peers.renew("memory-east", newer)
        with pytest.raises(PairingRequired):
            peers.authorize(leaf.fingerprint, URI, "home")
        assert peers.authorize(newer.fingerprint, URI, "home").serial == newer.serial
        again = Peers(store, clock)
        await again.load()
        assert again.authorize(newer.fingerprint, URI, "home").name == "memory-east"


async def test_a_revoked_or_expired_certificate_is_refused_at_the_next_request(tmp_path: Path) -> None:
    async with loaded(tmp_path) as (_, peers, clock):
        leaf, who = a_leaf(clock), candidate()
        await peers.note_issued(who, leaf)
        await peers.activate(who, leaf)
        clock.by = 31 * 86400.0
        with pytest.raises(PairingRequired, match="expired"):
            peers.authorize(leaf.fingerprint, URI, "home")
        clock.by = 0.0
        await peers.revoke("memory-east")
        with pytest.raises(PairingRequired, match="revoked"):
            peers.authorize(leaf.fingerprint, URI, "home")
        with pytest.raises(InvalidArgs):
            await peers.revoke("memory-east")


@pytest.mark.parametrize(
    ("subject", "uses"),
    [
        (CertificateSubject("tool_host", "a"), ["serverAuth"]),
        (CertificateSubject("tool_host", "a", dials_gateway=True), ["serverAuth", "clientAuth"]),
        (CertificateSubject("subscriber", "a"), ["clientAuth"]),
        (CertificateSubject("listener", "a"), ["clientAuth"]),
        (CertificateSubject("operator", "a"), ["clientAuth"]),
    ],
)
def test_a_certificate_is_for_what_its_component_does_and_names_it_once(
    subject: CertificateSubject, uses: list[str]
) -> None:
    leaf = a_leaf(ShiftedClock(), subject)
    found = leaf.certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [use._name for use in found] == uses
    assert leaf.names() == [f"spiffe://home/{subject.component_type}/a"]


async def test_p19_a_key_that_was_certified_for_another_component_is_refused(tmp_path: Path) -> None:
    async with loaded(tmp_path) as (_, peers, clock):
        key = ec.generate_private_key(ec.SECP256R1())
        await peers.note_issued(candidate(), a_leaf(clock, key=key))
        other = CertificateSubject("tool_host", "other")
        with pytest.raises(PairingFailed, match="memory-east"):
            await peers.note_issued(candidate(other), a_leaf(clock, other, key))


async def test_nothing_is_issued_while_the_clock_is_behind_what_was_issued(tmp_path: Path) -> None:
    async with loaded(tmp_path) as (_, peers, clock):
        await peers.note_issued(candidate(), a_leaf(clock))
        clock.by = -301.0
        with pytest.raises(PairingFailed, match="clock"):
            await peers.note_issued(candidate(), a_leaf(clock))
        clock.by = -200.0
        await peers.note_issued(candidate(), a_leaf(clock))


async def test_a_name_in_use_is_not_taken_over_by_another_key(tmp_path: Path) -> None:
    async with loaded(tmp_path) as (_, peers, clock):
        leaf, who = a_leaf(clock), candidate()
        await peers.note_issued(who, leaf)
        await peers.activate(who, leaf)
        with pytest.raises(PairingFailed, match="Revoke it first"):
            await peers.note_issued(candidate(), a_leaf(clock))
        await peers.revoke("memory-east")
        stranger, fresh = candidate(), a_leaf(clock)
        await peers.note_issued(stranger, fresh)
        await peers.activate(stranger, fresh)
        assert peers.authorize(fresh.fingerprint, URI, "home").status == "active"


async def test_p21_what_a_crash_left_issued_is_revoked_and_never_confirmed(tmp_path: Path) -> None:
    async with loaded(tmp_path) as (store, peers, clock):
        leaf, who = a_leaf(clock), candidate()
        await peers.note_issued(who, leaf)
        clock.by = 601.0
        await peers.revoke_unconfirmed()
        assert await store.read("SELECT state FROM peer_certificates") == [("revoked",)]
        with pytest.raises(PairingFailed):
            await peers.activate(who, leaf)
        assert peers.known() == []


async def test_the_identity_stays_and_its_authority_is_nowhere_in_plain(tmp_path: Path) -> None:
    folder = tmp_path / "data"

    async def start() -> str:
        async with opened(StoreSettings(path=folder / "gate.db")) as store:
            vault = Vault(store, SystemClock(), folder, "home", {})
            await vault.open()
            identity = await ensure_identity(folder, vault, "home", SystemClock(), store)
            secret = identity.authority.key_pem.split(b"\n")[1]
        assert [path for path in folder.rglob("*") if path.is_file() and secret in path.read_bytes()] == []
        return identity.key.fingerprint + identity.authority.pem

    assert await start() == await start()


def give_away(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    os.chown(path, 65534, 65534)


@pytest.mark.parametrize("harm", ["file", "folder", "link", "owner"])
async def test_p28_keys_that_others_could_read_or_swap_refuse_the_start(tmp_path: Path, harm: str) -> None:
    folder = tmp_path / "data"

    async def start() -> None:
        async with opened(StoreSettings(path=folder / "gate.db")) as store:
            vault = Vault(store, SystemClock(), folder, "home", {})
            await vault.open()
            await ensure_identity(folder, vault, "home", SystemClock(), store)

    await start()
    key = folder / "peers" / "identity.key"
    if harm == "file":
        key.chmod(0o640)
    elif harm == "folder":
        key.parent.chmod(0o755)
    elif harm == "owner":
        give_away(key)
    else:
        key.rename(tmp_path / "moved")
        key.symlink_to(tmp_path / "moved")
    with pytest.raises(ConfigError, match="peers"):
        await start()
