"""What bounds the browser without one being started: its sandbox and its ways out."""

import pytest

from agent_gate.sources.browser import finding
from agent_gate.sources.browser.engine import ARGUMENTS


@pytest.mark.parametrize(
    ("user", "namespaces", "why"),
    [(0, "100", "runs as root"), (1000, "0", "user namespaces are switched off"), (1000, "100", None)],
)
def test_the_sandbox_is_on_unless_the_gateway_is_root_or_there_are_no_user_namespaces(
    tmp_path, monkeypatch, user, namespaces, why
):
    (tmp_path / "namespaces").write_text(f"{namespaces}\n")
    monkeypatch.setattr(finding, "USER_NAMESPACES", tmp_path / "namespaces")
    monkeypatch.setattr(finding.os, "geteuid", lambda: user)
    said = finding.why_no_sandbox()
    assert why in said if why else said == ""


def test_without_a_browser_or_the_extra_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setattr(finding, "which", lambda _name: None)
    monkeypatch.setattr(finding, "PLACES", ())
    with pytest.raises(finding.DependencyUnavailable, match="apt install chromium"):
        finding.find_browser(None)
    assert "agent-gate[browser]" in finding.NO_EXTRA


def test_quic_is_switched_off_and_webrtc_held_to_the_proxy():
    assert "--disable-quic" in ARGUMENTS
    assert "--webrtc-ip-handling-policy=disable_non_proxied_udp" in ARGUMENTS
    assert "--force-webrtc-ip-handling-policy=disable_non_proxied_udp" in ARGUMENTS
