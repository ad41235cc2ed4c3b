"""Where a source's credentials come from: references that are looked up, keys and accounts that are connected."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.rows import opened

from agent_gate.config.load import load
from agent_gate.core.credentials import Credentials, SignInNeeded
from agent_gate.core.ports import SystemClock
from agent_gate.errors import DependencyUnavailable
from agent_gate.sources.accounts.credentials import Roster, owner_of
from agent_gate.sources.mcp.sessions.dial import identity
from agent_gate.store import StoreSettings
from agent_gate.vault.accounts import Connected
from agent_gate.vault.custody import Custody
from agent_gate.vault.oauth.tokens import OAuthTokens
from agent_gate.vault.vault import Vault


@asynccontextmanager
async def custody(folder: Path, env: dict[str, str]) -> AsyncIterator[Custody]:
    async with opened(StoreSettings(path=folder / "store.db")) as store:
        vault = Vault(store, SystemClock(), folder, "home", env)
        await vault.open_or_say_why()
        made = Custody.of(
            vault,
            store,
            SystemClock(),
            files=folder,
            env=lambda: env,
            redirect_uri=lambda: "http://localhost:3100/auth/callback",
        )
        await made.open()
        try:
            yield made
        finally:
            await made.web.aclose()


def credentials(made: Custody, folder: Path, more: str, env: dict[str, str]) -> Credentials:
    config = folder / "config.yaml"
    config.write_text(f'servers: {{lab: {{url: "http://127.0.0.1:9/mcp", {more}}}}}')
    server = load(config, env=env).settings.sources["servers"]["lab"]
    return Roster(made, SystemClock(), nobody_begins).credentials(identity(server))


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
def test_a_server_says_which_credential_it_lacks(tmp_path, more, says):
    async def scenario() -> None:
        async with custody(tmp_path, {}) as made:
            with pytest.raises(SignInNeeded, match="lab") as needed:
                await credentials(made, tmp_path, more, {}).fetch("")
            assert says in needed.value.message

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("more", "header"),
    [
        ('auth: {type: bearer, token: "vault:a.name"}', (b"authorization", b"Bearer kept-in-the-vault")),
        ('auth: {type: bearer, token: "env:LAB_KEY"}', (b"authorization", b"Bearer of-the-environment")),
        ("auth: {type: api-key, env: LAB_KEY, header_name: X-Key}", (b"x-key", b"of-the-environment")),
        ('auth: {type: bearer, token: "file:key.txt"}', (b"authorization", b"Bearer from-a-file")),
        ('headers: {Authorization: "Bearer vault:a.name"}', (b"authorization", b"Bearer kept-in-the-vault")),
    ],
)
def test_a_reference_is_looked_up_when_a_request_is_made_and_stands_in_the_settings_as_written(
    tmp_path, more, header
):
    env = {"LAB_KEY": "of-the-environment"}
    (tmp_path / "key.txt").write_text("from-a-file\n")

    async def scenario() -> None:
        async with custody(tmp_path, env) as made:
            await made.secrets.set("a.name", "kept-in-the-vault")
            own = credentials(made, tmp_path, more, env)
            proof = await own.fetch("")
            assert proof.headers == (header,)
            assert own.at_hand("") is proof
            assert await own.refused("", proof, "Bearer") is None

    asyncio.run(scenario())
    assert "kept-in-the-vault" not in repr(load(tmp_path / "config.yaml", env=env))


def test_an_address_that_looks_like_a_reference_to_a_file_is_left_alone(tmp_path):
    async def scenario() -> None:
        async with custody(tmp_path, {}) as made:
            own = credentials(made, tmp_path, 'headers: {X-Database-Url: "file:notes.db"}', {})
            assert (await own.fetch("")).headers == ((b"x-database-url", b"file:notes.db"),)

    asyncio.run(scenario())


def test_a_secret_that_changed_is_tried_once_after_a_refusal(tmp_path):
    async def scenario() -> None:
        async with custody(tmp_path, {}) as made:
            await made.secrets.set("lab", "the-first-key")
            own = credentials(made, tmp_path, 'headers: {X-Key: "vault:lab"}', {})
            first = await own.fetch("")
            await made.secrets.set("lab", "the-second-key")
            fresh = await own.refused("", first, "")
            assert fresh is not None
            assert fresh.headers == ((b"x-key", b"the-second-key"),)
            assert fresh.secrets == {"the-second-key"}

    asyncio.run(scenario())


def test_a_server_of_which_nothing_is_said_is_asked_without_a_token_until_it_wants_one(tmp_path):
    async def scenario() -> None:
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

    asyncio.run(scenario())


def test_nothing_that_is_kept_is_readable_on_disk(tmp_path):
    async def scenario() -> None:
        async with custody(tmp_path, {}) as made:
            await made.secrets.set("lab", "canary-of-a-named-secret")
            await made.vault.rotate()
            assert [one.name for one in await made.secrets.names()] == ["lab"]

    asyncio.run(scenario())
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert b"canary-of-a-named-secret" not in file.read_bytes(), file


def test_a_vault_whose_key_is_another_stays_shut_and_everything_else_goes_on(tmp_path):
    async def scenario() -> None:
        async with custody(tmp_path, {"AGENT_GATE_SECRET": "the first passphrase of the vault"}) as made:
            await made.secrets.set("lab", "kept")
        async with custody(tmp_path, {"AGENT_GATE_SECRET": "another passphrase of the vault"}) as made:
            assert not made.vault.is_open
            with pytest.raises(DependencyUnavailable, match=r"The vault is shut: .* is wrapped by the key"):
                await credentials(made, tmp_path, 'headers: {X-Key: "vault:lab"}', {}).fetch("")
            plain = credentials(made, tmp_path, "headers: {X-Key: plain}", {})
            assert (await plain.fetch("")).headers == ((b"x-key", b"plain"),)
            await made.vault.forget_all()
            assert await made.secrets.names() == []

    asyncio.run(scenario())
