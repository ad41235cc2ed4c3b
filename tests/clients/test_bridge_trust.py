"""Whom the bridge trusts over TLS, and whom it says it is."""

import json

import pytest
from tests.clients.hosting import modern, start_bridge

from agent_gate.net.http import Response, json_response
from agent_gate.net.server import Server
from agent_gate.net.tls.certificates import ensure_certificate
from agent_gate.net.tls.files import server_context


async def answer_with_authorization(request) -> Response:
    body = json.loads(request.body)
    given = (request.header(b"authorization") or b"").decode()
    if given == "Bearer wrong":
        return json_response(401, {"error": {"code": "UNAUTHORIZED", "message": "Invalid token"}})
    return json_response(200, {"jsonrpc": "2.0", "id": body["id"], "result": {"authorization": given}})


async def asked(tmp_path, *options, secure=True, **env):
    made = ensure_certificate(tmp_path / "tls")
    server = Server(answer_with_authorization, ssl=server_context(made.cert, made.key) if secure else None)
    await server.start("127.0.0.1", 0)
    shown = [option.format(cert=made.cert, fingerprint=made.fingerprint) for option in options]
    try:
        url = f"{'https' if secure else 'http'}://127.0.0.1:{server.port}"
        bridge = await start_bridge(url, "--patience", "0", *shown, **env)
        await bridge.send(id=1, method="tools/list", params=modern())
        answer = await bridge.answer(1)
        await bridge.leave()
        return answer
    finally:
        await server.drain(0)


@pytest.mark.parametrize("options", [("--ca", "{cert}"), ("--fingerprint", "{fingerprint}")])
async def test_a_gateway_with_its_own_certificate_is_trusted_when_told_so(tmp_path, options):
    answer = await asked(tmp_path, *options, AGENT_TOKEN="t1")
    assert answer["result"] == {"authorization": "Bearer t1"}


@pytest.mark.parametrize("options", [(), ("--fingerprint", "sha256:" + "00" * 32)])
async def test_any_other_certificate_is_refused_at_once(tmp_path, options):
    answer = await asked(tmp_path, *options, AGENT_TOKEN="t1")
    assert "certificate" in answer["error"]["message"]


async def test_the_token_can_come_from_a_file(tmp_path):
    (tmp_path / "token").write_text("from-file\n")
    answer = await asked(tmp_path, "--token-file", str(tmp_path / "token"), secure=False, AGENT_TOKEN="no")
    assert answer["result"] == {"authorization": "Bearer from-file"}


async def test_a_refused_token_is_an_error_that_says_what_to_set(tmp_path):
    answer = await asked(tmp_path, secure=False, AGENT_TOKEN="wrong")
    assert answer["error"]["message"].endswith("Invalid token. Set AGENT_TOKEN to the agent's token")
