"""Pairing's bytes are exactly the published ones: canonical form, transcript, signatures, challenge, refused keys."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from agent_gate.peers.challenge import challenge_context, open_challenge, seal_challenge
from agent_gate.peers.encoding import Malformed, canonical, from_base64, to_base64
from agent_gate.peers.messages import PairError, read_pair_message
from agent_gate.peers.signing import IdentityKey, Transcript, check_public_key

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "pairing.json").read_text())
KEYS = {name: bytes.fromhex(value) for name, value in VECTORS["keys"].items()}
GATEWAY, REMOTE = IdentityKey(KEYS["gateway_ed25519_seed"]), IdentityKey(KEYS["remote_ed25519_seed"])


def signer(message: dict) -> IdentityKey:
    return GATEWAY if message["type"] in ("pair.init", "pair.csr_issued") else REMOTE


def test_every_step_is_written_hashed_and_signed_as_published() -> None:
    transcript = Transcript()
    for step in VECTORS["steps"]:
        message = step["message"]
        assert transcript.digest().hex() == step["transcript_before"]
        assert canonical(message).decode() == step["jcs"]
        if "sig_ed25519" in message:
            assert sha256(transcript.signed_bytes(message)).hexdigest() == step["sign_input_sha256"]
            key = signer(message)
            assert transcript.sign(message, key) == message
            assert transcript.verifies(message, key.public)
            assert not transcript.verifies(message, IdentityKey.new().public)
        transcript.add(message)


def test_the_published_challenge_opens_and_belongs_to_its_handshake() -> None:
    message, published = VECTORS["steps"][2]["message"], VECTORS["hpke"]
    before = bytes.fromhex(VECTORS["steps"][2]["transcript_before"])
    context = challenge_context(message["pairing_id"], message["challenge_id"], before)
    assert context.decode() == published["aad_utf8"]
    assert from_base64(message["aad"]) == context
    private = X25519PrivateKey.from_private_bytes(KEYS["remote_x25519_priv"])
    sealed = from_base64(message["ciphertext"])
    assert open_challenge(sealed, private, context).hex() == published["plaintext_hex"]
    with pytest.raises(Malformed):
        open_challenge(sealed, private, context + b" ")
    again = seal_challenge(bytes(32), KEYS["remote_x25519_pub"], context)
    assert open_challenge(again, private, context) == bytes(32)


@pytest.mark.parametrize("key", VECTORS["ed25519_public_keys_that_MUST_be_rejected"])
def test_p8_a_key_under_which_anybody_can_sign_is_refused(key: str) -> None:
    with pytest.raises(Malformed):
        check_public_key(to_base64(bytes.fromhex(key)))


def test_p9_an_x25519_key_of_zeros_is_refused() -> None:
    with pytest.raises(Malformed):
        seal_challenge(bytes(32), bytes(32), b"{}")


def test_only_canonical_base64_is_read() -> None:
    assert from_base64("QUI=") == b"AB"
    for text in ("QUI", "QUJ=", "Q U I =", "QUI=\n", "QUI==", "_w=="):
        with pytest.raises(Malformed):
            from_base64(text)


@pytest.mark.parametrize("letter", [" ", "ü"])
def test_a_message_of_more_than_64_kib_is_not_read(letter: str) -> None:
    with pytest.raises(Malformed, match="more than 65536 bytes"):
        read_pair_message("{" + letter * ((64 << 10) // len(letter.encode())), PairError)
