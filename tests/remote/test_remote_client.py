"""A component's client for its gateway: what it does before it asks anything."""

from types import SimpleNamespace

import pytest

from agent_gate.cli import remote
from agent_gate.errors import ConfigError


@pytest.mark.parametrize("due", [True, False])
def test_a_certificate_that_is_due_is_renewed_before_anything_is_asked(tmp_path, monkeypatch, due):
    setup = SimpleNamespace(gateway_url="wss://127.0.0.1:1")
    component = SimpleNamespace(belonging=object(), setup=setup, renewal_due=due)
    renewed = []
    monkeypatch.setattr(remote, "component_in", lambda _folder: component)
    monkeypatch.setattr(remote, "renew", renewed.append)
    remote.RemoteClient(tmp_path)
    assert renewed == ([component] if due else [])


def test_a_folder_without_a_pairing_says_what_to_run(tmp_path):
    with pytest.raises(ConfigError, match="agent-gate join"):
        remote.RemoteClient(tmp_path / "nowhere")
