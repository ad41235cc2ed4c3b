"""What a server lacks before it can be reached, as its state says it."""

import pytest

from agent_gate.config.load import load
from agent_gate.sources.mcp.kind import missing_credential


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("auth: {type: api-key, env: KEY_OF_THE_TEST}", "Set the environment variable KEY_OF_THE_TEST"),
        ("auth: {type: oauth2-pkce}", "needs a sign-in (oauth2-pkce), which does not exist yet"),
        ("auth: {type: oauth2-pkce, token: made-elsewhere}", ""),
        ('headers: {X-Key: "vault:lab"}', "X-Key names a credential of the vault, which does not exist yet"),
        ("headers: {X-Key: plain}", ""),
    ],
)
def test_a_server_says_which_credential_it_lacks(tmp_path, more, says):
    config = tmp_path / "config.yaml"
    config.write_text(f'servers: {{lab: {{url: "http://127.0.0.1:9/mcp", {more}}}}}')
    missing = missing_credential(load(config, env={}).settings.sources["servers"]["lab"])
    assert says in missing
    assert bool(says) == bool(missing)
