"""The handshake holds against whoever stands in the middle, answers late, replays, splices or lies."""

from collections.abc import Callable
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.peers.handshakes import TOOL, World, a_line

from agent_gate.errors import PairingFailed
from agent_gate.peers import joining
from agent_gate.peers.authority import CertificateSubject, check_request
from agent_gate.peers.encoding import Malformed, to_base64
from agent_gate.peers.joining import Membership
from agent_gate.peers.pairing import Candidate, Wish
from agent_gate.peers.signing import IdentityKey, Transcript

Message = dict[str, Any]


def assert_refused(world: World, ended: tuple[Any, Any], code: str | None = None) -> None:
    assert isinstance(ended[0], PairingFailed), ended
    if code is not None:
        assert ended[0].details is not None
        assert ended[0].details["code"] == code, ended[0].message
    assert world.ledger.active == []
    assert world.ledger.issued == world.ledger.revoked


def only(kind: str, change: Callable[[Message], Message]) -> Callable[[Message], list[Message | str]]:
    return lambda message: [change(message) if message["type"] == kind else message]


async def test_both_sides_end_paired_with_one_certificate() -> None:
    world = World()
    near, far = a_line()
    ours, theirs = await world.meet(near, far)
    assert isinstance(ours, Candidate)
    assert isinstance(theirs, Membership)
    assert [leaf.fingerprint for leaf in world.ledger.active] == [theirs.fingerprint]
    assert world.ledger.revoked == []
    assert [message["type"] for message in near.sent] == [
        "pair.init",
        "pair.challenge",
        "pair.csr_issued",
        "pair.complete",
    ]
    assert [message["type"] for message in far.sent] == [
        "pair.identity",
        "pair.challenge_response",
        "pair.csr_request",
        "pair.csr_installed",
    ]


@pytest.mark.parametrize("by", [121.0, -121.0, 5 * 365 * 86400.0])
async def test_p1_an_initiation_from_another_time_gets_an_error_and_nothing_else(by: float) -> None:
    world = World()
    world.remote_clock.by = by
    near, far = a_line()
    assert_refused(world, await world.meet(near, far), "CLOCK_SKEW")
    assert [message["type"] for message in far.sent] == ["pair.error"]


async def test_p2_an_initiation_that_was_seen_is_refused() -> None:
    world = World()
    near, far = a_line()
    await world.meet(near, far)
    first = near.sent[0]
    near, far = a_line(to_remote=only("pair.init", lambda _message: first))
    assert_refused(World(gateway=world.gateway, seen=world.seen), await world.meet(near, far))
    assert far.sent[0]["code"] == "REPLAYED"


async def test_p3_p4_only_the_configured_gateway_is_believed() -> None:
    other = IdentityKey.new()
    world = World(believed=other.public)
    assert_refused(world, await world.meet(*a_line()), "SIGNATURE_INVALID")

    def pretend(message: Message) -> Message:
        gateway = {**message["gateway"], "public_key_ed25519": other.public_text}
        return {**message, "gateway": gateway}

    world = World(believed=other.public)
    assert_refused(
        world, await world.meet(*a_line(to_remote=only("pair.init", pretend))), "SIGNATURE_INVALID"
    )


async def test_p5_another_certificate_on_the_line_is_somebody_in_the_middle() -> None:
    world = World()
    near, far = a_line(certificate="sha256:" + "cd" * 32)
    assert_refused(world, await world.meet(near, far), "IDENTITY_MISMATCH")
    assert [message["type"] for message in near.sent] == ["pair.init"]


async def test_p6_without_a_pin_and_without_a_person_nothing_is_paired() -> None:
    world = World()
    near, far = a_line()
    assert_refused(world, await world.meet(near, far, Wish(TOOL, "wss://127.0.0.1:1")), "NOT_CONFIRMED")
    assert world.confirmed == [world.remote.fingerprint]


async def test_p7_a_wrong_pin_ends_it_before_the_challenge() -> None:
    world = World()
    near, far = a_line()
    wish = Wish(TOOL, "wss://127.0.0.1:1", IdentityKey.new().fingerprint)
    assert_refused(world, await world.meet(near, far, wish), "IDENTITY_MISMATCH")
    assert [message["type"] for message in near.sent] == ["pair.init"]


@pytest.mark.parametrize(
    "component",
    [CertificateSubject("tool_host", "memory-east-2"), CertificateSubject("operator", "memory-east")],
)
async def test_p10_p11_another_name_or_kind_is_refused(component: CertificateSubject) -> None:
    world = World(component=component)
    assert_refused(world, await world.meet(*a_line()), "IDENTITY_MISMATCH")


