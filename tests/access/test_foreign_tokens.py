"""Tokens of other issuers: which of them say who calls, and which attacks on them fail."""

import asyncio
import base64
import hmac
import json
import time

import pytest
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
from tests.issuer import AUDIENCE, EC, OTHER, RSA, TokenIssuer, part, signed

from agent_gate.access.issuers import Issuers, TrustedIssuer
from agent_gate.access.jwt.claims import Expected
from agent_gate.access.jwt.keys import AGAIN, FRESH, KeysPending
from agent_gate.access.jwt.reading import BadToken
from agent_gate.access.tokens import digest
from agent_gate.core.call import Caller
from agent_gate.errors import DependencyUnavailable
from agent_gate.vault.oauth.reach import Web


class Watch:
    """A clock that a test moves on."""

    def __init__(self):
        self.later = 0.0

    def now(self):
        return time.time() + self.later

    def monotonic(self):
        return time.monotonic() + self.later


@pytest.fixture(scope="module")
def served():
    with TokenIssuer() as issuer:
        yield issuer


@pytest.fixture
def issuer(served):
    served.reset()
    served.publish(first=EC)
    return served


def entry(issuer, **more):
    expected = Expected(issuer=issuer.url, audience=AUDIENCE)
    said = {"prefix": "ci", "expected": expected, "jwks_url": issuer.jwks_url, "groups": "groups"}
    return TrustedIssuer(**said | {"likeness": Caller(name="ci", namespaces=frozenset({"house"}))} | more)


class Door:
    """Issuers over real HTTP, asked as the gateway asks them."""

    def __init__(self, *entries, taken=lambda _name: False):
        self.clock = Watch()
        self.web = Web(self.clock)
        self.issuers = Issuers(self.web, self.clock, taken)
        self.issuers.replace(entries)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.web.aclose()

    async def enter(self, token):
        keys = self.issuers.wants_keys(f"Bearer {token}".encode(), digest)
        if keys is not None:
            await keys.fetch()
        return self.issuers.authenticate(token, digest(token))

    async def expect_refusal(self, token):
        with pytest.raises(BadToken) as refused:
            await self.enter(token)
        assert token not in refused.value.message
        return refused.value.message


async def test_a_token_of_a_trusted_issuer_says_who_calls_and_what_they_may_be(issuer):
    async with Door(entry(issuer, person="email")) as door:
        caller = await door.enter(issuer.token(groups=["sre", "dev"], email="anna@example.com"))
    assert (caller.name, caller.person, caller.groups) == ("ci/deploy", "anna@example.com", {"sre", "dev"})
    assert caller.namespaces == {"house"}


async def test_the_identity_of_a_workload_comes_in_as_spiffe_writes_it(issuer):
    """A JWT-SVID has `sub` and `aud`, and its trust domain's keys; `iss` is not among what it must say."""
    mesh = Expected(issuer="spiffe://example.org", audience=AUDIENCE)
    async with Door(entry(issuer, prefix="mesh", expected=mesh)) as door:
        identity = {"iss": None, "sub": "spiffe://example.org/ns/prod/sa/ci", "aud": [AUDIENCE, "other"]}
        assert (await door.enter(issuer.token(**identity))).name == "mesh/spiffe://example.org/ns/prod/sa/ci"
        for other in ("spiffe://example.org.evil/ns/a", "spiffe://example.org", "spiffe://other.example/a"):
            await door.expect_refusal(issuer.token(**identity | {"sub": other}))


async def test_claims_are_found_inside_others_too(issuer):
    async with Door(entry(issuer, caller="kubernetes.io.pod.name", groups="realm.roles")) as door:
        nested = {
            "kubernetes.io": {},
            "kubernetes": {"io": {"pod": {"name": "web-1"}}},
            "realm": {"roles": "dev"},
        }
        caller = await door.enter(issuer.token(**nested))
    assert (caller.name, caller.groups) == ("ci/web-1", {"dev"})


SIGNERS = {
    "P-256": EC,
    "P-384": ECKey.generate_key("P-384"),
    "RSA": RSA,
    "Ed25519": OKPKey.generate_key("Ed25519"),
}


@pytest.mark.parametrize("kind", list(SIGNERS))
async def test_each_kind_of_key_counts_with_its_own_algorithm(issuer, kind):
    issuer.publish(first=SIGNERS[kind])
    algorithm = {"P-384": "ES384"}.get(kind)
    async with Door(entry(issuer)) as door:
        assert (
            await door.enter(issuer.token(header={"alg": algorithm} if algorithm else {}))
        ).name == "ci/deploy"


