"""Clients that other people wrote sign in, with a real Chromium for the human part; and the official suite."""

import json
import os
import re
import socket
import subprocess
import sys
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from tests.conformance.node_packages import CACHE, installed, node, suite
from tests.processes import free_port
from tests.sign_in.small_client import SmallBrowser, SmallClient, begin, follow, say_yes, sign_in
from tests.ui import chromium
from tests.waiting import PATIENCE, wait_until

HERE = Path(__file__).parent
TOOLS = {"home_act", "notes_write"}


@pytest.fixture(scope="module")
def chrome():
    with chromium.started() as browser:
        yield browser


def give_consent(gate, chrome, address, **more):
    """What a person does: open the address, press Continue, say yes with the number, and wait."""
    context = chrome.new_context()
    try:
        page = context.new_page()
        page.goto(address)
        assert "(unverified)" in page.inner_text("main")
        page.get_by_role("button", name="Continue").click()
        number = page.inner_text(".number")
        say_yes(gate, number, **more)
        page.wait_for_url(re.compile(r"code="))
    finally:
        context.close()


def python_client(gate, kept, port):
    return [sys.executable, str(HERE / "python_client.py"), f"{gate.url}/mcp", str(kept), str(port)]


def typescript_client(gate, kept, port):
    installed("clients")
    script = str(HERE / "typescript_client.mjs")
    return [node(), script, str(CACHE / "clients"), f"{gate.url}/mcp", str(kept), str(port)]


def mcp_remote(gate, kept, port):
    program = installed("remote") / "mcp-remote" / "dist" / "client.js"
    return [node(), str(program), f"{gate.url}/mcp", str(port), "--transport", "http-only"]


@contextmanager
def started(command, folder):
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "MCP_REMOTE_CONFIG_DIR": str(folder),
        "NO_COLOR": "1",
    }
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        end_below(process)
        process.kill()
        process.wait(PATIENCE)
        process.stdin.close()
        process.stdout.close()


def is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def end_below(process):
    """A terminal's program outlives its terminal."""
    with suppress(psutil.NoSuchProcess):
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()


def read_until(process, pattern):
    """The first match in what a program says."""
    said = ""
    for line in process.stdout:
        said += line
        if found := pattern.search(said):
            return found
    raise AssertionError(f"it said only: {said}")


OPEN = re.compile(r"^OPEN (\S+)$", re.MULTILINE)
LISTED = re.compile(r"^TOOLS (.*)$", re.MULTILINE)
EITHER = re.compile(r"^(OPEN|TOOLS) (.*)$", re.MULTILINE)


@pytest.mark.parametrize("command", [python_client, typescript_client], ids=["python", "typescript"])
def test_an_sdk_signs_in_refreshes_in_silence_and_is_out_when_revoked(gate, chrome, tmp_path, command):
    kept, port = tmp_path / "kept.json", free_port()
    with started(command(gate, kept, port), tmp_path) as process:
        give_consent(gate, chrome, read_until(process, OPEN)[1])
        assert set(json.loads(read_until(process, LISTED)[1])) >= TOOLS
    held = json.loads(kept.read_text())
    held["tokens"]["access_token"] = "aga_of_an_hour_ago"
    kept.write_text(json.dumps(held))
    with started(command(gate, kept, port), tmp_path) as process:
        first = read_until(process, EITHER)
        if first[1] == "TOOLS":
            assert set(json.loads(first[2])) >= TOOLS
            assert json.loads(kept.read_text())["tokens"]["access_token"] != "aga_of_an_hour_ago"
        else:
            assert command is python_client, (
                "only the Python SDK asks anew on a token whose end it does not know"
            )
    [agent] = [one for one in gate.admin.get("/api/agents") if (one["signed_in"] or {}).get("client")]
    gate.admin.request("DELETE", f"/api/agents/{agent['name'].replace('/', '%2F')}")
    with started(command(gate, kept, port), tmp_path) as process:
        assert read_until(process, EITHER)[1] == "OPEN"


