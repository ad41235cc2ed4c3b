"""`agent-gate openapi` as a person runs it, and the gateway with the tools that it made."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.gateway import OTHER_TOKEN, TOKEN, Api, Gateway, running
from tests.wsgate import files

from agent_gate.cli.commands.openapi import command
from agent_gate.config.load import load

DOCUMENT = {
    "openapi": "3.0.0",
    "info": {"title": "Notes"},
    "servers": [{"url": "/v1"}],
    "paths": {
        "/notes": {
            "post": {
                "operationId": "addNote",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "required": ["text"],
                                "properties": {"text": {"type": "string"}, "stars": {"type": "integer"}},
                            }
                        }
                    },
                },
            }
        },
        "/notes/{id}": {
            "get": {
                "operationId": "getNote",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
                    {"name": "with", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                ],
            }
        },
    },
}
OUTER = """
gateway: {{id: outer, port: 0}}
admin: {{port: 0, socket: ./data/admin.sock}}
agents: {{first: {{token: {token}}}}}
permissions: permissions.yaml
"""
ALLOW = 'defaults: [{pattern: "*", action: allow}]\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.json").write_text(json.dumps(DOCUMENT))
    return tmp_path


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(command, list(arguments))
    assert result.exit_code == code, result.output
    return result


def test_the_tools_it_makes_reach_the_service_as_the_document_says(folder: Path) -> None:
    with Api() as api:
        api.replies["/openapi.json"] = (200, {}, json.dumps(DOCUMENT).encode())
        (folder / "config.yaml").write_text(OUTER.format(token=TOKEN))
        (folder / "permissions.yaml").write_text(ALLOW)
        run(f"{api.url}/openapi.json")
        api.requests.clear()
        with running(folder, {}, "--insecure") as gateway:
            note = {"text": "What (if) *any*, [of] it?", "stars": 3}
            assert gateway.call("notes_add_note", note).status == 200
            assert gateway.call("notes_get_note", {"id": "a/b", "with": ["x y", "z"]}).status == 200
            refused = gateway.call("notes_add_note", {**note, "admin": True})
        sent = [(one["method"], one["path"], one["body"]) for one in api.requests if one["path"] != "/v1/"]
    assert [(method, path) for method, path, _ in sent] == [
        ("POST", "/v1/notes"),
        ("GET", "/v1/notes/a%2Fb?with=x%20y&with=z"),
    ]
    assert json.loads(sent[0][2]) == note
    assert refused.status == 400
    assert "admin" in refused.json["error"]["message"]


def test_the_document_of_another_gateway_becomes_tools_of_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner_folder, outer_folder = tmp_path / "inner", tmp_path / "outer"
    inner_folder.mkdir(), outer_folder.mkdir()
    monkeypatch.chdir(outer_folder)
    with Api() as api, running(inner_folder, files(api), "--insecure") as inner:
        Path("inner.json").write_bytes(inner.request("GET", "/openapi.json").body)
        Path("config.yaml").write_text(OUTER.format(token=OTHER_TOKEN))
        Path("permissions.yaml").write_text(ALLOW)
        run("inner.json", "--service", "inner", "--url", inner.url, "--only", "*get_state*")
        outer = Gateway(outer_folder, "--insecure", env={"INNER_TOKEN": TOKEN}).start()
        try:
            names = [
                tool["name"] for tool in outer.request("GET", "/api/tools", token=OTHER_TOKEN).json["tools"]
            ]
            [state] = [name for name in names if name.endswith("get_state")]
            answer = outer.call(state, {"entity_id": "sensor.temp"}, token=OTHER_TOKEN)
        finally:
            outer.stop()
        assert api.requests[-1]["path"] == "/states/sensor.temp"
    assert answer.status == 200, answer.body


def test_it_says_what_it_made_what_it_left_out_and_what_is_to_do(folder: Path) -> None:
    document = {**DOCUMENT, "components": {"securitySchemes": {"b": {"type": "http", "scheme": "bearer"}}}}
    document["paths"] = {
        **DOCUMENT["paths"],
        "/file": {"put": {"requestBody": {"required": True, "content": {"image/png": {}}}}},
    }
    Path("notes.json").write_text(json.dumps(document))
    result = run("notes.json", "--url", "https://notes.example/v1")
    assert "Left out: PUT /file: its body is image/png, which no tool can send" in result.stderr
    assert "Wrote 2 tools to tools/notes.yaml" in result.stdout
    assert "Set NOTES_TOKEN in .env; the gateway does not start without" in result.stdout
    loaded = load(Path("config.yaml"), env={"NOTES_TOKEN": "a-token-of-the-notes"})
    service = loaded.settings.sources["services"]["notes"]
    assert (service.url, service.auth.token, len(service.tools)) == (
        "https://notes.example/v1",
        "a-token-of-the-notes",
        2,
    )


def test_a_file_that_a_person_may_have_worked_on_is_replaced_only_with_force(folder: Path) -> None:
    run("notes.json", "--url", "https://notes.example")
    file, config = Path("tools/notes.yaml"), Path("config.yaml")
    file.write_text(worked_on := "# mine\ntools: {}\n")
    before = config.read_text()
    again = run("notes.json", "--url", "https://notes.example", code=8)
    assert "services.notes is already there; make its tools anew with --force" in again.stderr
    assert file.read_text() == worked_on
    run("notes.json", "--url", "https://notes.example", "--force")
    assert file.read_text() != worked_on
    assert config.read_text() == before


def test_a_tool_file_alone_is_not_overwritten_and_the_configuration_stays(folder: Path) -> None:
    Path("tools").mkdir()
    Path("tools/notes.yaml").write_text("# mine\n")
    result = run("notes.json", "--url", "https://notes.example", code=8)
    assert "tools/notes.yaml: the file is already there; pass --force to replace it" in result.stderr
    assert not Path("config.yaml").exists()


def test_a_dry_run_writes_nothing(folder: Path) -> None:
    result = run("notes.json", "--url", "https://notes.example", "--dry-run")
    assert "Would write 2 tools" in result.stdout
    assert "+services:" in result.stdout
    assert sorted(path.name for path in folder.iterdir()) == ["notes.json"]


def test_as_json_it_says_the_same_to_a_program(folder: Path) -> None:
    found = json.loads(run("notes.json", "--url", "https://notes.example", "--json").stdout)
    assert found["tools"] == ["notes_add_note", "notes_get_note"]
    assert found["written"]
    assert found["service"] == "notes"
    assert found["variables"] == []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("missing.json",), 8, "missing.json: the file cannot be read"),
        (("notes.json",), 8, "the document does not say where the service is; pass --url"),
        (("notes.json", "--url", "https://x.example", "--only", "nothing"), 8, "no pattern names one"),
        (("notes.json", "--url", "https://x.example", "--service", "No Name"), 2, "small letters"),
        (("http://127.0.0.1:1/openapi.json",), 5, "cannot be reached: Connection refused"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_written(
    folder: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    assert words in run(*arguments, code=code).stderr
    assert sorted(path.name for path in folder.iterdir()) == ["notes.json"]


def test_where_nothing_can_become_a_tool_it_says_why(folder: Path) -> None:
    upload = {"post": {"requestBody": {"content": {"multipart/form-data": {"schema": {}}}}}}
    Path("notes.json").write_text(json.dumps({**DOCUMENT, "paths": {"/photo": upload}}))
    said = run("notes.json", "--url", "https://x.example", code=8).stderr
    assert "no operation can become a tool: POST /photo: its body is multipart/form-data" in said


@pytest.mark.parametrize("url", ["https://me:secret@notes.example", "https://notes.example/?key=1"])
def test_a_document_never_makes_a_configuration_that_does_not_load(folder: Path, url: str) -> None:
    Path("notes.json").write_text(json.dumps({**DOCUMENT, "servers": [{"url": url}]}))
    assert "url" in run("notes.json", code=8).stderr
    assert sorted(path.name for path in folder.iterdir()) == ["notes.json"]


def test_a_document_moves_no_cursor_and_writes_no_line_of_its_own(folder: Path) -> None:
    hostile = "/x\x1b[2J\n\u202e{id}"
    keys = {"k": {"type": "apiKey", "in": "header", "name": "X-Key\r\nEvil: 1"}}
    document = {**DOCUMENT, "paths": {**DOCUMENT["paths"], hostile: {"get": {}}}}
    document["components"] = {"securitySchemes": keys}
    Path("notes.json").write_text(json.dumps(document))
    result = run("notes.json", "--url", "https://notes.example")
    assert "Left out: GET /x\\u001b[2J\\n\\u202e{id}: its path" in result.stderr
    assert not set(result.output) & {"\x1b", "\u202e"}
    assert "Evil" not in Path("config.yaml").read_text()