async def test_p12_the_right_answer_signed_for_another_handshake_is_refused() -> None:
    world = World()

    def sign_anew(message: Message) -> Message:
        elsewhere = Transcript()
        elsewhere.add({**message, "pairing_id": "another-handshake"})
        return elsewhere.sign({k: v for k, v in message.items() if k != "sig_ed25519"}, world.remote)

    near, far = a_line(to_gateway=only("pair.challenge_response", sign_anew))
    assert_refused(world, await world.meet(near, far), "SIGNATURE_INVALID")
    assert world.ledger.issued == []


async def test_a_component_takes_five_handshakes_a_minute() -> None:
    world = World()
    for number in range(5):
        assert world.seen.is_new(f"earlier-{number}", "nonce", 0.0)
    _ours, theirs = await world.meet(*a_line())
    assert isinstance(theirs, PairingFailed)
    assert "a minute" in theirs.message


async def test_p13_parts_of_two_handshakes_do_not_fit_together() -> None:
    world = World()
    near, far = a_line()
    await world.meet(near, far)
    earlier = {message["type"]: message for message in far.sent}
    for kind in earlier:

        def splice(message: Message, kind: str = kind) -> Message:
            return {**earlier[kind], "pairing_id": message["pairing_id"]}

        fresh = World(gateway=world.gateway, remote=world.remote)
        assert_refused(fresh, await fresh.meet(*a_line(to_gateway=only(kind, splice))), "SIGNATURE_INVALID")


@pytest.mark.parametrize("extra", [{"note": "x"}, {"version": "v2"}, {"pairing_id": "../../x"}])
async def test_p14_unknown_fields_and_forms_are_refused(extra: Message) -> None:
    world = World()
    near, far = a_line(to_gateway=lambda message: [{**message, **extra}])
    assert_refused(world, await world.meet(near, far))


async def test_p14_a_repeated_field_is_refused() -> None:
    world = World()

    def repeat(message: Message) -> list[Message | str]:
        return ['{"type": "pair.identity", "type": "pair.identity", "version": "v1"}']

    assert_refused(world, await world.meet(*a_line(to_gateway=repeat)), "PROTOCOL")