NOW = int(time.time())
WRONG = {
    "another audience": ({"aud": "https://other.example"}, "another audience"),
    "no audience": ({"aud": None}, "another audience"),
    "audience as a part": ({"aud": AUDIENCE + "/more"}, "another audience"),
    "another issuer": ({"iss": "https://evil.example"}, "does not trust"),
    "expired": ({"exp": NOW - 120}, "has expired"),
    "never ends": ({"exp": None}, "does not say when it ends"),
    "an end that is no time": ({"exp": "tomorrow"}, "exp is no time"),
    "an end that is true": ({"exp": True}, "exp is no time"),
    "an end beyond all time": ({"exp": 1e300}, "exp is no time"),
    "not yet": ({"nbf": NOW + 3600}, "not valid yet"),
    "made in the future": ({"iat": NOW + 3600}, "not valid yet"),
    "nobody": ({"sub": None}, "claim sub"),
    "a list of names": ({"sub": ["a", "b"]}, "claim sub"),
    "a name with a line break": ({"sub": "a\nb"}, "claim sub"),
    "a name that is a pattern": ({"sub": "*"}, "claim sub"),
}


@pytest.mark.parametrize("case", list(WRONG))
async def test_a_token_that_says_something_else_is_refused(issuer, case):
    claims, why = WRONG[case]
    async with Door(entry(issuer)) as door:
        assert why in await door.expect_refusal(issuer.token(**claims))


async def test_clocks_may_differ_a_little_and_no_more(issuer):
    now = int(time.time())
    async with Door(entry(issuer)) as door:
        assert await door.enter(issuer.token(exp=now - 20, nbf=now + 20))
        assert "has expired" in await door.expect_refusal(issuer.token(exp=now - 90))


def forged_by_confusion(issuer):
    """The public key used as the secret of an HMAC, in the forms in which it is published."""
    text = f"{part({'alg': 'HS256', 'kid': 'first'})}.{part(issuer.claims())}"
    for secret in (EC.as_pem(private=False), json.dumps(EC.as_dict(private=False)).encode()):
        yield f"{text}.{part(hmac.digest(secret, text.encode(), 'sha256'))}"


def attacks(issuer):
    good = issuer.token()
    head, body, signature = good.split(".")
    yield f"{part({'alg': 'none', 'kid': 'first'})}.{body}."
    yield f"{part({'alg': 'none', 'kid': 'first'})}.{body}.{part(b'xx')}"
    yield f"{part({'alg': 'None', 'kid': 'first'})}.{body}.{signature}"
    yield from forged_by_confusion(issuer)
    yield issuer.token(key=OTHER)
    yield issuer.token(key=RSA)
    yield issuer.token(key=OTHER, header={"jwk": OTHER.as_dict(private=False)})
    yield issuer.token(
        key=OTHER, kid="evil", header={"jku": f"{issuer.url}/evil", "x5u": f"{issuer.url}/evil"}
    )
    yield issuer.token(key=OTHER, header={"x5c": ["AAAA"]})
    yield issuer.token(header={"crit": ["exp"]})
    yield issuer.token(header={"b64": False, "crit": ["b64"]})
    yield f"{head}.{part(issuer.claims(sub='root'))}.{signature}"
    yield f"{head}.{body}.{part(bytes(64))}"
    yield f"{head}.{body}.{signature[:-2]}"
    yield f"{head}.{body}.{signature}="
    yield f"{head}.{body}"
    yield good + ".x"
    twice = f'{{"iss":"{issuer.url}","sub":"a","sub":"root","aud":"{AUDIENCE}","exp":9999999999}}'
    text = f"{head}.{part(twice.encode())}"
    yield f"{text}.{part(base64.urlsafe_b64decode(signature + '=='))}"
    yield signed({"alg": "ES256", "kid": "first", "typ": "logout+jwt"}, issuer.claims(), EC)
    yield signed({"alg": "ES256", "kid": "first", "typ": "oauth-id-jag+jwt"}, issuer.claims(), EC)


KIDS = [
    "../../../../dev/null",
    "' OR 1=1 --",
    "first\x00",
    "https://evil.example/keys",
    "x" * 5000,
    ["first"],
    1,
]


async def test_no_known_attack_on_a_signed_token_lets_anybody_in(issuer):
    async with Door(entry(issuer)) as door:
        for token in attacks(issuer):
            await door.expect_refusal(token)
        for kid in KIDS:
            await door.expect_refusal(issuer.token(key=OTHER, header={"kid": kid}))
        assert await door.enter(issuer.token())
    assert {request["path"] for request in issuer.requests} == {"/keys"}


async def test_a_published_secret_weak_key_or_key_for_another_use_signs_nothing(issuer):
    secret = OctKey.generate_key(256)
    with pytest.warns(SecurityWarning):
        weak = RSAKey.generate_key(1024)
    for key, more in ((secret, {}), (weak, {}), (EC, {"use": "enc"}), (EC, {"alg": "ES512"})):
        issuer.publish_as_it_is({"keys": [{**key.as_dict(private=key is secret), "kid": "first", **more}]})
        async with Door(entry(issuer)) as door:
            assert "sign" in await door.expect_refusal(issuer.token(key=key))


