"""Accounts: connected by a link, renewed once however many ask, ended for good, and nowhere in plain on disk."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.request import urlopen

import pytest
from msgspec.structs import replace as changed
from tests import postgres
from tests.oauth.authority import AuthorizationProcess, Person, answer_in, authorization_server
from tests.rows import opened

from agent_gate.core.credentials import SignInNeeded
from agent_gate.core.ports import SystemClock
from agent_gate.errors import InvalidArgs
from agent_gate.store import Store, StoreSettings
from agent_gate.store.leases import Leases
from agent_gate.vault.accounts import Accounts, Connected
from agent_gate.vault.flows import Flows, SignInSettings
from agent_gate.vault.oauth.clients import ConfiguredClient
from agent_gate.vault.oauth.reach import Web
from agent_gate.vault.oauth.tokens import OAuthRefusal, OAuthTokens
from agent_gate.vault.vault import Vault

REDIRECT = "http://localhost:3100/auth/callback"
SECRET = {"AGENT_GATE_SECRET": "a passphrase for the tests of accounts"}
OWNER = "source:notes"


@dataclass
class House:
    """One gateway's share of a store."""

    store: Store
    vault: Vault
    connections: Accounts
    flows: Flows


@asynccontextmanager
async def a_house(settings: StoreSettings, folder: Path) -> AsyncIterator[House]:
    clock = SystemClock()
    async with opened(settings) as store:
        vault = Vault(store, clock, folder, "home", SECRET)
        await vault.open()
        web = Web(clock)
        connections = Accounts(vault, Leases(store, clock), web, clock)
        await connections.load()
        try:
            yield House(store, vault, connections, Flows(vault, web, clock, lambda: REDIRECT))
        finally:
            await web.aclose()


@pytest.fixture(scope="module")
def authority() -> Iterator[AuthorizationProcess]:
    with authorization_server() as made:
        yield made


def settings_for(authority: AuthorizationProcess) -> SignInSettings:
    """A server that describes nothing, on the origin of its authorization server."""
    return SignInSettings(
        source="notes",
        title="Notes",
        url=f"{authority.issuer}/mcp",
        scopes=("openid", "email", "offline_access"),
    )


async def signed_in(house: House, authority: AuthorizationProcess) -> Connected:
    started = await house.flows.start(settings_for(authority), OWNER, "operator")
    came = answer_in(await asyncio.to_thread(Person(authority.issuer).consent, started.url))
    finished = await house.flows.finish(came["state"], came["code"], came.get("iss"))
    assert (finished.owner, finished.connected.by, finished.confirm) == (OWNER, "operator", False)
    await house.connections.keep(OWNER, finished.connected)
    return finished.connected


def at(tmp_path: Path) -> StoreSettings:
    return StoreSettings(path=tmp_path / "data" / "gate.db")


async def test_an_account_is_connected_by_a_link_and_there_after_a_restart(
    tmp_path: Path, authority: AuthorizationProcess
) -> None:
    async with a_house(at(tmp_path), tmp_path / "data") as house:
        connected = await signed_in(house, authority)
        assert connected.account == "alice"
    async with a_house(at(tmp_path), tmp_path / "data") as house:
        again = await house.connections.renew_if_due(OWNER)
        assert again.tokens == connected.tokens
        secrets = [connected.tokens.access_token, connected.tokens.refresh_token or ""]
    found = [
        path.name
        for path in (tmp_path / "data").rglob("*")
        if path.is_file() and any(secret.encode() in path.read_bytes() for secret in secrets)
    ]
    assert found == []
    assert not any(secret in repr(connected) + repr(connected.tokens) for secret in secrets)


async def test_t41_a_state_is_good_once_and_for_its_own_flow(
    tmp_path: Path, authority: AuthorizationProcess
) -> None:
    async with a_house(at(tmp_path), tmp_path / "data") as house:
        before = authority.count("/token")
        for state in ("", "unknown", "x" * 43):
            with pytest.raises(InvalidArgs, match="Begin anew"):
                await house.flows.finish(state, "code", None)
        first = await house.flows.start(settings_for(authority), OWNER, "operator")
        second = await house.flows.start(settings_for(authority), OWNER, "operator")
        codes = [
            answer_in(await asyncio.to_thread(Person(authority.issuer).consent, flow.url))
            for flow in (first, second)
        ]
        assert authority.count("/token") == before
        for state, came in ((first.state, codes[1]), (second.state, codes[0])):
            with pytest.raises(Exception, match="invalid_grant"):
                await house.flows.finish(state, came["code"], came.get("iss"))
        with pytest.raises(InvalidArgs, match="Begin anew"):
            await house.flows.finish(first.state, codes[0]["code"], codes[0].get("iss"))


async def test_t45_a_pasted_code_is_taken_from_whoever_began_it_alone(
    tmp_path: Path, authority: AuthorizationProcess
) -> None:
    async with a_house(at(tmp_path), tmp_path / "data") as house:
        started = await house.flows.start(settings_for(authority), OWNER, "alice")
        ended_at = await asyncio.to_thread(Person(authority.issuer).consent, started.url)
        with pytest.raises(InvalidArgs, match="somebody else"):
            await house.flows.finish_pasted(started.state, ended_at, "mallory")
        started = await house.flows.start(settings_for(authority), OWNER, "alice")
        ended_at = await asyncio.to_thread(Person(authority.issuer).consent, started.url)
        finished = await house.flows.finish_pasted(started.state, f" {ended_at}\n", "alice")
        assert finished.connected.tokens.access_token