@pytest.mark.parametrize("kind", ["pair.identity", "pair.challenge_response", "pair.csr_request"])
@pytest.mark.parametrize("harm", ["twice", "never", "early"])
async def test_p15_out_of_order_doubled_and_missing_messages_end_it(
    kind: str, harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_gate.peers.pairing.STEP_SECONDS", 0.05)
    world = World()
    held: list[Message | str] = []

    def meddle(message: Message) -> list[Message | str]:
        if message["type"] != kind:
            return [message]
        if harm == "early":
            return [{"type": "pair.csr_installed", "version": "v1", "pairing_id": message["pairing_id"]}]
        return [message, message] if harm == "twice" else held

    assert_refused(world, await world.meet(*a_line(to_gateway=meddle)))


async def test_p20_a_forged_end_ends_nothing_well() -> None:
    world = World()

    def forge(message: Message) -> list[Message | str]:
        if message["type"] != "pair.challenge":
            return [message]
        return [
            {"type": "pair.complete", "version": "v1", "pairing_id": message["pairing_id"], "status": "ok"}
        ]

    near, far = a_line(to_remote=forge)
    _ours, theirs = await world.meet(near, far)
    assert isinstance(theirs, PairingFailed)
    assert world.installed == []
    assert world.ledger.active == []


async def test_a_certificate_that_is_not_confirmed_is_revoked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_gate.peers.pairing.INSTALL_SECONDS", 0.05)
    world = World()
    near, far = a_line(to_gateway=lambda m: [] if m["type"] == "pair.csr_installed" else [m])
    assert_refused(world, await world.meet(near, far), "TIMEOUT")
    assert len(world.ledger.revoked) == 1


async def test_a_lost_last_message_leaves_the_component_paired(monkeypatch: pytest.MonkeyPatch) -> None:
    def lose_patience(message: Message) -> list[Message | str]:
        """With the last message only, however slow the machine is with those before."""
        if message["type"] == "pair.csr_installed":
            monkeypatch.setattr(joining, "STEP_SECONDS", 0.05)
        return [message]

    world = World()
    near, far = a_line(lambda m: [] if m["type"] == "pair.complete" else [m], lose_patience)
    ours, _theirs = await world.meet(near, far)
    assert isinstance(ours, Candidate)
    assert len(world.ledger.active) == len(world.installed) == 1


@settings(max_examples=150, deadline=None)
@given(data=st.data())
async def test_whoever_changes_anything_on_the_way_pairs_nobody(data: st.DataObject) -> None:
    """Any one field of any one message changed, in either direction."""
    kinds = ["pair.init", "pair.identity", "pair.challenge", "pair.challenge_response", "pair.csr_request"]
    kind = data.draw(st.sampled_from([*kinds, "pair.csr_issued", "pair.csr_installed"]))
    changed: list[bool] = []

    def change(message: Message) -> Message:
        part = message
        for inner in ("gateway", "remote"):
            if inner in message and data.draw(st.booleans()):
                message = {**message, inner: dict(message[inner])}
                part = message[inner]
                break
        else:
            message = part = dict(message)
        name = data.draw(st.sampled_from(sorted(key for key in part if isinstance(part[key], str))))
        other = data.draw(st.one_of(st.text(max_size=80), st.just(to_base64(bytes(32))), st.none()))
        changed.append(part[name] != other)
        part[name] = other
        return message

    world = World()
    meddle = only(kind, change)
    ended = await world.meet(*a_line(meddle, meddle))
    if changed and changed[0]:
        assert not (isinstance(ended[0], Candidate) and isinstance(ended[1], Membership)), ended
        if kind != "pair.csr_issued":
            assert world.ledger.active == []


HARMS = st.lists(
    st.sampled_from(["pass"] * 12 + ["drop", "double", "hold", "replay"]), min_size=8, max_size=8
)


@settings(max_examples=60, deadline=None)
@given(there=HARMS, back=HARMS)
async def test_messages_that_come_twice_late_or_not_at_all_pair_nobody_wrongly(
    there: list[str], back: list[str]
) -> None:
    """Both directions at once: each message passes, is dropped, doubled, held back behind the next, or replaced by an
    earlier one. Whoever ends paired has the one certificate that the other side handed out."""

    def meddling(harms: list[str]) -> Callable[[Message], list[Message | str]]:
        left, held, earlier = list(harms), list[Message | str](), list[Message | str]()

        def meddle(message: Message) -> list[Message | str]:
            harm = left.pop(0) if left else "pass"
            out: list[Message | str] = {
                "pass": [message, *held],
                "drop": [*held],
                "double": [message, message, *held],
                "hold": [],
                "replay": [*earlier[-1:], *held],
            }[harm]
            held[:] = [message] if harm == "hold" else []
            earlier.append(message)
            return out

        return meddle

    world = World()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("STEP_SECONDS", "INSTALL_SECONDS"):
            patch.setattr(f"agent_gate.peers.pairing.{name}", 0.02)
            patch.setattr(f"agent_gate.peers.joining.{name}", 0.02)
        ours, _theirs = await world.meet(*a_line(meddling(there), meddling(back)))
    assert len(world.installed) <= 1
    assert len(world.ledger.active) <= len(world.ledger.issued) <= 1
    if isinstance(ours, Candidate):
        assert [one.fingerprint for one in world.installed] == [
            one.fingerprint for one in world.ledger.active
        ]


def csr(key: Any, *, name: str = "memory-east", extensions: list[x509.ExtensionType] | None = None) -> str:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    for extension in extensions or []:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


P256 = ec.generate_private_key(ec.SECP256R1())
ELSEWHERE = x509.SubjectAlternativeName([x509.UniformResourceIdentifier("spiffe://home/tool_host/other")])
BAD_REQUESTS = {
    "p16 the name of another": csr(P256, extensions=[ELSEWHERE]),
    "p16 another common name": csr(P256, name="other"),
    "p17 an authority": csr(P256, extensions=[x509.BasicConstraints(ca=True, path_length=None)]),
    "p17 rsa": csr(rsa.generate_private_key(65537, 2048)),
    "p17 another curve": csr(ec.generate_private_key(ec.SECP521R1())),
    "p17 garbage": "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n",
    "p17 two of them": csr(P256) * 2,
    "p17 far too long": csr(P256) + " " * (1 << 20),
    "p18 altered": csr(P256).replace("\nMI", "\nNI", 1),
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_p16_to_p18_a_request_gives_nothing_but_its_key(name: str) -> None:
    with pytest.raises(Malformed):
        check_request(BAD_REQUESTS[name], TOOL, "home", bytes(32))


def test_dns_and_address_names_in_a_request_are_left_out_of_the_certificate() -> None:
    world = World()
    names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    key = check_request(csr(P256, extensions=[names]), TOOL, "home", bytes(32))
    leaf = world.authority.issue(key, TOOL, world.clock.now()).certificate
    found = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [name.value for name in found] == ["spiffe://home/tool_host/memory-east"]
