"""Gateways in processes of their own share one store, one account and one refresh; so do calls of one gateway."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests import postgres
from tests.gateway import TOKEN, Gateway, running
from tests.oauth.authority import authorization_server
from tests.oauth.protected import protected_server
from tests.oauth.test_signing_in import ALLOW, sign_in, start, state
from tests.waiting import wait_until

CONFIG = """
gateway: {{port: 0, id: {name}, tenant: home}}
admin: {{port: 0, socket: ./admin.sock}}
agents: {{tester: {{token: {token}, rate_limit: {{max_requests_per_minute: 0}}}}}}
servers:
  notes: {{url: "{url}", auth: {{type: oauth2-pkce}}}}
storage: {storage}
"""
SECRET = {"AGENT_GATE_SECRET": "a passphrase that both gateways have"}
CALLS = 200


def storage_for(names: tuple[str, ...]) -> str:
    """One PostgreSQL for several; a SQLite file has one gateway only."""
    if len(names) > 1:
        return f'{{type: postgres, url: "{postgres.server().clean_database()}"}}'
    return "{type: sqlite, path: ./data/gate.db}"


def gateways(names: tuple[str, ...], tmp_path: Path, url: str, life: ExitStack) -> Iterator[Gateway]:
    storage = storage_for(names)
    for name in names:
        text = CONFIG.format(name=name, token=TOKEN, url=url, storage=storage)
        files = {"config.yaml": text, "permissions.yaml": ALLOW}
        yield life.enter_context(running(tmp_path / name, files, "--insecure", env=SECRET))


@pytest.mark.parametrize("names", [("one", "two"), ("alone",)], ids=["two on PostgreSQL", "one on SQLite"])
def test_t46_two_hundred_calls_with_an_expired_token_renew_once_however_many_gateways(tmp_path, names):
    with (
        authorization_server(seconds=5) as authority,
        protected_server(authority.issuer) as server,
        ExitStack() as life,
    ):
        running_now = list(gateways(names, tmp_path, server.url, life))
        sign_in(running_now[0], authority, start(running_now[0]))
        for gateway in running_now:
            gateway.admin.request("POST", "/servers/notes/connect")
            wait_until(lambda: state(gateway)["status"] == "ready")  # noqa: B023 - used at once
        authority.let_tokens_last(3600)
        used = set(server.tokens)
        wait_until(lambda: not any(map(server.is_good, used)))
        before = authority.count("/token")
        with ThreadPoolExecutor(40) as pool:
            asked = [running_now[number % len(names)] for number in range(CALLS)]
            replies = list(pool.map(lambda gateway: gateway.call("notes__list_notes").status, asked))
        assert set(replies) == {200}
        assert authority.count("/token") == before + 1
        assert len(set(server.tokens) - used) == 1
