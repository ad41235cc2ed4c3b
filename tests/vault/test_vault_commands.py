"""The vault as an operator handles it: secrets by name, a copy without its key, and what `doctor` says of that key."""

from collections.abc import Iterator

import pytest
from tests import nursery
from tests.gateway import COMMAND, TOKEN, Api, Gateway, running
from tests.oauth.test_signing_in import traces
from tests.waiting import PATIENCE, wait_until

from agent_gate.config.configuration import Configuration
from agent_gate.config.options import Options

SECRET = "CANARY-of-the-commands-0123456789"
CONFIG = """
gateway: {{port: 0}}
admin: {{port: 0, socket: ./data/admin.sock}}
agents: {{pi: {{token: {token}, rate_limit: {{max_requests_per_minute: 0}}}}}}
services: {{house: {{url: "{api}", auth: {{type: bearer, token: "vault:house"}}, tools: tools.yaml}}}}
storage: {{path: ./data/gate.db}}
"""
FILES = {
    "tools.yaml": "tools: {light_get: {request: {method: GET, path: /light}}}\n",
    "permissions.yaml": 'defaults: [{pattern: "*", action: allow}]\n',
}


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with Api() as made:
        yield made


@pytest.fixture(scope="module")
def gateway(tmp_path_factory, api: Api) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("vault")
    with running(
        folder, FILES | {"config.yaml": CONFIG.format(token=TOKEN, api=api.url)}, "--insecure"
    ) as made:
        yield made


def command(gateway: Gateway, *words: str, given: str | None = None, code: int = 0) -> str:
    config = ["--config", "config.yaml"]
    done = nursery.run(
        [COMMAND, *words, *config],
        cwd=gateway.folder,
        input=given,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == code, done
    return done.stdout + done.stderr


def test_a_named_secret_is_used_listed_by_its_name_and_forgotten(gateway, api):
    assert "agent-gate secrets set house" in gateway.call("light_get").json["error"]["message"]
    assert "house will use it now" in command(gateway, "secrets", "set", "house", given=SECRET)
    wait_until(lambda: gateway.call("light_get").status == 200)
    assert api.requests[-1]["headers"]["authorization"] == f"Bearer {SECRET}"
    listed = command(gateway, "secrets", "list")
    assert ("vault:house" in listed, SECRET in listed) == (True, False)
    before = gateway.admin.get("/api/vault")
    assert "Sealed" in command(gateway, "vault", "rotate")
    assert gateway.admin.get("/api/vault") != before
    wait_until(lambda: gateway.call("light_get").status == 200)
    command(gateway, "secrets", "remove", "house")
    wait_until(lambda: gateway.call("light_get").status == 503)
    assert "not set; house needs it" in command(gateway, "secrets", "list")
    assert traces(gateway.folder, SECRET) == []


def test_a_vault_whose_key_is_lost_is_given_up_by_wish_alone(tmp_path, api):
    files = FILES | {"config.yaml": CONFIG.format(token=TOKEN, api=api.url)}
    with running(tmp_path, files, "--insecure") as gateway:
        command(gateway, "secrets", "set", "house", given=SECRET)
        assert "open" in command(gateway, "vault", "forget", given="y\n", code=4)
        gateway.stop()
        (tmp_path / "data" / "vault.key").unlink()
        gateway.start()
        assert "values cannot be read" in command(gateway, "vault", "status")
        command(gateway, "vault", "forget", given="n\n", code=130)
        assert "values cannot be read" in command(gateway, "vault")
        assert "Gave up " in command(gateway, "vault", "forget", given="y\n")
        command(gateway, "secrets", "set", "house", given=SECRET)
        wait_until(lambda: gateway.call("light_get").status == 200)


def test_a_copy_has_the_vaults_key_only_by_wish_and_shows_nothing(gateway):
    command(gateway, "secrets", "set", "house", given=SECRET)
    said = command(gateway, "backup", "copy")
    assert "vault's key is not in it" in said
    assert not list((gateway.folder / "copy").rglob("vault.key"))
    command(gateway, "backup", "whole", "--with-vault-key")
    assert list((gateway.folder / "whole").rglob("vault.key"))
    assert traces(gateway.folder, SECRET) == []


def test_doctor_says_when_others_can_read_the_key(gateway):
    key = gateway.folder / "data" / "vault.key"
    assert key.stat().st_mode & 0o777 == 0o600
    key.chmod(0o644)
    said = command(gateway, "doctor", code=1)
    key.chmod(0o600)
    assert "vault.key" in said
    assert f"chmod 600 {key}" in said or "chmod 600" in said


@pytest.mark.parametrize("name", ["AUTH_STORE_PATH", "GATEWAY_AUTH_DIR"])
def test_a_folder_for_credentials_of_earlier_days_is_warned_about(tmp_path, monkeypatch, name):
    monkeypatch.setenv(name, "/data/auth")
    (tmp_path / "config.yaml").write_text("{}\n")
    warnings = Configuration(Options(config=tmp_path / "config.yaml")).warnings()
    assert [one for one in warnings if name in one and "sealed in the store" in one]
