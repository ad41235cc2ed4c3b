"""Deno and Node over TLS: each trusts the authority that the gateway made, as the page about them says."""

import json
import ssl
import subprocess
from urllib.request import Request, urlopen

import pytest
from tests.gateway import TOKEN, Api, running
from tests.typescript.node_tools import deno, new_node, quiet_environment
from tests.waiting import PATIENCE

CONFIG = """
gateway: {{port: 0}}
admin: {{port: 0, socket: ./data/admin.sock}}
agents: {{deno: {{token: {token}}}}}
services:
  house: {{url: "{url}", tools: {{light_get: {{request: {{method: GET, path: /light}}}}}}}}
permissions: permissions.yaml
"""
SCRIPT = """
import {{ tools }} from "{module}";
console.log(JSON.stringify(await tools.house.lightGet({{}})));
"""


@pytest.fixture
def gateway(tmp_path):
    with Api() as api:
        files = {
            "config.yaml": CONFIG.format(url=api.url, token=TOKEN),
            "permissions.yaml": 'rules: [{pattern: "*", action: allow}]\n',
        }
        with running(tmp_path, files) as gateway:
            yield gateway


def run(*command, cwd, env):
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=PATIENCE)


def test_deno_trusts_the_made_authority_and_calls_a_tool(gateway, tmp_path):
    host = gateway.url.removeprefix("https://")
    (tmp_path / "script.ts").write_text(SCRIPT.format(module=f"{gateway.url}/runtime/tools.ts"))
    env = quiet_environment(
        tmp_path, AGENT_GATE_URL=gateway.url, AGENT_TOKEN=TOKEN, DENO_AUTH_TOKENS=f"{TOKEN}@{host}"
    )
    options = [
        f"--allow-import={host}",
        f"--allow-net={host}",
        "--allow-env=AGENT_GATE_URL,AGENT_TOKEN",
        "--no-prompt",
    ]
    refused = run(deno(), "run", *options, "script.ts", cwd=tmp_path, env=env)
    assert refused.returncode != 0
    done = run(deno(), "run", *options, "--cert", "data/tls/ca.crt", "script.ts", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["path"] == "/light"


def test_node_trusts_the_made_authority_and_calls_a_tool(gateway, tmp_path):
    asked = Request(f"{gateway.url}/runtime/tools.ts", headers={"Authorization": f"Bearer {TOKEN}"})
    trusting = ssl.create_default_context(cafile=tmp_path / "data" / "tls" / "ca.crt")
    with urlopen(asked, context=trusting) as reply:
        (tmp_path / "tools.ts").write_bytes(reply.read())
    (tmp_path / "script.ts").write_text(SCRIPT.format(module="./tools.ts"))
    env = quiet_environment(
        tmp_path, AGENT_GATE_URL=gateway.url, AGENT_TOKEN=TOKEN, NODE_EXTRA_CA_CERTS="data/tls/ca.crt"
    )
    done = run(new_node(), "script.ts", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["path"] == "/light"
