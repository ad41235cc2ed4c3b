"""The OpenAPI document says what the REST surface does, as a tool that we did not write finds out."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from tests.gateway import TOKEN, Api, in_front_of

CONFIG = """
gateway: {{id: t, port: 0}}
admin: {{port: 0, socket: ./data/admin.sock}}
agents: {{a: {{token: {token}, rate_limit: {{max_requests_per_minute: 0}}}}}}
services: {{home: {{url: "{url}", tools: tools.yaml}}}}
permissions: permissions.yaml
"""
TOOLS = """
tools:
  get_state: {args: {entity_id: {required: true, validate: "^[a-z_]{1,20}$"}}, signature: "{entity_id}", request: {method: GET, path: "/s/{entity_id}"}}
  many: {args: {days: {type: integer}, on: {type: boolean}, mode: {enum: [a, b]}, tags: {type: array, items: {type: string}}}, request: {method: POST, path: /many}}
  asked: {args: {what: {required: true, text: true}}, request: {method: POST, path: /asked}}
  never: {request: {method: DELETE, path: /never}}
"""
PERMISSIONS = 'rules: [{pattern: "get_state(*)", action: allow}, {pattern: "many", action: allow}, {pattern: "never", action: deny}]'


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    folder = tmp_path_factory.mktemp("openapi")
    with Api() as api, in_front_of(api, folder, CONFIG, TOOLS, PERMISSIONS) as started:
        yield started


def test_every_operation_answers_as_described_whatever_is_sent(gateway):
    """Schemathesis makes good and bad requests from the document and finds nothing to complain about."""
    command = [
        *(str(Path(sys.executable).with_name("schemathesis")), "run", f"{gateway.url}/openapi.json"),
        *("--header", f"Authorization: Bearer {TOKEN}", "--header", "Prefer: wait=0"),
        *("--max-examples", "30", "--generation-deterministic", "--no-color", "--workers", "1"),
        # On purpose: guessing a token gets slow (429), pattern characters are refused beyond the schema, describing
        # a tool is not an operation of its own, and following links would really wait for a person.
        *(
            "--exclude-checks",
            "ignored_auth,positive_data_acceptance,unsupported_method,allow_header_conformance",
            "--phases",
            "examples,coverage,fuzzing",
        ),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=gateway.folder)
    assert done.returncode == 0, done.stdout[-16000:]
    assert "Tested: 6" in done.stdout


def test_there_is_one_operation_for_each_visible_tool(gateway):
    document = gateway.request("GET", "/openapi.json").json
    tools = {tool["name"] for tool in gateway.request("GET", "/api/tools").json["tools"]}
    assert tools == {"get_state", "many", "asked"}
    assert {path.rpartition("/")[2] for path in document["paths"] if path.startswith("/api/tools/")} == tools
    assert document["openapi"] == "3.1.0"


def test_a_tools_schema_stands_in_the_document_as_it_is(gateway):
    document = gateway.request("GET", "/openapi.json").json
    body = document["paths"]["/api/tools/many"]["post"]["requestBody"]["content"]["application/json"][
        "schema"
    ]
    jsonschema.Draft202012Validator.check_schema(body)
    assert body["properties"]["tags"] == {"type": "array", "items": {"type": "string"}}
    assert json.dumps(document) == json.dumps(gateway.request("GET", "/openapi.json").json)


def test_a_tool_with_the_name_of_another_operation_keeps_it_and_all_names_differ(tmp_path):
    tools = "tools: {list_tools: {request: {method: GET, path: /a}}, get_call: {request: {method: GET, path: /b}}}"
    with Api() as api, in_front_of(api, tmp_path, CONFIG, tools, "rules: []") as gateway:
        paths = gateway.request("GET", "/openapi.json").json["paths"]
    operations = [
        one["operationId"] for path in paths.values() for one in path.values() if "operationId" in one
    ]
    assert len(operations) == len(set(operations)) == 5
    assert paths["/api/tools/list_tools"]["post"]["operationId"] == "list_tools"
