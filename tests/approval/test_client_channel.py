"""The agent's own client answers only where a rule says `via: client`, in both eras, and the record says so."""

import http.client
import json
from urllib.parse import urlsplit

import pytest
from tests.approval.conftest import outcome, reached
from tests.gateway import TOKEN
from tests.waiting import PATIENCE, wait_until

MODERN, NEWEST = "2026-07-28", "2025-11-25"
VIA_CLIENT = 'rules: [{pattern: "ha_*", action: ask, via: client}, {pattern: "mail_*", action: ask}]\n'
ARGUMENTS = {"domain": "light", "service": "turn_on", "entity_id": "light.bedroom"}


class Client:
    """MCP by hand over one gateway, so that a test decides what the client's user says."""

    def __init__(self, gate, token=TOKEN):
        parts, self.token = urlsplit(gate.url), token
        self.address = (parts.hostname, parts.port)
        self.session, self.connections = None, []

    def close(self):
        for connection in self.connections:
            connection.close()

    def post(self, message, **headers):
        connection = http.client.HTTPConnection(*self.address, timeout=PATIENCE)
        self.connections.append(connection)
        given = {"Authorization": f"Bearer {self.token}", "Accept": "application/json, text/event-stream"}
        given |= {"Mcp-Session-Id": self.session} if self.session else {}
        connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", **message}), given | headers)
        return connection.getresponse()

    def modern(self, params, capabilities):
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": params["name"]}
        message = {"id": 1, "method": "tools/call", "params": params | {"_meta": meta}}
        return json.loads(self.post(message, **headers).read())

    def initialize(self, capabilities):
        params = {
            "protocolVersion": NEWEST,
            "capabilities": capabilities,
            "clientInfo": {"name": "t", "version": "1"},
        }
        response = self.post({"id": 0, "method": "initialize", "params": params})
        response.read()
        self.session = response.headers["mcp-session-id"]
        self.post({"method": "notifications/initialized"}).read()


@pytest.fixture
def client_of():
    made = []

    def make(gate):
        made.append(Client(gate))
        return made[-1]

    yield make
    for client in made:
        client.close()


def events(response):
    with response:
        while line := response.readline():
            if line.startswith(b"data: ") and line.strip() != b"data:":
                yield json.loads(line[6:])


def answered(gate):
    rows = (
        gate.admin.get("/api/calls?state=approved")["rows"]
        + gate.admin.get("/api/calls?state=denied")["rows"]
    )
    return [(row["body"]["by"], row["body"]["channel"]) for row in rows]


def test_a_handshake_client_is_asked_while_its_request_runs(start, api, client_of):
    gate = start(permissions=VIA_CLIENT)
    client = client_of(gate)
    client.initialize({"elicitation": {}})
    call = {"id": 5, "method": "tools/call", "params": {"name": "ha_call_service", "arguments": ARGUMENTS}}
    stream = events(client.post(call))
    asked = next(stream)
    assert asked["method"] == "elicitation/create"
    assert "ha_call_service(light.turn_on, light.bedroom)" in asked["params"]["message"]
    client.post({"id": asked["id"], "result": {"action": "accept", "content": {"run": True}}}).read()
    assert next(stream)["result"].get("isError") is not True
    stream.close()
    assert answered(gate) == [("pi", "client")]
    assert len(reached(api)) == 1
    assert gate.admin.get("/api/grants") == []


def test_a_modern_client_brings_the_answer_back(start, api, client_of):
    gate = start(permissions=VIA_CLIENT)
    client = client_of(gate)
    params = {"name": "ha_call_service", "arguments": ARGUMENTS}
    first = client.modern(params, {"elicitation": {}})["result"]
    assert first["resultType"] == "input_required"
    assert first["inputRequests"]["approval"]["method"] == "elicitation/create"
    said = {"approval": {"action": "accept", "content": {"run": True}}}
    again = params | {"requestState": first["requestState"], "inputResponses": said}
    assert client.modern(again, {"elicitation": {}})["result"]["resultType"] == "complete"
    assert answered(gate) == [("pi", "client")]
    assert len(reached(api)) == 1
    client.modern(again, {"elicitation": {}})
    assert len(reached(api)) == 1


def test_a_client_that_declines_denies(start, api, client_of):
    gate = start(permissions=VIA_CLIENT)
    client = client_of(gate)
    params = {"name": "ha_call_service", "arguments": ARGUMENTS}
    for said in (
        {"action": "decline"},
        {"action": "accept", "content": {"run": False}},
        {"action": "accept"},
    ):
        first = client.modern(params, {"elicitation": {}})["result"]
        again = params | {"requestState": first["requestState"], "inputResponses": {"approval": said}}
        assert client.modern(again, {"elicitation": {}})["result"]["isError"] is True
    assert reached(api) == []


def test_without_the_rule_an_agent_cannot_answer_its_own_question(start, api, client_of):
    """The agent sends what would be an answer; nobody asked it, so nothing happens."""
    gate = start(permissions=VIA_CLIENT + "  \n", env={"LOG_LEVEL": "debug"})
    (gate.folder / "config.yaml").write_text(
        (gate.folder / "config.yaml").read_text() + "limits: {hold: 0.2}\n"
    )
    gate.stop()
    gate.start()
    client = client_of(gate)
    params = {"name": "mail_send", "arguments": {"to": "a@b", "text": "hi"}}
    first = client.modern(params, {"elicitation": {}})["result"]
    assert "inputRequests" not in first
    said = {"approval": {"action": "accept", "content": {"run": True}}}
    again = params | {"requestState": first["requestState"], "inputResponses": said}
    assert client.modern(again, {"elicitation": {}})["result"]["resultType"] == "input_required"
    [approval] = gate.admin.get("/api/approvals")
    assert gate.story(approval["call"]) == ["pending"]
    assert reached(api) == []


def test_a_client_without_forms_leaves_the_question_to_people(start, api):
    gate = start(permissions=VIA_CLIENT)
    reply = gate.call("ha_call_service", ARGUMENTS, wait=0)
    assert reply.status == 202
    wait_until(lambda: gate.admin.get("/api/approvals"))
    gate.answer()
    assert outcome(gate, reply.json["call"]).status == 200
    assert answered(gate) == [("operator", "terminal")]
