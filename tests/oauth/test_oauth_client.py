"""The client's half of OAuth against a real authorization server: discovery to revocation, and what it refuses."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from tests.oauth.authority import AuthorizationProcess, Person, answer_in, authorization_server

from agent_gate.core.ports import SystemClock
from agent_gate.vault.oauth.authorize import FlowProof, authorization_url, check_issuer, chosen_scope
from agent_gate.vault.oauth.challenge import BearerChallenge, parse_challenge
from agent_gate.vault.oauth.clients import ConfiguredClient, configured_client, register_client
from agent_gate.vault.oauth.device import DeviceCode, poll_device, start_device
from agent_gate.vault.oauth.discovery import (
    AuthorizationServer,
    covers,
    find_server,
    read_resource,
    read_server,
    resource_documents,
    server_documents,
)
from agent_gate.vault.oauth.reach import AuthorizationFault, Reach, Web, check_url
from agent_gate.vault.oauth.tokens import OAuthRefusal, OAuthTokens, TokenEndpoint

REDIRECT = "http://localhost:3100/auth/callback"
RESOURCE = "http://127.0.0.1:9/mcp"
GRANTS = ("authorization_code", "refresh_token")


@pytest.fixture(scope="module")
def authority() -> Iterator[AuthorizationProcess]:
    with authorization_server() as made:
        yield made


@asynccontextmanager
async def reaching(authority: AuthorizationProcess) -> AsyncIterator[tuple[Web, AuthorizationServer, Reach]]:
    web, reach = Web(SystemClock()), Reach.of(RESOURCE)
    try:
        server = await find_server(web, authority.issuer, reach)
        assert server is not None
        yield web, server, reach
    finally:
        await web.aclose()


async def sign_in(
    web: Web, server: AuthorizationServer, reach: Reach, authority: AuthorizationProcess
) -> tuple[TokenEndpoint, OAuthTokens]:
    client = await register_client(web, server, REDIRECT, GRANTS, reach)
    proof = FlowProof.new()
    scope = chosen_scope((), None, ("mcp:read",), server)
    url = authorization_url(server, client, proof, REDIRECT, scope, RESOURCE)
    came_back = answer_in(Person(authority.issuer).consent(url))
    assert came_back["state"] == proof.state
    check_issuer(server, came_back.get("iss"))
    endpoint = TokenEndpoint(web, server, client, reach, resource=RESOURCE)
    return endpoint, await endpoint.redeem(came_back["code"], proof.verifier, REDIRECT)


async def test_a_person_consents_and_tokens_refresh_rotate_and_end(authority: AuthorizationProcess) -> None:
    async with reaching(authority) as (web, server, reach):
        endpoint, tokens = await sign_in(web, server, reach, authority)
        assert tokens.refresh_token
        assert tokens.expires_at is not None
        fresh = await endpoint.refresh(tokens)
        assert fresh.access_token != tokens.access_token
        assert fresh.refresh_token != tokens.refresh_token
        await endpoint.revoke(fresh)
        with pytest.raises(OAuthRefusal) as refused:
            await endpoint.refresh(fresh)
        assert refused.value.error == "invalid_grant"
        assert fresh.access_token not in str(refused.value)


async def test_a_code_is_good_for_its_own_verifier_alone(authority: AuthorizationProcess) -> None:
    async with reaching(authority) as (web, server, reach):
        client = await register_client(web, server, REDIRECT, GRANTS, reach)
        proof = FlowProof.new()
        url = authorization_url(server, client, proof, REDIRECT, "mcp:read", RESOURCE)
        code = answer_in(Person(authority.issuer).consent(url))["code"]
        endpoint = TokenEndpoint(web, server, client, reach, resource=RESOURCE)
        with pytest.raises(OAuthRefusal):
            await endpoint.redeem(code, FlowProof.new().verifier, REDIRECT)


async def test_a_machine_gets_its_token_by_its_own_secret(authority: AuthorizationProcess) -> None:
    async with reaching(authority) as (web, server, reach):
        known = ConfiguredClient("machine", "a-secret-of-the-machine-client")
        client = configured_client(server, known)
        assert client is not None
        endpoint = TokenEndpoint(web, server, client, reach, resource=RESOURCE)
        tokens = await endpoint.exchange_credentials("mcp:read")
        assert tokens.access_token
        wrong = configured_client(server, ConfiguredClient("machine", "another-secret"))
        assert wrong is not None
        with pytest.raises(OAuthRefusal) as refused:
            await TokenEndpoint(web, server, wrong, reach).exchange_credentials(None)
        assert refused.value.error == "invalid_client"
        assert "another-secret" not in str(refused.value) + repr(wrong) + repr(known)


async def test_a_code_typed_on_another_device_signs_in(authority: AuthorizationProcess) -> None:
    async with reaching(authority) as (web, server, reach):
        client = configured_client(server, ConfiguredClient("device"))
        assert client is not None
        code = await start_device(web, server, client, "openid offline_access", reach)
        waited: list[float] = []

        async def sleep(seconds: float) -> None:
            waited.append(seconds)
            if len(waited) == 2:
                assert code.verification_uri_complete is not None
                Person(authority.issuer).enter_device_code(code.verification_uri_complete)

        endpoint = TokenEndpoint(web, server, client, reach)
        tokens = await poll_device(endpoint, code, SystemClock(), sleep)
        assert tokens.access_token
        assert waited == [5.0, 5.0]


class Answers(TokenEndpoint):
    """A token endpoint that says no in a given order."""

    def __init__(self, *errors: str) -> None:
        self.errors = list(errors)

    async def ask(self, form: object) -> OAuthTokens:
        raise OAuthRefusal("no", self.errors.pop(0))


async def test_polling_slows_down_when_told_and_stops_at_a_no() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    code = DeviceCode(device_code="d", user_code="AB", verification_uri="https://a.example/d")
    endpoint = Answers(
        "authorization_pending", "slow_down", "slow_down", "authorization_pending", "access_denied"
    )
    with pytest.raises(OAuthRefusal, match="no") as refused:
        await poll_device(endpoint, code, SystemClock(), sleep)
    assert refused.value.error == "access_denied"
    assert waited == [5.0, 5.0, 10.0, 15.0, 15.0]


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://a$(calc)@b.example/x",
        "https://user@b.example/",
        "--upload-pack=x",
        "http://b.example/token",
        "https://b.example/\nHost: c",
        "https://b.example/`id`",
        "https://b.example/#x",
        "https://" + "a" * 3000,
        "",
        None,
    ],
)
def test_t44_an_odd_address_is_refused_before_anybody_sees_it(url: str | None) -> None:
    with pytest.raises(AuthorizationFault):
        check_url(url, "consent page")


@pytest.mark.parametrize(
    "host", ["10.0.0.1", "169.254.169.254", "127.0.0.1", "localhost", "[::1]", "[::ffff:10.0.0.1]"]
)
async def test_t29_a_server_that_is_elsewhere_cannot_point_into_our_network(host: str) -> None:
    web = Web(SystemClock())
    try:
        with pytest.raises(AuthorizationFault):
            await web.get(f"https://{host}/x", Reach.of("https://mcp.example.com/mcp"), "token endpoint")
    finally:
        await web.aclose()


def test_t42_only_the_issuer_that_was_asked_may_answer() -> None:
    server = AuthorizationServer(issuer="https://as.example", says_issuer=True)
    check_issuer(server, "https://as.example")
    silent = AuthorizationServer(issuer="https://as.example")
    check_issuer(silent, None)
    for asked, said in ((server, None), (server, "https://as.example/"), (silent, "https://evil.example")):
        with pytest.raises(AuthorizationFault):
            check_issuer(asked, said)
    with pytest.raises(AuthorizationFault):
        read_server({"issuer": "https://as.example/"}, "https://as.example")


@pytest.mark.parametrize("methods", [None, (), ("plain",)])
def test_t43_without_s256_nobody_is_sent_anywhere(methods: tuple[str, ...] | None) -> None:
    server = AuthorizationServer(
        issuer="https://as.example", authorize_url="https://as.example/a", challenge_methods=methods
    )
    client = configured_client(server, ConfiguredClient("me"))
    assert client is not None
    with pytest.raises(AuthorizationFault, match="S256"):
        authorization_url(server, client, FlowProof.new(), REDIRECT, None, None)


def test_a_description_of_another_resource_is_refused() -> None:
    assert covers("https://a.example/mcp", "https://a.example/mcp/full")
    assert covers("https://a.example", "https://a.example/mcp")
    assert not covers("https://a.example/mc", "https://a.example/mcp")
    assert not covers("https://b.example/mcp", "https://a.example/mcp")
    with pytest.raises(AuthorizationFault):
        read_resource({"resource": "https://b.example/mcp"}, "https://a.example/mcp")


def test_documents_are_looked_for_in_their_order() -> None:
    said = BearerChallenge("https://a.example/meta")
    assert resource_documents("https://a.example/mcp", said) == ["https://a.example/meta"]
    assert resource_documents("https://a.example/mcp", None) == [
        "https://a.example/.well-known/oauth-protected-resource/mcp",
        "https://a.example/.well-known/oauth-protected-resource",
    ]
    assert server_documents("https://as.example/t1") == [
        "https://as.example/.well-known/oauth-authorization-server/t1",
        "https://as.example/.well-known/openid-configuration/t1",
        "https://as.example/t1/.well-known/openid-configuration",
    ]


def test_a_challenge_is_read_in_its_usual_forms() -> None:
    text = 'Basic realm="x", Bearer error="invalid_token", resource_metadata="https://a/m", scope="r w"'
    found = parse_challenge(text)
    assert found is not None
    assert (found.resource_metadata, found.scope, found.error) == ("https://a/m", "r w", "invalid_token")
    assert parse_challenge("bearer") == BearerChallenge(scheme="bearer")
    assert parse_challenge('Basic realm="Bearer x"') is None
