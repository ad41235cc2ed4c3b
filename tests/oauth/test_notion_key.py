"""The pattern of a key, with Notion's own server program: it waits for one, is given it, and nobody else ever sees it."""

import json

from tests import nursery
from tests.gateway import COMMAND, TOKEN, Api, running
from tests.oauth.test_signing_in import traces
from tests.typescript.node_tools import installed, node
from tests.waiting import PATIENCE, wait_until

KEY = "ntn_canary0123456789of0the0tests"
PROGRAM = "@notionhq/notion-mcp-server/bin/cli.mjs"
CONFIG = """
gateway: {{port: 0}}
admin: {{port: 0}}
agents: {{tester: {{token: {token}}}}}
servers:
  notion:
    name: Notion
    command: {node}
    args: [{program}]
    env: {{BASE_URL: "{api}"}}
    auth: {{type: api-key, env: NOTION_TOKEN}}
"""
ALLOW = "rules: [{pattern: 'notion__*', action: allow}]"


def answer(handler, _body):
    """Notion's API, as far as it knows who asks."""
    if handler.headers.get("Authorization") != f"Bearer {KEY}":
        return 401, {}, json.dumps({"object": "error", "status": 401, "code": "unauthorized"}).encode()
    return 200, {}, json.dumps({"object": "user", "id": "u1", "name": "Ada", "type": "person"}).encode()


def state(gateway):
    return next(one for one in gateway.admin.get("/api/sources") if one["key"] == "notion")


def test_notions_own_server_waits_for_its_key_and_uses_the_one_that_is_stored(tmp_path):
    program = json.dumps(str(installed() / PROGRAM))
    with Api() as api:
        api.replies["*"] = answer
        text = CONFIG.format(token=TOKEN, node=json.dumps(node()), program=program, api=api.url)
        with running(tmp_path, {"config.yaml": text, "permissions.yaml": ALLOW}, "--insecure") as gateway:
            wait_until(lambda: state(gateway)["status"] == "needs_auth")
            assert "agent-gate auth key notion" in state(gateway)["reason"]
            stored = nursery.run(
                [COMMAND, "auth", "key", "notion", "--admin-socket", gateway.announced["socket"]],
                input=KEY,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            tools = state(gateway)["tools"]
            assert tools > 10
            assert stored.stdout == f"Notion: connected, I see {tools} tools\n", stored
            reply = gateway.call("notion__API_get_self", timeout=60)
            assert (reply.status, "Ada" in reply.body.decode()) == (200, True), reply.body
            assert api.requests[-1]["headers"]["authorization"] == f"Bearer {KEY}"
            ended = gateway.admin.request("POST", "/servers/notion/auth/end")
            assert (ended["connected"], ended["status"]) == (False, "needs_auth")
        assert traces(tmp_path, KEY) == []
