"""Sessions that came of a provider are looked at again while they last: what it takes back ends here too."""

import asyncio
import time
from urllib.parse import parse_qs

import pytest
from tests.oauth.authority import Person, answer_in
from tests.oidc.provider_house import ProviderProcess

from agent_gate.access.jwt.once import UsedOnce
from agent_gate.access.jwt.reading import BadToken
from agent_gate.access.keys import Keys
from agent_gate.access.oidc.people import VouchedPeople
from agent_gate.access.oidc.provider import OidcProvider
from agent_gate.access.oidc.sessions import LOOK_AGAIN, ProviderSessions
from agent_gate.config.oidc import GroupRole, OidcSettings
from agent_gate.store import StoreSettings, open_store
from agent_gate.store.leases import Leases
from agent_gate.vault.oauth.reach import Web
from agent_gate.vault.vault import Vault

BACK = "http://127.0.0.1:9/oidc/callback"


class Watch:
    later = 0.0

    def now(self):
        return time.time() + self.later

    def monotonic(self):
        return time.monotonic() + self.later


class Room:
    """The parts that keep such sessions, over a real store, vault and provider."""

    def __init__(self, folder, process, base="http://127.0.0.1:9"):
        self.process, self.clock, self.people = process, Watch(), {}
        self.store = open_store(StoreSettings(path=folder / "gate.db"))
        self.keys = Keys(self.store, self.clock)
        self.vault = Vault(self.store, self.clock, folder, "home", {})
        self.web = Web(self.clock)
        client = process.register(BACK, base=base)
        roles = {"sre": GroupRole(role="operator"), "staff": GroupRole(role="viewer")}
        names = {"client_id": client["client_id"], "client_secret": client["client_secret"]}
        self.settings = OidcSettings(issuer=process.issuer, roles=roles, **names)
        self.provider = OidcProvider(self.web, self.clock, self.settings)
        self.vouched = VouchedPeople(
            self.keys, lambda: self.settings, lambda: self.people, lambda _name: False
        )
        self.sessions, self.sessions_elsewhere = self.make_sessions(), self.make_sessions()

    def make_sessions(self):
        """Those of one gateway on the store."""
        leases = Leases(self.store, self.clock)
        return ProviderSessions(
            self.keys, self.vault, leases, self.clock, self.vouched, lambda: self.provider
        )

    async def __aenter__(self):
        await self.vault.open()
        return self

    async def __aexit__(self, *_):
        await self.web.aclose()
        await self.store.close()

    async def log_in(self, name, **said):
        self.process.tell_of(name, **said)
        url, flow = await self.provider.begin(BACK, 600)
        came = answer_in(Person(self.process.issuer, name).consent(url))
        vouched = await self.provider.finish(flow, came)
        person = await self.vouched.keep(vouched)
        await self.keys.make("session", name, {"person": person, **self.sessions.body(vouched)})
        await self.sessions.keep_tokens(name, vouched.tokens)

    async def look_again(self):
        self.clock.later += LOOK_AGAIN
        await self.sessions.look_again()

    def lives(self, session):
        return self.keys.named("session", session) is not None


async def test_a_session_goes_on_while_its_provider_vouches_for_it(tmp_path, provider):
    async with Room(tmp_path, provider) as room:
        await room.log_in("anna", groups="sre")
        for _ in range(3):
            await room.look_again()
        assert room.lives("anna")


async def test_of_two_gateways_one_looks_since_a_provider_takes_a_refresh_token_once(tmp_path, provider):
    async with Room(tmp_path, provider) as room:
        await room.log_in("doris", groups="sre")
        for _ in range(3):
            room.clock.later += LOOK_AGAIN
            before = await room.sessions.read_tokens("doris")
            await asyncio.gather(room.sessions.look_again(), room.sessions_elsewhere.look_again())
            assert (await room.sessions.read_tokens("doris")).refresh_token != before.refresh_token
        assert room.lives("doris")


async def test_somebody_whom_the_provider_does_not_know_any_more_is_out_at_the_next_look(tmp_path, provider):
    async with Room(tmp_path, provider) as room:
        await room.log_in("berta", groups="sre")
        provider.tell_of("berta", gone="yes")
        await room.look_again()
        assert not room.lives("berta")
        assert await room.sessions.read_tokens("berta") is None


async def test_a_change_of_groups_counts_at_the_next_look_and_who_has_no_role_left_is_out(tmp_path, provider):
    async with Room(tmp_path, provider) as room:
        await room.log_in("cleo", groups="sre")
        provider.tell_of("cleo", groups="staff")
        await room.look_again()
        assert room.vouched.rights("cleo@example.test").may() == ["view"]
        provider.tell_of("cleo", groups="others")
        await room.look_again()
        assert not room.lives("cleo")


async def test_while_the_provider_is_away_a_session_goes_on_until_its_own_end(tmp_path):
    with ProviderProcess() as process:
        room = Room(tmp_path, process)
        await room.vault.open()
        await room.log_in("dana", groups="sre")
    await room.look_again()
    assert room.lives("dana")
    await room.__aexit__()


async def test_while_the_provider_falters_nobody_loses_the_groups_that_it_tells_then(tmp_path, provider):
    async with Room(tmp_path, provider) as room:
        await room.log_in("fine", groups="sre")
        provider.tell_of("fine", faltering="yes")
        await room.look_again()
        assert room.lives("fine")
        provider.tell_of("fine", groups="others")
        await room.look_again()
        assert not room.lives("fine")


async def test_of_another_provider_no_session_is_left(tmp_path, provider):
    async with Room(tmp_path, provider) as room:
        await room.log_in("edda", groups="sre")
        room.provider = None
        await room.sessions.look_again()
        assert not room.lives("edda")


async def test_a_logout_token_counts_once_on_every_gateway_of_the_store(tmp_path, provider, api):
    async with Room(tmp_path, provider, base=api.url) as room:
        provider.tell_of("frida", groups="sre")
        url, flow = await room.provider.begin(BACK, 600)
        frida = Person(provider.issuer, "frida")
        vouched = await room.provider.finish(flow, answer_in(frida.consent(url)))
        await asyncio.to_thread(frida.log_out)
        sent = [one["body"].decode() for one in api.requests if one["path"] == "/oidc/logout"]
        token = parse_qs(sent[-1])["logout_token"][0]
        here, elsewhere = UsedOnce(room.store, room.clock), UsedOnce(room.store, room.clock)
        ended = await room.provider.read_logout(token, here)
        assert (ended.subject, ended.session) == (vouched.subject, vouched.session)
        for gateway in (here, elsewhere):
            with pytest.raises(BadToken, match="used before"):
                await room.provider.read_logout(token, gateway)
