"""What it costs to see who calls: `python -m bench.foreign_tokens`.

Microseconds of CPU per request for a token from a file, for a token of another issuer that was checked before, and for
one that comes for the first time.
"""

import base64
import json
import time
from collections.abc import Callable

from joserfc.jwk import ECKey, RSAKey
from joserfc.jws import JWSRegistry

from agent_gate.access.issuers import Issuers, TrustedIssuer, place_of
from agent_gate.access.jwt.claims import Expected
from agent_gate.access.jwt.keys import read_keys
from agent_gate.access.tokens import Credential, Tokens, digest, new_token
from agent_gate.core.call import Caller
from agent_gate.core.ports import SystemClock
from agent_gate.vault.oauth.reach import Web

ISSUER, ROUNDS, FIRST = "https://issuer.example", 200_000, 2_000
KEYS = {"ES256": ECKey.generate_key("P-256"), "RS256": RSAKey.generate_key(2048)}
GROUPS = [f"group-{number}" for number in range(20)]


def part(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def token(algorithm: str, name: str) -> bytes:
    """A header as a CI system sends it: some 900 bytes."""
    claims = {"iss": ISSUER, "aud": "gate", "sub": name, "exp": time.time() + 3600, "groups": GROUPS}
    text = f"{part(json.dumps({'alg': algorithm, 'kid': algorithm}).encode())}.{part(json.dumps(claims).encode())}"
    signature = JWSRegistry.algorithms[algorithm].sign(text.encode(), KEYS[algorithm])
    return f"Bearer {text}.{part(signature)}".encode()


def made() -> tuple[Tokens, bytes]:
    clock = SystemClock()
    issuers = Issuers(Web(clock), clock)
    expected = Expected(issuer=ISSUER, audience="gate")
    entry = TrustedIssuer(
        prefix="ci", expected=expected, jwks_url=ISSUER, groups="groups", likeness=Caller(name="ci")
    )
    issuers.replace([entry])
    keys = issuers.keys_at(place_of(entry))
    listed = [{**key.as_dict(private=False), "kid": name} for name, key in KEYS.items()]
    keys.take(read_keys({"keys": listed}))
    own = new_token()
    return Tokens([Credential(digest(own), Caller(name="coder"))], issuers), f"Bearer {own}".encode()


def who(tokens: Tokens, header: bytes) -> Caller:
    """As a request is judged: whether keys have to be fetched first, then who calls."""
    if tokens.issuers is not None:
        tokens.issuers.wants_keys(header, digest)
    return tokens.from_header(header)


def cost(work: Callable[[], object], rounds: int) -> float:
    best = float("inf")
    for _ in range(5):
        began = time.process_time()
        for _ in range(rounds // 5):
            work()
        best = min(best, (time.process_time() - began) / (rounds // 5))
    return best * 1e6


def measure(tokens: Tokens, algorithm: str) -> None:
    known = token(algorithm, "deploy")
    who(tokens, known)
    again = cost(lambda: who(tokens, known), ROUNDS)
    print(f"{algorithm}, checked before ({len(known)} bytes)    {again:8.2f} µs")
    new = iter([token(algorithm, f"job-{number}") for number in range(FIRST)])
    print(
        f"{algorithm}, for the first time             {cost(lambda: who(tokens, next(new)), FIRST):8.2f} µs"
    )


def main() -> None:
    tokens, own = made()
    print(f"a token from a file                    {cost(lambda: who(tokens, own), ROUNDS):8.2f} µs")
    for algorithm in KEYS:
        measure(tokens, algorithm)


if __name__ == "__main__":
    main()
