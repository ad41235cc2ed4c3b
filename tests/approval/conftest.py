import json

import pytest
from tests.approval.bot_api import CHAT, TOKEN, BotApi
from tests.gateway import Api, running

ANN, BOB, STRANGER = 11, 22, 99
TOOLS = """
tools:
  ha_call_service:
    signature: "{domain}.{service}, {entity_id}"
    args:
      domain: {required: true}
      service: {required: true}
      entity_id: {required: false}
    request: {method: POST, path: "/api/services/{domain}/{service}"}
    ask: "Call {domain}.{service} on {entity_id}?"
  mail_send:
    signature: "{to}"
    args:
      to: {required: true}
      text: {required: true, text: true}
      code: {required: false, secret: true}
    request: {method: POST, path: /mail}
    ask: "Send mail to {to}: {text}"
"""
CONFIG = """
gateway: {{port: 0}}
admin: {{port: 0, socket: ./data/admin.sock{admin}}}
agents:
  pi: {{token: token-of-the-first-agent-in-tests, rate_limit: {{max_requests_per_minute: 0, max_pending_approvals: 50}}}}
services:
  home: {{url: "{api}", tools: tools.yaml}}
people:
  ann: {{telegram: 11}}
  bob: {{telegram: 22}}
storage: {{type: sqlite, path: ./data/gate.db}}
permissions: permissions.yaml
approval_timeout: 600
{more}
"""
TELEGRAM = 'channels: [{{type: telegram, token: "{token}", chat_id: {chat}, allowed_users: [11, 22], base_url: "{url}"{more}}}]'
PERMISSIONS = 'defaults: [{pattern: "*", action: ask}]\n'


@pytest.fixture(scope="session")
def api():
    with Api() as server:
        yield server


@pytest.fixture
def receiver():
    with Api() as server:
        yield server


@pytest.fixture
def bot():
    server = BotApi()
    yield server
    server.stop()
    assert server.faults == []


def telegram(bot, more=""):
    return TELEGRAM.format(token=TOKEN, chat=CHAT, url=bot.url, more=more)


def files(api, more="", permissions=PERMISSIONS, admin=""):
    return {
        "config.yaml": CONFIG.format(api=api.url, more=more, admin=f", {admin}" if admin else ""),
        "tools.yaml": TOOLS,
        "permissions.yaml": permissions,
    }


@pytest.fixture
def start(tmp_path, api):
    """Starts gateways; every one of them ends with the test."""
    stack = []

    def begin(more="", folder="gate", permissions=PERMISSIONS, env=None, admin=""):
        place = tmp_path / folder
        place.mkdir(exist_ok=True)
        context = running(place, files(api, more, permissions, admin), "--insecure", env=env)
        gateway = context.__enter__()
        stack.append(context)
        return gateway

    api.reset()
    yield begin
    for context in stack:
        context.__exit__(None, None, None)


def light(gateway, entity="light.bedroom", wait=0, **options):
    arguments = {"domain": "light", "service": "turn_on", "entity_id": entity}
    return gateway.call("ha_call_service", arguments, wait=wait, **options)


def outcome(gateway, call, seconds=10):
    return gateway.request("GET", f"/api/calls/{call}?wait={seconds}")


def close_all(gate):
    """Deny what is open, so that the next test starts with nothing."""
    ids = [approval["id"] for approval in gate.admin.get("/api/approvals")]
    if ids:
        gate.admin.request("POST", "/api/approvals", {"ids": ids, "verdict": "deny"})
    for grant in gate.admin.get("/api/grants"):
        gate.admin.request("DELETE", f"/api/grants/{grant['id']}")


def reached(api):
    return [(r["method"], r["path"], json.loads(r["body"] or b"{}")) for r in api.requests]