async def test_a_key_that_is_not_understood_does_not_spoil_the_others(issuer):
    good = {**EC.as_dict(private=False), "kid": "first"}
    issuer.publish_as_it_is(
        {"keys": [None, {"kty": "XX"}, {"kty": "EC", "crv": "P-256", "x": "!", "y": 1}, good]}
    )
    async with Door(entry(issuer)) as door:
        assert await door.enter(issuer.token())


async def test_a_new_key_is_fetched_once_and_strangers_cannot_have_it_fetched_again(issuer):
    async with Door(entry(issuer)) as door:
        await door.enter(issuer.token())
        issuer.publish(first=EC, second=RSA)
        door.clock.later += AGAIN
        assert await door.enter(issuer.token("second"))
        assert issuer.fetches == 2
        for number in range(50):
            await door.expect_refusal(issuer.token(key=OTHER, header={"kid": f"made-up-{number}"}))
        assert issuer.fetches == 2


async def test_many_first_tokens_at_once_fetch_the_keys_once(issuer):
    async with Door(entry(issuer)) as door:
        await asyncio.gather(*(door.enter(issuer.token(sub=f"job-{number}")) for number in range(20)))
    assert issuer.fetches == 1


async def test_what_a_withdrawn_key_signed_stops_counting(issuer):
    token = issuer.token()
    async with Door(entry(issuer)) as door:
        await door.enter(token)
        issuer.publish(second=RSA)
        assert await door.enter(token)
        door.clock.later += FRESH
        await door.issuers.refresh()
        await door.expect_refusal(token)


async def test_keys_that_cannot_be_fetched_let_nobody_in_and_say_so(issuer):
    issuer.publish_as_it_is({}, status=500)
    async with Door(entry(issuer)) as door:
        with pytest.raises(DependencyUnavailable, match="could not be fetched"):
            await door.enter(issuer.token())


async def test_keys_that_were_known_count_on_while_their_issuer_is_away(issuer):
    async with Door(entry(issuer)) as door:
        await door.enter(issuer.token())
        issuer.publish_as_it_is({}, status=503)
        door.clock.later += FRESH
        await door.issuers.refresh()
        issuer.keys = {"first": EC}
        assert await door.enter(issuer.token(sub="another", exp=int(time.time()) + 3600))


async def test_where_nothing_is_known_yet_the_caller_may_come_again(issuer):
    async with Door(entry(issuer)) as door:
        with pytest.raises(KeysPending):
            door.issuers.authenticate(issuer.token(), b"")


async def test_a_token_that_was_checked_is_not_checked_again_until_it_ends(issuer):
    token = issuer.token()
    async with Door(entry(issuer)) as door:
        first = await door.enter(token)
        assert door.issuers.recall(digest(token)) is first
        door.clock.later += 400
        assert door.issuers.recall(digest(token)) is None
        await door.expect_refusal(token)
        assert door.issuers.forget_ended() == {"ci/deploy"}
        assert door.issuers.callers() == []


async def test_an_entry_that_goes_takes_its_agents_with_it_and_others_keep_theirs(issuer):
    kept, gone = (
        entry(issuer),
        entry(issuer, prefix="old", expected=Expected(issuer=issuer.url, audience="old")),
    )
    async with Door(kept, gone) as door:
        here, leaving = issuer.token(), issuer.token(aud="old")
        await door.enter(here)
        assert (await door.enter(leaving)).name == "old/deploy"
        door.issuers.replace([entry(issuer, likeness=Caller(name="ci", namespaces=frozenset()))])
        assert door.issuers.recall(digest(leaving)) is None
        assert door.issuers.recall(digest(here)).namespaces == frozenset()
        assert "another audience" in await door.expect_refusal(leaving)


async def test_no_token_takes_the_name_of_another_agent(issuer):
    async with Door(entry(issuer), taken={"ci/deploy"}.__contains__) as door:
        assert "another agent" in await door.expect_refusal(issuer.token())


async def test_of_two_issuers_each_signs_for_itself_alone(issuer):
    """What one of them signs in the other's name is refused."""
    with TokenIssuer() as second:
        second.publish(first=OTHER)
        async with Door(entry(issuer), entry(second, prefix="second")) as door:
            assert (await door.enter(second.token())).name == "second/deploy"
            assert (await door.enter(issuer.token())).name == "ci/deploy"
            await door.expect_refusal(second.token(iss=issuer.url))
            await door.expect_refusal(issuer.token(iss=second.url))


async def test_an_issuer_says_itself_where_its_keys_are(issuer):
    document = {"issuer": issuer.url, "jwks_uri": issuer.jwks_url}
    issuer.replies["/.well-known/openid-configuration"] = (200, {}, json.dumps(document).encode())
    issuer.replies["/.well-known/oauth-authorization-server"] = (404, {}, b"{}")
    async with Door(entry(issuer, jwks_url="")) as door:
        assert await door.enter(issuer.token())
