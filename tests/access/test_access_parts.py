"""Who is let in, how much they may do, and what they see: the parts on their own."""

import hashlib

import pytest
from tests.tools import catalog

from agent_gate.access import tokens as kept
from agent_gate.access.door import Door
from agent_gate.access.keys import Keys
from agent_gate.access.login import LoginLink, Logins
from agent_gate.access.people import People
from agent_gate.access.quota import LOOKS, Quota
from agent_gate.access.tokens import Credential, Tokens, digest
from agent_gate.access.view import View
from agent_gate.app.agents import credentials
from agent_gate.config.settings import AgentSettings, Person
from agent_gate.core.call import Caller
from agent_gate.core.catalog import Listing, Shelf, build
from agent_gate.core.tool import Definition
from agent_gate.errors import RateLimited, Unauthorized
from agent_gate.net.http import Request
from agent_gate.policy import Policy
from agent_gate.policy.rule import make_rule
from agent_gate.store import StoreSettings, open_store

TOKEN, OTHER = "a-token-of-more-than-sixteen", "another-token-of-sixteen"
PI, CODER = Caller(name="pi"), Caller(name="coder")


class Clock:
    """Stands still until a test moves it."""

    time = 1000.0

    def now(self):
        return self.time

    def monotonic(self):
        return self.time


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def tokens():
    return Tokens([Credential(digest(TOKEN), PI), Credential(digest(OTHER), CODER)])


def bearer(token):
    return f"Bearer {token}".encode()


@pytest.mark.parametrize(
    "header",
    [
        None,
        b"",
        b"Bearer",
        b"Bearer ",
        TOKEN.encode(),
        f"Basic {TOKEN}".encode(),
        f"Bearer{TOKEN}".encode(),
        bearer(TOKEN.upper()),
        bearer(TOKEN[:-1]),
        bearer(f"{TOKEN} {TOKEN}"),
        bearer(digest(TOKEN).hex()),
        b"Bearer \xff\xfe",
    ],
)
def test_nothing_but_an_agents_token_lets_in(tokens, header):
    for _ in range(2):
        with pytest.raises(Unauthorized):
            tokens.from_header(header)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_a_token_says_who_calls_however_its_scheme_is_written(tokens, scheme):
    assert tokens.from_header(f"{scheme} {TOKEN}".encode()) == PI
    assert tokens.from_header(f"{scheme} {OTHER}".encode()) == CODER


def test_a_token_that_was_replaced_lets_nobody_in_though_its_header_is_known(tokens):
    assert tokens.from_header(bearer(TOKEN)) == PI
    renewed = Caller(name="pi", namespaces=frozenset({"home"}))
    tokens.replace([Credential(digest(OTHER), renewed)])
    with pytest.raises(Unauthorized):
        tokens.from_header(bearer(TOKEN))
    assert tokens.from_header(bearer(OTHER)) == renewed


def test_an_agent_is_found_by_its_name(tokens):
    assert [tokens.caller(name) for name in ("coder", "pi", "nobody")] == [CODER, PI, None]


def test_a_proof_counts_for_the_agent_it_was_made_for_while_the_token_does(tokens):
    proof = digest(TOKEN)
    assert tokens.still(proof, "pi") == PI
    assert tokens.still(proof, "coder") is None
    assert tokens.still(b"", "pi") is None
    tokens.replace([Credential(digest(OTHER), PI)])
    assert tokens.still(proof, "pi") is None


def test_no_more_headers_are_remembered_than_there_is_room_for(tokens, monkeypatch):
    monkeypatch.setattr(kept, "MOST_REMEMBERED", 2)
    for scheme in ("Bearer", "bearer", "BEARER", "BeareR"):
        assert tokens.from_header(f"{scheme} {TOKEN}".encode()) == PI
    assert len(tokens.remembered) == 2


def request(header=None, peer="10.0.0.1"):
    return Request("GET", b"/", {} if header is None else {b"authorization": header}, peer=peer)


def test_guessing_gets_slow_for_that_address_and_a_right_token_is_never_kept_out(tokens, clock):
    door = Door(tokens, clock)
    for _ in range(door.backoff.limit):
        with pytest.raises(Unauthorized):
            door.enter(request(bearer("guess")))
    with pytest.raises(RateLimited) as refused:
        door.enter(request(bearer("guess")))
    assert refused.value.retry_after == door.backoff.window
    assert door.enter(request(bearer(TOKEN))) == PI
    with pytest.raises(Unauthorized):
        door.enter(request(bearer("guess"), peer="10.0.0.2"))
    clock.time += door.backoff.window
    with pytest.raises(Unauthorized):
        door.enter(request(bearer("guess")))


def test_a_token_that_another_gateway_may_have_given_is_looked_for_unless_whoever_shows_it_guesses(
    tokens, clock
):
    async def catch_up():
        """Never awaited here."""

    door, given, foreign = Door(tokens, clock, catch_up), bearer("ag_given-elsewhere"), bearer("guess")
    assert door.needs(request(given)) is catch_up
    assert [door.needs(one) for one in (request(), request(bearer(TOKEN)), request(foreign))] == [None] * 3
    for _ in range(door.backoff.limit):
        with pytest.raises(Unauthorized):
            door.enter(request(given))
    assert door.needs(request(given)) is None
    assert door.needs(request(given, peer="10.0.0.2")) is catch_up
    assert Door(tokens, clock).needs(request(given)) is None


def test_who_brings_no_token_did_not_guess(tokens, clock):
    door = Door(tokens, clock)
    for _ in range(door.backoff.limit * 2):
        with pytest.raises(Unauthorized):
            door.enter(request())


