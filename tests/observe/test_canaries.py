"""Secrets in every place a secret can be, and none of them in anything that is shown, kept or sent."""

import base64
import http.client
import json
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.approval.bot_api import BotApi
from tests.gateway import Api, TypedGateway, running
from tests.waiting import PATIENCE, wait_until

CANARY = {
    "agent": "CANARY-agent-token-0123456789",
    "bearer": "CANARY-bearer-0123456789",
    "header": "CANARY-header-0123456789",
    "query": "CANARY-query/0123456789+x",
    "basic": "CANARY-basic-0123456789",
    "env": "CANARY-env-of-a-server-0123456789",
    "argument": "CANARY-argument-0123456789",
    "passphrase": "CANARY-passphrase-0123456789",
    "bot": "987654:CANARY-bot-token-0123456789",
    "webhook": "CANARY-webhook-secret-0123456789",
}
TOOLS = """
tools:
  {name}_do:
    signature: "{{what}}"
    args: {{what: {{required: true}}, pin: {{required: false, secret: true}}}}
    request: {{method: POST, path: "/{name}/{{what}}"}}
"""
AUTH = {
    "bearer": '{type: bearer, token: "${BEARER}"}',
    "header": '{type: header, header_name: X-Api-Key, token: "${HEADER}"}',
    "query": '{type: query, query_param: key, token: "${QUERY}"}',
    "basic": '{type: basic, username: me, password: "${BASIC}"}',
}
CHILD = "import os, sys; sys.stderr.write('starting with ' + os.environ['LAB_KEY'] + chr(10)); sys.exit(1)"
ADMIN = (
    "/api/status", "/api/approvals", "/api/approvals?state=all", "/api/grants", "/api/calls?limit=500",
    "/api/tools", "/api/sources", "/api/changes", "/api/policy", "/api/agents", "/api/audit/export",
    "/api/audit/export?format=csv", "/api/audit/verify", "/api/policy/suggest", "/metrics", "/openapi.json",
)  # fmt: skip


PUBLIC = ("/api/tools", "/openapi.json", "/status", "/health", "/ready", "/runtime/tools.ts", "/nowhere")


def forms(secret):
    """A secret as it may be written: itself, percent-encoded, in base64 with a user name, as JSON."""
    basic = base64.b64encode(f"me:{secret}".encode()).decode()
    return {secret, quote(secret, safe=""), basic, base64.b64encode(secret.encode()).decode().rstrip("=")}


def config(api, bot, receiver, collector):
    services = "".join(
        f'  {name}: {{url: "{api.url}", auth: {auth}, tools: {name}.yaml,\n'
        f'    errors: [{{status: 418, message: "teapot {{body}}"}}]}}\n'
        for name, auth in AUTH.items()
    )
    child = json.dumps([sys.executable, "-c", CHILD])
    return f"""
gateway: {{port: 0}}
admin: {{port: 0, socket: ./data/admin.sock}}
agents: {{pi: {{token: "${{AGENT}}", rate_limit: {{max_requests_per_minute: 0}}}}}}
services:
{services}  gone: {{url: "http://127.0.0.1:9", auth: {{type: query, query_param: key, token: "${{QUERY}}"}}, tools: gone.yaml}}
servers:
  lab: {{type: stdio-mcp, command: {json.dumps(sys.executable)}, args: {json.dumps(json.loads(child)[1:])}, env: {{LAB_KEY: "${{LAB}}"}}}}
channels:
  - {{type: telegram, token: "${{BOT}}", chat_id: 1, allowed_users: [11], base_url: "{bot.url}"}}
  - {{type: webhook, url: "{receiver.url}/hook", secret: "${{HOOK}}", headers: {{X-Key: "${{HOOK}}"}}}}
approvers: {{passphrase: "${{PASS}}"}}
storage: {{type: sqlite, path: ./data/gate.db}}
permissions: permissions.yaml
telemetry: {{otlp_endpoint: "{collector.url}"}}
"""


ENV = {
    "AGENT": "agent", "BEARER": "bearer", "HEADER": "header", "QUERY": "query", "BASIC": "basic",
    "LAB": "env", "BOT": "bot", "HOOK": "webhook", "PASS": "passphrase",
}  # fmt: skip


def echo(handler, body):
    """A service that repeats everything it was sent in its error."""
    said = f"{handler.path} {dict(handler.headers)} {body.decode()}"
    return 418 if "tea" in handler.path else 500, {}, said.encode()


def admin_page(gate, seen):
    """What a stranger with an agent's token gets from the admin listener."""
    host, _, port = gate.announced["admin"].rpartition("/")[2].partition(":")
    for path in (*ADMIN, "/", "/answer/x"):
        connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
        connection.request("GET", path, headers={"Authorization": f"Bearer {CANARY['agent']}"})
        seen.append(connection.getresponse().read().decode())
        connection.close()


