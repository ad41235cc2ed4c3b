"""The human part of a sign-in by login in a real Chromium: our page, the provider's pages, and back to the client."""

import json
import re
import sys
from pathlib import Path

import pytest
from tests.oidc.agents_house import login_gate
from tests.processes import free_port
from tests.sign_in.small_client import question, say_yes
from tests.sign_in.test_real_sign_ins import LISTED, OPEN, TOOLS, read_until, started

PYTHON_CLIENT = Path(__file__).parent.parent / "sign_in" / "python_client.py"
BACK = re.compile(r"^http://[\d.:localhost]+/\S*code=")


@pytest.fixture(scope="module")
def gate(tmp_path_factory, api, provider):
    with login_gate(tmp_path_factory.mktemp("chromium"), api, provider) as running:
        yield running


def log_in(page, address, name):
    """Open the client's address, go to the provider, log in there and agree."""
    page.goto(address)
    assert "(unverified)" in page.inner_text("main")
    page.get_by_role("button", name="Log in with 127.0.0.1").click()
    page.fill("[name=login]", name)
    page.fill("[name=password]", "anything")
    page.locator("[type=submit]").click()
    page.get_by_role("button", name="Continue").click()


@pytest.fixture
def page(chrome):
    context = chrome.new_context()
    yield context.new_page()
    context.close()


def python_client(gate, kept):
    return [sys.executable, str(PYTHON_CLIENT), f"{gate.url}/mcp", str(kept), str(free_port())]


def test_a_person_logs_in_and_the_tools_are_there(gate, provider, page, tmp_path):
    provider.tell_of("anna", groups="sre")
    with started(python_client(gate, tmp_path / "kept.json"), tmp_path) as process:
        log_in(page, read_until(process, OPEN)[1], "anna")
        page.wait_for_url(BACK, timeout=20_000)
        assert set(json.loads(read_until(process, LISTED)[1])) >= TOOLS


def test_where_people_are_asked_the_browser_shows_the_number_after_the_login(gate, provider, page, tmp_path):
    provider.tell_of("bert", groups="staff")
    with started(python_client(gate, tmp_path / "kept.json"), tmp_path) as process:
        log_in(page, read_until(process, OPEN)[1], "bert")
        number = page.inner_text(".number")
        assert question(gate)["arguments"]["person"] == "bert@example.test"
        say_yes(gate, number)
        page.wait_for_url(BACK, timeout=20_000)
        assert set(json.loads(read_until(process, LISTED)[1])) >= TOOLS


def test_somebody_who_says_no_at_the_provider_is_told_and_can_tell_the_client(gate, provider, page, tmp_path):
    provider.tell_of("cora", groups="sre")
    with started(python_client(gate, tmp_path / "kept.json"), tmp_path) as process:
        page.goto(read_until(process, OPEN)[1])
        page.get_by_role("button", name="Log in with 127.0.0.1").click()
        page.get_by_role("link", name="[ Cancel ]").click()
        assert "The provider said no" in page.inner_text("main")
        with page.expect_request(re.compile("error=access_denied")):
            page.get_by_role("link", name="Tell").click()
