"""What bounds the browser without one being started: its memory, its sandbox, its ways out, and what a picture shows."""

from types import SimpleNamespace

import pytest

from agent_gate.sources.browser import finding, pictures
from agent_gate.sources.browser.browsings import Browsings
from agent_gate.sources.browser.engine import ARGUMENTS
from agent_gate.sources.browser.settings import BrowserSettings


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


class Engine:
    """A browser that takes so much memory."""

    running = True

    def __init__(self, megabytes):
        self.megabytes, self.killed = lambda: megabytes, False

    async def kill(self):
        self.killed = True


@pytest.mark.parametrize(("megabytes", "replaced"), [(300, False), (301, True)])
async def test_a_browser_that_takes_too_much_memory_is_replaced_and_its_agent_told(
    tmp_path, megabytes, replaced
):
    browsings = Browsings(BrowserSettings(max_megabytes=300), tmp_path)
    browsings.engine = Engine(megabytes)
    key = ("pi", "one")
    open_one = SimpleNamespace(used=float("inf"), lock=SimpleNamespace(locked=lambda: False), alive=True)
    browsings.open_now[key] = open_one
    await browsings._tidy()
    assert browsings.engine.killed is replaced
    assert ("more than 300 MB" in browsings._lost_words.get(key, "")) is replaced


class Photographed:
    """A page that writes down how its picture was to be taken."""

    def locator(self, selector):
        return selector

    async def screenshot(self, **given):
        self.given = given
        return b""


async def test_a_picture_covers_password_fields_and_those_that_were_some():
    def field(ref, *, secret):
        return SimpleNamespace(ref=ref, details=SimpleNamespace(secret=secret, backend=None))

    fields = {"e1": field("e1", secret=True), "e2": field("e2", secret=False)}
    tab = SimpleNamespace(page=Photographed(), sight=SimpleNamespace(known=fields))
    await pictures.take(tab)
    assert tab.page.given["mask"] == ["input[type=password]", "aria-ref=e1"]
