"""A stranger's token: read in one way or refused, and never believed unless the issuer's key signed exactly it."""

import base64
import json

from joserfc.jwk import ECKey
from tests.fuzz.fuzzing import Target

from agent_gate.access.jwt.claims import Expected, check_claims, text_at, texts_at
from agent_gate.access.jwt.keys import fitting, read_keys
from agent_gate.access.jwt.reading import BadToken, read_token
from agent_gate.vault.oauth.reach import AuthorizationFault

KEY = ECKey.import_key(
    {
        "kty": "EC",
        "crv": "P-256",
        "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
        "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
    }
)
KEYS = read_keys({"keys": [{**KEY.as_dict(private=False), "kid": "first"}]})
EXPECTED = Expected(issuer="https://issuer.example", audience="gate")
WORDS = (
    b"eyJ",
    b".",
    b'"alg":"none"',
    b'"alg":"ES256"',
    b'"kid":"first"',
    b'"exp":1e999',
    b'"crit":[]',
    b"==",
)


def run(data: bytes) -> None:
    """Its first byte says whether it is a token as it comes, one whose parts are plain text, or published keys."""
    kind, rest = (data[0] % 3, data[1:]) if data else (0, b"")
    if kind == 2:
        read_published(rest)
        return
    text = rest.decode("latin-1") if kind == 0 else ".".join(encoded(part) for part in rest.split(b"."))
    try:
        token = read_token(text)
    except BadToken:
        return
    assert not any(key.verifies(token) for key in fitting(KEYS, token)), "nobody here can sign with this key"
    try:
        check_claims(token.claims, EXPECTED, 1_000_000.0)
    except BadToken:
        pass
    text_at(token.claims, "a.b"), texts_at(token.claims, "groups")


def read_published(data: bytes) -> None:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return
    try:
        found = read_keys(document)
    except AuthorizationFault:
        return
    assert all(key.algorithms and not {"none", "HS256"} & set(key.algorithms) for key in found)


def encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).decode().rstrip("=")


TARGET = Target("signed_tokens", run, WORDS)
