"""The human part of a sign-in by login in a real Chromium: our page, the provider's pages, and back to the client."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from tests.conformance.node_packages import installed, node
from tests.oidc.agents_house import login_gate
from tests.processes import free_port
from tests.sign_in.small_client import question, say_yes
from tests.sign_in.test_real_sign_ins import (
    LISTED,
    OPEN,
    TOOLS,
    mcp_remote,
    read_until,
    started,
    typescript_client,
)
from tests.waiting import wait_until

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
        page.wait_for_url(BACK)
        assert set(json.loads(read_until(process, LISTED)[1])) >= TOOLS


ADDRESS = re.compile(r"(http://127\.0\.0\.1:\d+/authorize\?\S+)\s")
IN = re.compile("Connected successfully!|home_act")


def inspector(gate, _kept, port):
    """It asks for a browser only where it has a terminal."""
    script = (
        installed("clients")
        / "@modelcontextprotocol"
        / "inspector"
        / "clients"
        / "cli"
        / "build"
        / "index.js"
    )
    listens = f"MCP_OAUTH_CALLBACK_URL=http://127.0.0.1:{port}/oauth/callback"
    words = ["--transport", "http", "--server-url", f"{gate.url}/mcp", "--method", "tools/list"]
    line = shlex.join(["env", listens, "MCP_INSPECTOR_SECRET_STORE=file", node(), str(script), *words])
    return ["script", "--quiet", "--flush", "--command", line, "/dev/null"]


@pytest.mark.timeout(300)  # Inspector waits for a browser's spare connection until Node ends it
@pytest.mark.parametrize("command", [typescript_client, mcp_remote, inspector])
def test_a_client_of_others_comes_in_by_a_login_and_stays_until_the_provider_ends_it(
    gate, provider, page, tmp_path, command
):
    name = command.__name__.replace("_", "")
    provider.tell_of(name, groups="sre")
    words = command(gate, tmp_path / "kept.json", free_port())
    with started(words, tmp_path) as process:
        log_in(page, read_until(process, ADDRESS)[1], name)
        page.wait_for_url(BACK)
        read_until(process, IN)
    assert not asks_anew(words, tmp_path)
    page.goto(f"{provider.issuer}/session/end")
    page.get_by_role("button", name="Yes, sign me out").click()
    wait_until(lambda: asks_anew(words, tmp_path), "the end of what came of the login")


def asks_anew(words, folder):
    """Whether a client wants a browser, and not only its tools."""
    with started(words, folder) as process:
        return "/authorize" in read_until(process, re.compile(f"{ADDRESS.pattern}|{IN.pattern}"))[0]


def test_where_people_are_asked_the_browser_shows_the_number_after_the_login(gate, provider, page, tmp_path):
    provider.tell_of("bert", groups="staff")
    with started(python_client(gate, tmp_path / "kept.json"), tmp_path) as process:
        log_in(page, read_until(process, OPEN)[1], "bert")
        number = page.inner_text(".number")
        assert question(gate)["arguments"]["person"] == "bert@example.test"
        say_yes(gate, number)
        page.wait_for_url(BACK)
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
