import pytest
from tests import nursery
from tests.gateway import COMMAND, Api, running
from tests.waiting import PATIENCE

TOOLS = """
tools:
  light:
    signature: "{name}, {state}"
    args: {name: {required: true}, state: {required: true}, note: {required: false, text: true}, pin: {required: false, secret: true}}
    request: {method: POST, path: /light}
  erase:
    signature: "{name}"
    args: {name: {required: true}}
    request: {method: POST, path: /erase}
    destructive: true
"""
CONFIG = """
gateway: {{port: 0}}
admin: {{port: 0, socket: ./data/admin.sock}}
agents: {{pi: {{token: token-of-the-first-agent-in-tests, rate_limit: {{max_requests_per_minute: 0, max_pending_approvals: 0}}}}}}
services: {{home: {{url: "{api}", tools: tools.yaml}}}}
storage: {{type: sqlite, path: ./data/gate.db}}
permissions: permissions.yaml
"""
PERMISSIONS = """\
# who may do what
defaults:
  - {pattern: "*", action: ask}   # a person decides
rules:
  - {pattern: "light(kitchen, *)", action: allow}   # harmless
  # the last word
  - {pattern: "erase(all)", action: deny}
"""


@pytest.fixture(scope="module")
def api():
    with Api() as server:
        yield server


@pytest.fixture
def gate(tmp_path, api):
    files = {"config.yaml": CONFIG.format(api=api.url), "tools.yaml": TOOLS, "permissions.yaml": PERMISSIONS}
    with running(tmp_path, files, "--insecure") as gateway:
        yield gateway


@pytest.fixture
def cli(gate):
    def run(*words, answer=None):
        command = [COMMAND, "policy", "--admin-socket", gate.announced["socket"], *words]
        return nursery.run(
            command,
            cwd=gate.folder,
            input=answer,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    return run
