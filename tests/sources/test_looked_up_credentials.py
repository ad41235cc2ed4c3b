"""Where a source's credentials come from: references that are looked up, keys and accounts that are connected."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.gateway import Api
from tests.rows import opened
from tests.toolboxes import toolbox

from agent_gate.config.load import load
from agent_gate.config.servers.settings import ServerSettings
from agent_gate.config.services.settings import AuthConfig
from agent_gate.core.credentials import Credentials, SignInNeeded
from agent_gate.core.ports import SystemClock
from agent_gate.errors import DependencyUnavailable, GatewayError
from agent_gate.net.pool import Pool
from agent_gate.sources.accounts.credentials import Roster, owner_of
from agent_gate.sources.mcp import McpSource
from agent_gate.sources.mcp.sessions.dial import identity
from agent_gate.store import StoreSettings
from agent_gate.vault.accounts import Connected
from agent_gate.vault.custody import Custody
from agent_gate.vault.flows import SignInSettings
from agent_gate.vault.oauth.clients import ConfiguredClient
from agent_gate.vault.oauth.tokens import OAuthTokens
from agent_gate.vault.vault import Vault


@asynccontextmanager
async def custody(
    folder: Path, env: dict[str, str], clock: SystemClock | None = None
) -> AsyncIterator[Custody]:
    clock = clock or SystemClock()
    async with opened(StoreSettings(path=folder / "store.db")) as store:
        vault = Vault(store, clock, folder, "home", env)
        await vault.open_or_say_why()
        made = Custody.of(
            vault,
            store,
            clock,
            files=folder,
            env=lambda: env,
            redirect_uri=lambda: "http://localhost:3100/auth/callback",
        )
        await made.open()
        try:
            yield made
        finally:
            await made.web.aclose()


def credentials(
    made: Custody, folder: Path, more: str, env: dict[str, str], clock: SystemClock | None = None
) -> Credentials:
    config = folder / "config.yaml"
    config.write_text(f'servers: {{lab: {{url: "http://127.0.0.1:9/mcp", {more}}}}}')
    server = load(config, env=env).settings.sources["servers"]["lab"]
    return Roster(made, clock or SystemClock(), nobody_begins).credentials(identity(server))


async def nobody_begins(_source: str, _caller: str) -> str:
    raise AssertionError("no caller has an account of its own here")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (
            "auth: {type: api-key, env: KEY_OF_THE_TEST}",
            "Set the environment variable KEY_OF_THE_TEST, or store one",
        ),
        ("auth: {type: api-key}", "lab needs a key. Store one with `agent-gate auth key lab`"),
        ("auth: {type: oauth2-pkce}", "lab needs a sign-in: `agent-gate auth start lab`"),
        ('headers: {X-Key: "vault:lab"}', "lab needs the secret lab: run `agent-gate secrets set lab`"),
        (
            'auth: {type: bearer, token: "env:NOT_SET"}',
            "Set the environment variable NOT_SET to the key of lab",
        ),
        (
            'auth: {type: bearer, token: "file:none"}',
            "lab needs the secret in none, which cannot be read: No such file",
        ),
        ('auth: {type: bearer, token: "file:/dev/zero"}', "which cannot be read: it is no file"),
        ('auth: {type: bearer, token: "keyring:lab"}', "run `keyring set agent-gate lab`"),
    ],
)
async def test_a_server_says_which_credential_it_lacks(tmp_path, more, says):
    async with custody(tmp_path, {}) as made:
        with pytest.raises(SignInNeeded, match="lab") as needed:
            await credentials(made, tmp_path, more, {}).fetch("")
        assert says in needed.value.message


@pytest.mark.parametrize(
    ("more", "header"),
    [
        ('auth: {type: bearer, token: "vault:a.name"}', (b"authorization", b"Bearer kept-in-the-vault")),
        ('auth: {type: bearer, token: "env:LAB_KEY"}', (b"authorization", b"Bearer of-the-environment")),
        ("auth: {type: api-key, env: LAB_KEY, header_name: X-Key}", (b"x-key", b"of-the-environment")),
        ('auth: {type: bearer, token: "file:key.txt"}', (b"authorization", b"Bearer from-a-file")),
        ('auth: {type: oauth2-pkce, token: "env:LAB_KEY"}', (b"authorization", b"Bearer of-the-environment")),
        ('headers: {X-Api-Key: "file:key.txt"}', (b"x-api-key", b"from-a-file")),
        ('headers: {Authorization: "Bearer vault:a.name"}', (b"authorization", b"Bearer kept-in-the-vault")),
    ],
)
async def test_a_reference_is_looked_up_when_a_request_is_made_and_stands_in_the_settings_as_written(
    tmp_path, more, header
):
    env = {"LAB_KEY": "of-the-environment"}
    (tmp_path / "key.txt").write_text("from-a-file\n")
    async with custody(tmp_path, env) as made:
        await made.secrets.set("a.name", "kept-in-the-vault")
        own = credentials(made, tmp_path, more, env)
        proof = await own.fetch("")
        assert proof.headers == (header,)
        assert own.at_hand("") is proof
        assert await own.refused("", proof, "Bearer") is None
    assert "kept-in-the-vault" not in repr(load(tmp_path / "config.yaml", env=env))


async def test_an_address_that_looks_like_a_reference_to_a_file_is_left_alone(tmp_path):
    async with custody(tmp_path, {}) as made:
        own = credentials(made, tmp_path, 'headers: {X-Database-Url: "file:notes.db"}', {})
        assert (await own.fetch("")).headers == ((b"x-database-url", b"file:notes.db"),)


async def test_a_secret_that_changed_is_tried_once_after_a_refusal(tmp_path):
    async with custody(tmp_path, {}) as made:
        await made.secrets.set("lab", "the-first-key")
        own = credentials(made, tmp_path, 'headers: {X-Key: "vault:lab"}', {})
        first = await own.fetch("")
        await made.secrets.set("lab", "the-second-key")
        fresh = await own.refused("", first, "")
        assert fresh is not None
        assert fresh.headers == ((b"x-key", b"the-second-key"),)
        assert fresh.secrets == {"the-second-key"}


async def test_a_server_of_which_nothing_is_said_is_asked_without_a_token_until_it_wants_one(tmp_path):
    async with custody(tmp_path, {}) as made:
        own = credentials(made, tmp_path, "timeout: 5", {})
        proof = await own.fetch("")
        assert proof.headers == ()
        challenge = 'Bearer resource_metadata="http://127.0.0.1:9/x", scope="read"'
        with pytest.raises(SignInNeeded, match="agent-gate auth start lab"):
            await own.refused("", proof, challenge)
        assert made.challenges["lab"].scope == "read"
        tokens = OAuthTokens(access_token="the-token")
        await made.accounts.keep(owner_of("lab"), Connected(kind="key", tokens=tokens))
        assert own.at_hand("") is None
        assert (await own.fetch("")).headers == ((b"authorization", b"Bearer the-token"),)


async def test_nothing_that_is_kept_is_readable_on_disk(tmp_path):
    async with custody(tmp_path, {}) as made:
        await made.secrets.set("lab", "canary-of-a-named-secret")
        await made.vault.rotate()
        assert [one.name for one in await made.secrets.list_names()] == ["lab"]
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert b"canary-of-a-named-secret" not in file.read_bytes(), file


async def test_a_vault_whose_key_is_another_stays_shut_and_everything_else_goes_on(tmp_path):
    async with custody(tmp_path, {"AGENT_GATE_SECRET": "the first passphrase of the vault"}) as made:
        await made.secrets.set("lab", "kept")
    async with custody(tmp_path, {"AGENT_GATE_SECRET": "another passphrase of the vault"}) as made:
        assert not made.vault.is_open
        with pytest.raises(DependencyUnavailable, match=r"The vault is shut: .* is wrapped by the key"):
            await credentials(made, tmp_path, 'headers: {X-Key: "vault:lab"}', {}).fetch("")
        plain = credentials(made, tmp_path, "headers: {X-Key: plain}", {})
        assert (await plain.fetch("")).headers == ((b"x-key", b"plain"),)
        await made.vault.forget_all()
        assert await made.secrets.list_names() == []


class Ahead(SystemClock):
    """A clock that can be put forward."""

    by = 0.0

    def now(self) -> float:  # type: ignore[override]
        return SystemClock.now() + self.by

    def monotonic(self) -> float:  # type: ignore[override]
        return SystemClock.monotonic() + self.by


async def test_a_secret_that_changed_is_used_five_seconds_later_without_a_refusal(tmp_path):
    async with custody(tmp_path, {}) as made:
        clock = Ahead()
        await made.secrets.set("lab", "the-first-key")
        own = credentials(made, tmp_path, 'headers: {X-Key: "vault:lab"}', {}, clock)
        first = await own.fetch("")
        await made.vault.put("secret:lab", "secret", b"the-second-key")
        clock.by = 4.0
        assert own.at_hand("") is first
        clock.by = 5.1
        assert own.at_hand("") is None
        assert (await own.fetch("")).headers == ((b"x-key", b"the-second-key"),)
        await made.secrets.set("lab", "the-third-key")
        assert own.at_hand("") is None
        assert (await own.fetch("")).headers == ((b"x-key", b"the-third-key"),)


async def test_a_reference_to_the_keyring_is_looked_up_by_its_name(tmp_path, monkeypatch):
    monkeypatch.setattr("agent_gate.vault.secrets.read_keyring", {"lab": "of-the-keyring"}.get)
    async with custody(tmp_path, {}) as made:
        own = credentials(made, tmp_path, 'auth: {type: bearer, token: "keyring:lab"}', {})
        assert (await own.fetch("")).headers == ((b"authorization", b"Bearer of-the-keyring"),)


async def test_an_identity_is_read_anew_for_each_exchange(tmp_path):
    identity = tmp_path / "identity"
    identity.write_text("the-first-identity")
    with Api() as api:
        api.replies["/token"] = (200, {}, b'{"access_token": "a-token", "expires_in": 60}')
        more = f'{{type: token-exchange, client_id: x, identity_token: "file:identity", token_url: "{api.url}/token"}}'
        async with custody(tmp_path, {}) as made:
            clock = Ahead()
            own = credentials(made, tmp_path, f"auth: {more}", {}, clock)
            await own.fetch("")
            identity.write_text("the-second-identity")
            clock.by = 3600.0
            await own.fetch("")
        sent = [request["body"].decode() for request in api.requests if request["path"] == "/token"]
    assert [name for body in sent for name in ("first", "second") if f"the-{name}-identity" in body] == [
        "first",
        "second",
    ]


async def test_a_caller_without_an_identity_is_told_that_there_is_none(tmp_path):
    more = (
        'auth: {type: token-exchange, client_id: x, identity_token: "of-the-file"}, credentials: per-caller'
    )
    async with custody(tmp_path, {}) as made:
        with pytest.raises(SignInNeeded, match="pi is without one"):
            await credentials(made, tmp_path, more, {}).fetch("pi")


async def test_resources_and_prompts_of_a_server_with_accounts_of_callers_are_not_offered():
    pool = Pool()
    for whose, offered in (("per-caller", False), ("shared", True)):
        settings = ServerSettings(key="s", url="http://127.0.0.1:9/mcp", transport="http", credentials=whose)
        assert (McpSource(settings, toolbox(pool)).context is not None) is offered
    await pool.aclose()


async def test_a_sign_in_ends_after_ten_minutes(tmp_path):
    settings = SignInSettings(
        source="lab",
        title="Lab",
        url="http://127.0.0.1:9/mcp",
        client=ConfiguredClient("x", "a-secret-of-the-client"),
        authorize_url="http://127.0.0.1:9/authorize",
        token_url="http://127.0.0.1:9/token",
    )

    clock = Ahead()
    async with custody(tmp_path, {}, clock) as made:
        for late, says in ((599.0, "cannot be reached"), (601.0, "Begin anew")):
            clock.by = 0.0
            started = await made.flows.start(settings, owner_of("lab"), "operator")
            assert started.expires_at - clock.now() == pytest.approx(600, abs=5)
            clock.by = late
            with pytest.raises(GatewayError, match=says):
                await made.flows.finish(started.state, "a-code", None)


@pytest.mark.parametrize(
    ("where", "headers", "query"),
    [
        ({"header_name": "X-Token"}, ((b"x-token", b"a-token"),), ()),
        ({"query_param": "token"}, (), (("token", "a-token"),)),
    ],
)
async def test_the_token_of_a_services_account_goes_where_its_file_says(tmp_path, where, headers, query):
    who = AuthConfig(type="oauth2", **where).identity("lab", "http://127.0.0.1:9")
    async with custody(tmp_path, {}) as made:
        tokens = OAuthTokens(access_token="a-token")
        await made.accounts.keep(owner_of("lab"), Connected(kind="oauth", tokens=tokens))
        proof = await Roster(made, SystemClock(), nobody_begins).credentials(who).fetch("")
        assert (proof.headers, proof.query) == (headers, query)


async def test_a_child_gets_in_its_environment_what_a_reference_leads_to(tmp_path):
    (tmp_path / "key.txt").write_text("from-a-file\n")
    (tmp_path / "config.yaml").write_text(
        'servers: {notes: {command: notes-server, env: {NOTES_KEY: "file:key.txt", NOTES_FILE: "file:notes.db"}}}'
    )
    settings = load(tmp_path / "config.yaml", env={}).settings.sources["servers"]["notes"]
    async with custody(tmp_path, {}) as made:
        own = Roster(made, SystemClock(), nobody_begins).credentials(identity(settings))
        proof = await own.fetch("")
        assert proof.env == {"NOTES_KEY": "from-a-file", "NOTES_FILE": "file:notes.db"}
        assert "from-a-file" in proof.secrets