def command_lines(pid):
    """The command lines of the gateway and of everything it started."""
    out = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parent = place.joinpath("stat").read_text().rpartition(")")[2].split()[1]
            if place.name == str(pid) or parent == str(pid):
                out.append(place.joinpath("cmdline").read_text())
        except OSError:
            continue
    return out


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Everything that could be seen of a gateway that had a bad day."""
    from tests.observe.collector import Collector

    folder, shown = tmp_path_factory.mktemp("gate"), {}
    api, receiver, bot, collector = Api(), Api(), BotApi(), Collector()
    files = {f"{name}.yaml": TOOLS.format(name=name) for name in (*AUTH, "gone")}
    files["config.yaml"] = config(api, bot, receiver, collector)
    files["permissions.yaml"] = (
        'rules: [{pattern: "*(ask*", action: ask}, {pattern: "*(no)", action: deny}]\ndefaults: [{pattern: "*", action: allow}]\n'
    )
    env = {name: CANARY[key] for name, key in ENV.items()} | {"LOG_LEVEL": "debug"}
    token, replies = CANARY["agent"], []
    try:
        with running(folder, files, "--insecure", env=env, kind=TypedGateway) as gate:
            wait_until(lambda: any(s["key"] == "lab" and s["reason"] for s in gate.admin.get("/api/sources")))
            shown["processes"] = command_lines(gate.process.pid)
            for name in (*AUTH, "gone"):
                for what, behaviour in (("fine", None), ("tea", echo), ("bad", echo), ("no", None)):
                    api.replies["*"] = behaviour
                    call = gate.call(f"{name}_do", {"what": what, "pin": CANARY["argument"]}, token=token)
                    if what != "fine":
                        replies.append(call.body.decode())
            api.replies["*"] = (200, {}, b'{"done": true}')
            asked = gate.call("bearer_do", {"what": "ask", "pin": CANARY["argument"]}, wait=0, token=token)
            replies.append(asked.body.decode())
            [approval] = gate.admin.get("/api/approvals")
            for passphrase in ("wrong", CANARY["passphrase"]):
                try:
                    body = {"verdict": "approve", "passphrase": passphrase}
                    replies.append(str(gate.admin.request("POST", f"/api/approvals/{approval['id']}", body)))
                except Exception as error:  # noqa: BLE001 - whatever it says is looked at
                    replies.append(str(error))
            replies.append(
                gate.request("GET", f"/api/calls/{asked.json['call']}?wait=5", token=token).body.decode()
            )
            replies += [gate.request("GET", path, token=token).body.decode() for path in PUBLIC]
            replies.append(gate.request("GET", "/api/tools", token="wrong").body.decode())
            admin_page(gate, replies)
            for path in ADMIN:
                shown[path] = str(gate.admin.get(path))
            (folder / "permissions.yaml").write_text("rules: [{pattern: ${BEARER}, action: ${PASS}}]\n")
            try:
                gate.admin.request("POST", "/api/reload", {})
            except Exception as error:  # noqa: BLE001 - whatever it says is looked at
                replies.append(str(error))
            shown["after a bad reload"] = str(gate.admin.get("/api/status"))
        shown |= {
            "replies": replies,
            "log": gate.stderr,
            "traces": [body.decode("latin-1") for _, body in collector.requests],
        }
        shown["webhooks"] = [r["body"].decode() for r in receiver.requests]
        shown["audit key"] = (folder / "data" / "audit.key").read_text().strip()
        yield shown
    finally:
        for server in (api, receiver, collector):
            server.close()
        bot.stop()


@pytest.mark.parametrize("name", CANARY)
def test_a_secret_is_seen_nowhere(seen, name):
    found = [
        (place, form) for place, text in seen.items() for form in forms(CANARY[name]) if form in str(text)
    ]
    assert found == []


def test_the_key_of_the_record_is_seen_nowhere(seen):
    key = seen["audit key"]
    assert len(key) == 64
    assert [place for place, text in seen.items() if place != "audit key" and key in str(text)] == []


def test_the_bad_day_was_a_bad_day(seen):
    """The test could fail: everything that could leak did happen."""
    assert "teapot" in str(seen["replies"])
    assert "A channel did not take a message" in seen["log"]
    assert "starting with •••" in str(seen)
    assert seen["traces"]
    assert seen["webhooks"]
    assert "•••" in seen["/api/audit/export"]
    assert "gone" in str(seen["replies"])
    assert "passphrase" in str(seen["replies"])
    assert "reload_fault" in seen["after a bad reload"]
    assert any("agent-gate" in line for line in seen["processes"])