async def test_t46_two_hundred_calls_on_two_gateways_renew_once(
    tmp_path: Path, authority: AuthorizationProcess
) -> None:
    here = StoreSettings(type="postgres", url=postgres.server().clean_database(), chain="a")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    async with (
        a_house(here, tmp_path / "a") as one,
        a_house(replace(here, chain="b"), tmp_path / "b") as two,
    ):
        connected = await signed_in(one, authority)
        stale = changed(connected, tokens=changed(connected.tokens, expires_at=1.0))
        await one.connections.keep(OWNER, stale)
        await two.connections.load()
        before = authority.count("/token")
        asked = [house.connections.renew_if_due(OWNER) for _ in range(100) for house in (one, two)]
        found = await asyncio.gather(*asked)
        assert authority.count("/token") == before + 1
        assert len({each.tokens.access_token for each in found}) == 1
        kept = await two.connections.renew_if_due(OWNER)
        assert kept.tokens == found[0].tokens
        assert kept.tokens.refresh_token != connected.tokens.refresh_token


async def test_t49_an_account_that_was_taken_back_is_told_once_and_not_tried_again(
    tmp_path: Path, authority: AuthorizationProcess
) -> None:
    async with a_house(at(tmp_path), tmp_path / "data") as house:
        connected = await signed_in(house, authority)
        told: list[str] = []
        house.connections.subscribe(lambda owner, _why: told.append(owner))
        gone = changed(connected.tokens, refresh_token="never-issued", expires_at=1.0)
        await house.connections.keep(OWNER, changed(connected, tokens=gone))
        before = authority.count("/token")
        for _ in range(3):
            with pytest.raises(SignInNeeded):
                await house.connections.renew_if_due(OWNER)
        assert told == [OWNER]
        assert authority.count("/token") == before + 1


async def test_ending_an_account_revokes_it_at_the_server(
    tmp_path: Path, authority: AuthorizationProcess
) -> None:
    async with a_house(at(tmp_path), tmp_path / "data") as house:
        connected = await signed_in(house, authority)
        before = authority.count("/token/revocation")
        await house.connections.end(OWNER)
        authority.has_served("/token/revocation", before + 1)
        with pytest.raises(SignInNeeded):
            await house.connections.renew_if_due(OWNER)
        await house.connections.keep(OWNER, changed(connected, since=0.0))
        stale = changed(connected.tokens, expires_at=1.0)
        await house.connections.keep(OWNER, changed(connected, tokens=stale))
        with pytest.raises(SignInNeeded):
            await house.connections.renew_if_due(OWNER)


async def test_a_machine_signs_in_by_itself_and_again_when_its_token_ends(
    tmp_path: Path, authority: AuthorizationProcess
) -> None:
    async with a_house(at(tmp_path), tmp_path / "data") as house:
        machine = replace(
            settings_for(authority),
            scopes=(),
            client=ConfiguredClient("machine", "a-secret-of-the-machine-client"),
        )
        finished = await house.flows.connect_machine(machine, OWNER, "operator")
        ended = changed(finished.connected.tokens, expires_at=1.0)
        await house.connections.keep(OWNER, changed(finished.connected, tokens=ended))
        fresh = await house.connections.renew_if_due(OWNER)
        assert fresh.tokens.access_token != finished.connected.tokens.access_token


def test_a_token_is_renewed_early_but_a_short_one_not_at_every_call() -> None:
    def due(lifetime: float, at: float) -> bool:
        tokens = OAuthTokens(access_token="t", expires_at=lifetime)
        return Connected(kind="oauth", tokens=tokens, since=0.0).is_due(at)

    assert not due(3600, 3299)
    assert due(3600, 3300)
    assert not due(60, 47)
    assert due(60, 48)
    assert not Connected(kind="key", tokens=OAuthTokens(access_token="t")).is_due(1e12)


async def test_an_identity_of_another_issuer_is_exchanged_for_a_token_of_the_server(
    tmp_path: Path, authority: AuthorizationProcess
) -> None:
    async with a_house(at(tmp_path), tmp_path / "data") as house:
        identity = (await signed_in(house, authority)).tokens.access_token
        settings = replace(
            settings_for(authority),
            client=ConfiguredClient("exchanger", "a-secret-of-the-exchanging-client"),
        )
        finished = await house.flows.exchange(settings, OWNER, identity, "gateway")
        got = finished.connected
        assert (got.kind, got.can_renew, got.tokens.access_token != identity) == ("exchange", False, True)
        about = f"{authority.issuer}/test/token?token={got.tokens.access_token}"
        assert json.load(await asyncio.to_thread(urlopen, about))["sub"] == "alice"
        with pytest.raises(OAuthRefusal, match="invalid_grant"):
            await house.flows.exchange(settings, OWNER, "a-token-of-nobody", "gateway")