@pytest.mark.parametrize(
    ("path", "tool", "arguments"),
    [("/mcp", "home_act", {}), ("/mcp/gateway", "tool_execute", {"tool_id": "home:home_act"})],
    ids=["full", "gateway"],
)
def test_an_sdk_asks_for_a_source_that_it_was_not_given_and_its_call_runs_after_the_yes(
    gate, chrome, tmp_path, path, tool, arguments
):
    words = [f"{gate.url}{path}", str(tmp_path / "kept.json"), str(free_port()), tool, json.dumps(arguments)]
    with started([sys.executable, str(HERE / "python_client.py"), *words], tmp_path) as process:
        give_consent(gate, chrome, read_until(process, OPEN)[1], terms={"namespaces": ["notes"]})
        read_until(process, LISTED)
        asked = read_until(process, OPEN)[1]
        assert {"mcp%3Ahome", "mcp%3Anotes"} <= set(asked.partition("scope=")[2].split("+"))
        give_consent(gate, chrome, asked)
        called = json.loads(read_until(process, re.compile("^CALLED (.*)$", re.MULTILINE))[1])
    assert not called.get("isError")
    assert "/home_act" in json.dumps(called)


def test_mcp_remote_signs_in_and_its_next_start_needs_no_browser(gate, chrome, tmp_path):
    port = free_port()
    address = re.compile(r"^(http://127\.0\.0\.1:\d+/authorize\?\S+)$", re.MULTILINE)
    with started(mcp_remote(gate, None, port), tmp_path) as process:
        give_consent(gate, chrome, read_until(process, address)[1])
        read_until(process, re.compile("Connected successfully!"))
    with started(mcp_remote(gate, None, port), tmp_path) as process:
        said = read_until(process, re.compile("Connected successfully!|/authorize\\?"))
        assert said[0] == "Connected successfully!"


def test_the_official_suite_for_authorization_servers_is_green(gate, tmp_path):
    port = free_port()
    client = SmallClient(gate, name="Conformance", callback=f"http://127.0.0.1:{port}/callback")
    assert client.register().status == 201
    command = [
        node(),
        suite("suite-both"),
        "authorization",
        "--url",
        gate.url,
        "--client-id",
        client.client_id,
    ]
    command += ["--resource", f"{gate.url}/mcp", "-p", str(port)]
    with started(command, tmp_path) as process:
        address = read_until(process, re.compile(r"(http://127\.0\.0\.1:\d+/authorize\?\S+)"))[1]

        browser = SmallBrowser(gate.url)
        sent = browser.press_continue(browser.get(address))
        say_yes(gate, browser.get(sent.location).number)
        back = follow(browser, sent.location).location
        wait_until(lambda: is_open(port), "the suite's listener, whose address it says before it listens")
        with urllib.request.urlopen(back, timeout=PATIENCE) as reply:
            reply.read()
        said = process.stdout.read()
        assert process.wait(PATIENCE) == 0, said
    assert re.search(r"0 failed", said), said


def test_a_person_types_the_number_on_the_operators_page(gate, chrome):
    client = SmallClient(gate)
    client.register()
    browser, place = begin(client)
    number = browser.get(place).number
    link = gate.admin.request("POST", "/api/logins", {})["url"]
    context = chrome.new_context()
    try:
        page = context.new_page()
        page.goto(link)
        page.wait_for_selector("#nav a")
        asked = gate.admin.get("/api/approvals")[0]
        page.goto(f"{link.partition('/login')[0]}/#/approvals/{asked['id']}")
        page.fill("[data-consent=number]", number)
        page.fill("[data-consent=agent]", "typed/ada")
        page.fill("[data-consent=days]", "3")
        page.locator("[data-answer=once]:enabled").click()
        code = follow(browser, place).answer()["code"]
    finally:
        context.close()
    assert client.redeem(code).status == 200
    row = next(one for one in gate.admin.get("/api/agents") if one["name"] == "typed/ada")
    assert row["signed_in"]["person"] == "operator"


def test_the_page_shows_an_agent_that_signed_in_and_revokes_it(gate, chrome):
    client = sign_in(gate, terms={"agent": "rowed/ada", "namespaces": ["notes"]})
    link = gate.admin.request("POST", "/api/logins", {})["url"]
    context = chrome.new_context()
    try:
        page = context.new_page()
        page.goto(link)
        page.wait_for_selector("#nav a")
        page.goto(f"{link.partition('/login')[0]}/#/agents")
        row = page.locator("div.two", has_text="rowed/ada")
        shown = row.inner_text()
        for part in ("1 tool", "localhost, for operator", "seen "):
            assert part in shown
        row.click()
        page.get_by_role("heading", name="rowed/ada").wait_for()
        facts = page.locator("main").inner_text()
        for part in ("sees\nnotes", "signed in with localhost", "for operator", "until", "last seen"):
            assert part in facts
        page.get_by_role("button", name="Revoke its sign-in").click()
        page.get_by_role("button", name="Revoke", exact=True).click()
        page.get_by_text("Revoked rowed/ada").wait_for()
    finally:
        context.close()
    assert client.list_tools().status == 401
