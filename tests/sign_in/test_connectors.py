"""Connectors of vendors' clouds sign in over real TLS, from public addresses, with their own documents.

All of it is in one room: the names are the vendors', the addresses and certificates the room's own.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests import room
from tests.gateway import running
from tests.sign_in.conftest import files
from tests.ui import chromium
from tests.waiting import PATIENCE

from agent_gate.net.tls.certificates import ensure_certificate

SCRIPT = Path(__file__).with_name("connector.py")
ISSUER = "https://gate.example"
NAMES = {
    "claude.ai": "93.184.215.1",
    "chatgpt.com": "93.184.215.2",
    "other.example": "93.184.215.1",
    "inside.example": "10.9.8.7",
    "gate.example": "127.0.0.1",
}
KNOWN = {"response_type": "code", "code_challenge_method": "S256", "code_challenge": "E" * 43}


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    if why := room.missing():
        pytest.skip(why)
    with room.room(tmp_path_factory.mktemp("house"), NAMES) as made:
        yield made


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """One for every name but `other.example`."""
    folder = tmp_path_factory.mktemp("tls")
    ensure_certificate(folder, [name for name in NAMES if name != "other.example"])
    return folder


@pytest.fixture(scope="module")
def gate(house, certificate, api, tmp_path_factory):
    found = files(api, 443)
    tls = f"{{port: 443, tls: {{cert: {certificate}/gateway.crt, key: {certificate}/gateway.key}}}}"
    auth = f'{{sign_in: true, public_url: "{ISSUER}"}}'
    text = found["config.yaml"].replace("{port: 443}", tls, 1)
    text = text.replace("{sign_in: true, client_documents: false}", auth)
    env = {"SSL_CERT_FILE": str(certificate / "ca.crt")}
    folder = tmp_path_factory.mktemp("gate")
    with running(folder, found | {"config.yaml": text}, kind=house.gateway(), env=env) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def chrome(house):
    chromium.need()
    with chromium.started(house.wrapped(chromium.find_shell() or chromium.find())) as browser:
        yield browser


@pytest.fixture
def page(chrome):
    """The person's browser; it was never told of the room's authority, the connector and the gateway were."""
    context = chrome.new_context(ignore_https_errors=True)
    yield context.new_page()
    context.close()


def line_of(process, word):
    line = process.stdout.readline()
    assert line.startswith(word), line + process.stderr.read()
    return line.removeprefix(word).strip()


@pytest.mark.parametrize(
    ("vendor", "agent", "where"),
    [
        ("claude", "claude/operator", "claude.ai"),
        ("chatgpt", "chatgpt/operator", "chatgpt.com"),
        ("guesser", "claude/operator-2", "claude.ai"),
    ],
)
def test_a_connector_signs_in_over_tls_and_uses_what_it_got(
    house, certificate, gate, page, vendor, agent, where, tmp_path
):
    command = [sys.executable, SCRIPT, vendor, f"{ISSUER}/mcp", certificate]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with house.popen(command, cwd=tmp_path, **pipes) as process:
        try:
            page.goto(line_of(process, "OPEN"))
            assert page.inner_text("main dd strong") == where
            page.get_by_role("button", name="Continue").click()
            gate.answer(number=page.inner_text(".number"))
            page.wait_for_url(re.compile(rf"https://{re.escape(where)}/.*code="))
            assert {"home_act", "notes_write"} <= set(json.loads(line_of(process, "TOOLS")))
            assert {"home_act", "notes_write"} <= set(json.loads(line_of(process, "REFRESHED")))
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
    rows = {one["name"]: one["signed_in"] for one in gate.admin.get("/api/agents") if one["signed_in"]}
    assert rows[agent]["client"] == where


@pytest.mark.parametrize(
    ("host", "why"),
    [("inside.example", "10.9.8.7 is not a public address"), ("other.example", "certificate")],
    ids=["private", "certificate"],
)
def test_a_document_at_a_private_address_or_behind_a_foreign_certificate_lets_nobody_ask(
    house, certificate, gate, page, host, why, tmp_path
):
    serving = [sys.executable, SCRIPT, "claude", "", certificate]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with house.popen(serving, cwd=tmp_path, **pipes) as process:
        assert line_of(process, "SERVING") == "https://claude.ai/oauth/mcp-oauth-client-metadata"
        page.goto(f"{ISSUER}/authorize?client_id=https://{host}/oauth/mcp-oauth-client-metadata")
        assert why in page.inner_text("main")
        process.stdin.close()
    assert gate.admin.get("/api/approvals") == []