def test_what_the_door_keeps_of_a_token_proves_it_later(tokens, clock):
    door = Door(tokens, clock)
    assert tokens.still(door.proof(request(bearer(TOKEN))), "pi") == PI
    assert tokens.still(door.proof(request()), "pi") is None


def test_a_caller_may_do_so_much_in_any_minute(clock):
    quota, caller = Quota(clock), Caller(name="pi", calls_per_minute=3)
    for _ in range(3):
        quota.take(caller)
        clock.time += 10
    for _ in range(5):
        with pytest.raises(RateLimited, match="3 calls a minute") as refused:
            quota.take(caller)
    assert refused.value.retry_after == 30
    quota.take(Caller(name="coder", calls_per_minute=3))
    clock.time += 30
    quota.take(caller)
    with pytest.raises(RateLimited):
        quota.take(caller)


def test_ten_looks_go_with_one_call_and_no_limit_is_none(clock):
    looks = Quota(clock, "looks", LOOKS)
    for _ in range(10):
        looks.take(Caller(name="pi", calls_per_minute=1))
    with pytest.raises(RateLimited, match="10 looks a minute"):
        looks.take(Caller(name="pi", calls_per_minute=1))
    for _ in range(500):
        looks.take(Caller(name="free", calls_per_minute=0))


def test_an_agent_is_known_by_the_digest_of_its_token(tmp_path, clock):
    agent = AgentSettings(name="ci", token_hash=hashlib.sha256(TOKEN.encode()).hexdigest())
    found = Tokens(credentials([agent], AgentSettings, tmp_path, Keys(None, clock)))
    assert found.authenticate(TOKEN).name == "ci"
    with pytest.raises(Unauthorized):
        found.authenticate(agent.token_hash)


def shelf_of(*names):
    shelf = Shelf()
    shelf.swap(catalog(*(Definition(name=name) for name in names), key="vault"))
    return shelf


def seen(view, caller):
    return [tool.wire for tool in view.tools(caller)]


def test_a_caller_sees_its_namespaces_less_what_is_denied_altogether():
    shelf = Shelf()
    definitions = [Definition(name="read"), Definition(name="wipe")]
    shelf.swap(build([Listing(key=key, namespace=key, definitions=definitions) for key in ("disk", "tape")]))
    view = View(shelf, lambda: Policy([make_rule(pattern="*__wipe*", action="deny")]))
    bound = Caller(name="pi", namespaces=frozenset({"disk"}))
    assert seen(view, bound) == ["disk__read"]
    assert seen(view, CODER) == ["disk__read", "tape__read"]
    names = ("disk__read", "disk__wipe", "tape__read", "nothing")
    assert [view.find(bound, name) is not None for name in names] == [True, False, False, False]


def test_what_was_seen_is_kept_until_the_rules_or_the_tools_change():
    shelf = shelf_of("read", "wipe")
    rules = [Policy()]
    view = View(shelf, lambda: rules[-1])
    first = view.tools(PI)
    assert view.tools(PI) is first
    rules.append(Policy([make_rule(pattern="*__wipe*", action="deny")]))
    assert seen(view, PI) == ["vault__read"]
    rules.append(Policy())
    assert seen(view, PI) == ["vault__read", "vault__wipe"]
    shelf.swap(
        build([Listing(key="vault", namespace="vault", definitions=[Definition(name="read")])], shelf.catalog)
    )
    assert seen(view, PI) == ["vault__read"]
    view.keep([CODER])
    assert not view._seen


async def test_a_link_works_for_15_minutes_and_its_session_for_a_week(clock, tmp_path):
    store = open_store(StoreSettings(path=tmp_path / "gate.db"))
    try:
        logins = Logins(Keys(store, clock), clock, lambda _name: True, "page")
        late, timely = await logins.offer(LoginLink("anna")), await logins.offer(LoginLink("anna"))
        clock.time += 15 * 60 - 1
        opened = await logins.redeem(Request("POST", b"/", {}), timely)
        clock.time += 1
        with pytest.raises(Unauthorized, match="used or is too old"):
            await logins.redeem(Request("POST", b"/", {}), late)
        visit = Request("GET", b"/", {b"cookie": f"page={opened.cookie}".encode()})
        clock.time += 7 * 24 * 3600 - 2
        assert logins.session(visit).person == "anna"
        clock.time += 1
        assert logins.session(visit) is None
    finally:
        await store.close()


async def test_a_link_of_another_gateway_is_followed_with_what_that_one_knows_of_its_person(clock, tmp_path):
    store = open_store(StoreSettings(path=tmp_path / "gate.db"))
    try:
        there, here = Keys(store, clock), Keys(store, clock)
        await there.make("person", "carla", {})
        link = await Logins(there, clock, lambda _name: True, "page").offer(LoginLink("carla"))
        logins = Logins(
            here, clock, lambda name: here.named("person", name) is not None, "page", catch_up=here.load
        )
        opened = await logins.redeem(Request("POST", b"/", {}), link)
        visit = Request("GET", b"/", {b"cookie": f"page={opened.cookie}".encode()})
        assert logins.session(visit).person == "carla"
    finally:
        await store.close()


def test_somebody_answers_for_as_long_as_the_file_or_a_channel_has_them():
    listed, on_channels = {"anna": Person(name="anna")}, {"tg-7"}
    people = People(lambda: listed, lambda: on_channels, lambda: None)
    assert [people.answers(name) for name in ("anna", "tg-7", "operator", "eve")] == [True, True, True, False]
    listed.clear()
    on_channels.clear()
    assert [people.answers(name) for name in ("anna", "tg-7", "operator")] == [False, False, True]
