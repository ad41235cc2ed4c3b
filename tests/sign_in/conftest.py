import pytest
from tests.gateway import Api, running

CONFIG = """
gateway: {{port: {port}}}
admin: {{port: 0, socket: ./data/admin.sock}}
auth: {{sign_in: true, client_documents: false}}
agents:
  pi: {{token: token-of-the-first-agent-in-tests}}
services:
  home: {{url: "{api}", tools: home.yaml}}
  notes: {{url: "{api}", tools: notes.yaml}}
storage: {{type: sqlite, path: ./data/gate.db}}
permissions: permissions.yaml
{more}
"""
TOOLS = """
tools:
  {name}:
    args: {{thing: {{required: false}}}}
    request: {{method: POST, path: "/{name}"}}
"""
PERMISSIONS = 'rules: [{pattern: "home_*", action: allow}]\ndefaults: [{pattern: "*", action: ask}]\n'


def files(api, port=0, more="", permissions=PERMISSIONS):
    return {
        "config.yaml": CONFIG.format(api=api.url, port=port, more=more),
        "permissions.yaml": permissions,
        "home.yaml": TOOLS.format(name="home_act"),
        "notes.yaml": TOOLS.format(name="notes_write"),
    }


@pytest.fixture(scope="session")
def api():
    with Api() as server:
        yield server


@pytest.fixture(scope="module")
def gate(tmp_path_factory, api):
    """One gateway for a module; what a test leaves open is denied after it."""
    with running(tmp_path_factory.mktemp("gate"), files(api), "--insecure") as gateway:
        yield gateway


@pytest.fixture(autouse=True)
def _nothing_left_open(request):
    yield
    if "gate" in request.fixturenames:
        gateway = request.getfixturevalue("gate")
        for asked in gateway.admin.get("/api/approvals"):
            gateway.admin.request("POST", f"/api/approvals/{asked['id']}", {"verdict": "deny"})
