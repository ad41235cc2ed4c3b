"""OpenAPI documents into tool files: each is read back as the gateway reads it."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_gate.config.decode import Reading
from agent_gate.config.files.variables import Variables
from agent_gate.config.openapi.document import read_document
from agent_gate.config.openapi.toolfile import ToolFile, make, service_name
from agent_gate.config.services.settings import ToolDefinition
from agent_gate.config.services.tools import load_tools_file
from agent_gate.errors import ConfigError

PET = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "id": {"type": "integer", "readOnly": True},
        "name": {"type": "string"},
        "status": {"type": "string", "enum": ["available", "sold"], "default": "available"},
        "owner": {"$ref": "#/components/schemas/Owner"},
    },
}
OWNER = {
    "type": "object",
    "properties": {
        "mail": {"type": "string", "format": "email"},
        "pets": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}},
    },
}
ID = {"name": "petId", "in": "path", "required": True, "schema": {"type": "integer"}}
PETS: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Pet Store API", "version": "2"},
    "servers": [{"url": "https://{where}.example/v1", "variables": {"where": {"default": "pets"}}}],
    "paths": {
        "/pets": {
            "get": {
                "operationId": "listPets",
                "summary": "List all pets.",
                "tags": ["read"],
                "parameters": [
                    {
                        "name": "limit",
                        "in": "query",
                        "schema": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
                    },
                    {"name": "tag", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                ],
            },
            "post": {
                "operationId": "createPet",
                "description": "Adds a pet, see [the guide](https://pets.example/guide).",
                "parameters": [{"name": "dry-run", "in": "query", "schema": {"type": "boolean"}}],
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
                },
            },
        },
        "/pets/{petId}": {
            "parameters": [ID],
            "get": {
                "operationId": "getPet",
                "parameters": [{"name": "X-Locale", "in": "header", "schema": {"type": "string"}}],
            },
            "delete": {},
        },
        "/pets/{petId}/photo": {
            "parameters": [ID],
            "get": {"operationId": "photo", "responses": {"200": {"content": {"image/png": {}}}}},
            "put": {"requestBody": {"required": True, "content": {"image/png": {}}}},
        },
    },
    "components": {
        "schemas": {"Pet": PET, "Owner": OWNER},
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
    },
}


def made(document: Any, *only: str) -> ToolFile:
    text = document if isinstance(document, str) else json.dumps(document)
    read = read_document(text, "pets.json")
    return make(read, service_name(read), "tools/pets.yaml", only)


def tools_of(document: Any, folder: Path) -> dict[str, ToolDefinition]:
    """The tools as the gateway gets them from the file."""
    file = folder / "made.yaml"
    file.write_text(made(document).text)
    reading = Reading(Variables({}))
    found = load_tools_file(file, "pets", reading)
    return {tool.name: tool for tool in found}


def with_operation(
    operation: dict[str, Any], path: str = "/things", method: str = "get", **more: Any
) -> dict[str, Any]:
    return {
        "openapi": "3.0.0",
        "info": {"title": "T"},
        "servers": [{"url": "https://t.example"}],
        "paths": {path: {method: operation}},
        **more,
    }


def test_every_operation_becomes_a_tool_and_what_cannot_be_sent_is_left_out_with_the_reason() -> None:
    found = made(PETS)
    assert list(found.tools) == [
        "pet_store_list_pets",
        "pet_store_create_pet",
        "pet_store_get_pet",
        "pet_store_delete_pets_pet_id",
        "pet_store_photo",
    ]
    why = "its body is image/png, which no tool can send"
    assert found.left_out == {"PUT /pets/{petId}/photo": why}
    assert f"#   PUT /pets/{{petId}}/photo: {why}" in found.text


@pytest.mark.parametrize("kind", ["multipart/form-data", "application/octet-stream"])
def test_an_upload_is_left_out_also_where_nothing_says_that_it_is_required(kind: str) -> None:
    found = made(with_operation({"requestBody": {"content": {kind: {}}}}, method="post"))
    assert found.left_out == {"POST /things": f"its body is {kind}, which no tool can send"}


@pytest.mark.parametrize(
    ("kinds", "answer"),
    [
        (["application/json"], None),
        (["text/csv", "application/vnd.api+json"], None),
        (["text/plain", "image/png"], "text"),
        (["application/xml"], "text"),
        (["application/pdf"], "file"),
        ([], None),
    ],
)
def test_an_answer_is_taken_as_what_it_is_described_as(
    kinds: list[str], answer: str | None, tmp_path: Path
) -> None:
    responses = {"200": {"content": {kind: {} for kind in kinds}}, "404": {"content": {"text/html": {}}}}
    [tool] = tools_of(with_operation({"responses": responses}), tmp_path).values()
    assert (tool.response.type if tool.response is not None else None) == answer


def test_forms_and_plain_text_are_sent_as_such(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "required": ["to"],
        "properties": {"to": {"type": "string"}, "times": {"type": "integer"}, "more": {"type": "object"}},
    }
    form = {
        "requestBody": {
            "required": True,
            "content": {"application/x-www-form-urlencoded": {"schema": schema}},
        }
    }
    text = {"requestBody": {"required": True, "content": {"text/plain": {"schema": {"type": "string"}}}}}
    document = with_operation({"operationId": "form", **form}, method="post")
    document["paths"]["/text"] = {"put": {"operationId": "text", **text}}
    tools = tools_of(document, tmp_path)
    sent = tools["t_form"].request
    assert sent is not None
    assert sent.body_type == "form"
    assert set(tools["t_form"].args) == {"to", "times"}
    assert made(document).dropped == {"t_form": ["more in its form is an object"]}
    sent = tools["t_text"].request
    assert sent is not None
    assert (sent.body_type, sent.body) == ("text", "{body}")


def test_a_form_that_cannot_be_said_in_arguments_is_left_out() -> None:
    for properties in {"a b": {"type": "string"}}, {"must": {"type": "object"}}:
        schema = {"type": "object", "required": ["must"], "properties": properties}
        body = {"required": True, "content": {"application/x-www-form-urlencoded": {"schema": schema}}}
        assert not made(with_operation({"requestBody": body}, method="post")).tools


def test_parts_of_a_request_stand_where_the_document_says(tmp_path: Path) -> None:
    tools = tools_of(PETS, tmp_path)
    create = tools["pet_store_create_pet"]
    assert create.request is not None
    assert create.request.query == {"dry-run": "{dry-run}"}
    assert create.request.body_exclude == ("dry-run",)
    assert create.additional_args is False
    assert set(create.args) == {"dry-run", "name", "status", "owner"}
    get = tools["pet_store_get_pet"]
    assert get.request is not None
    assert get.request.headers == {"X-Locale": "{X-Locale}"}
    assert get.signature == "{petId}"
    assert get.args["petId"].required
    assert get.args["petId"].type == "integer"


def test_a_method_says_what_http_promises_of_it(tmp_path: Path) -> None:
    tools = tools_of(PETS, tmp_path)
    assert tools["pet_store_get_pet"].read_only
    assert tools["pet_store_delete_pets_pet_id"].destructive
    assert not tools["pet_store_delete_pets_pet_id"].read_only
    assert not tools["pet_store_create_pet"].read_only
    assert not tools["pet_store_create_pet"].idempotent
    assert tools["pet_store_get_pet"].idempotent
    assert tools["pet_store_delete_pets_pet_id"].idempotent
    [put] = tools_of(with_operation({}, method="put"), tmp_path).values()
    assert (put.idempotent, put.read_only, put.destructive) == (True, False, False)


def test_a_default_is_told_and_never_sent(tmp_path: Path) -> None:
    tools = tools_of(PETS, tmp_path)
    assert tools["pet_store_list_pets"].args["limit"].default is None
    assert tools["pet_store_list_pets"].args["limit"].description == "(1 to 100, default 20)"
    assert tools["pet_store_create_pet"].args["status"].default is None


def test_what_only_the_service_sets_is_no_argument_and_a_circle_of_schemas_ends(tmp_path: Path) -> None:
    args = tools_of(PETS, tmp_path)["pet_store_create_pet"].args
    assert "id" not in args
    owner = args["owner"]
    assert owner.properties is not None
    assert owner.properties["pets"].items is not None
    assert owner.properties["pets"].items.properties is not None


def test_descriptions_keep_their_words_and_lose_the_addresses_of_links(tmp_path: Path) -> None:
    tools = tools_of(PETS, tmp_path)
    assert tools["pet_store_create_pet"].description == "Adds a pet, see the guide."
    assert tools["pet_store_list_pets"].description == "List all pets"
    assert tools["pet_store_delete_pets_pet_id"].description == "DELETE /pets/{petId}"


def test_a_text_in_the_body_is_free_and_one_in_the_path_is_not(tmp_path: Path) -> None:
    free = tools_of(PETS, tmp_path)["pet_store_create_pet"].args
    assert free["name"].text
    assert not free["status"].text
    document = with_operation(
        {"parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]},
        "/things/{id}",
    )
    [tool] = tools_of(document, tmp_path).values()
    assert not tool.args["id"].text


def test_a_credential_is_the_gateways_and_never_an_argument(tmp_path: Path) -> None:
    key = {"name": "x-key", "in": "header", "required": True, "schema": {"type": "string"}}
    document = deepcopy(PETS)
    document["paths"]["/pets"]["get"]["parameters"].append(key)
    assert "x-key" not in tools_of(document, tmp_path)["pet_store_list_pets"].args
    assert made(document).service == {
        "url": "https://pets.example/v1",
        "auth": {"type": "header", "header_name": "X-Key", "token": "${PET_STORE_TOKEN}"},
        "tools": "tools/pets.yaml",
        "health": {"path": "/pets"},
    }


@pytest.mark.parametrize(
    ("scheme", "auth"),
    [
        ({"type": "http", "scheme": "bearer"}, {"type": "bearer", "token": "${T_TOKEN}"}),
        ({"type": "oauth2", "flows": {}}, {"type": "bearer", "token": "${T_TOKEN}"}),
        (
            {"type": "http", "scheme": "Basic"},
            {"type": "basic", "username": "${T_USER}", "password": "${T_PASSWORD}"},
        ),
        (
            {"type": "apiKey", "in": "query", "name": "k"},
            {"type": "query", "query_param": "k", "token": "${T_TOKEN}"},
        ),
        ({"type": "apiKey", "in": "cookie", "name": "k"}, None),
        ({"type": "mutualTLS"}, None),
    ],
)
def test_the_service_proves_itself_as_the_document_says(
    scheme: dict[str, Any], auth: dict[str, str] | None
) -> None:
    document = with_operation({}, components={"securitySchemes": {"one": scheme}})
    assert made(document).service.get("auth") == auth


def test_a_document_of_version_2_says_the_same_in_its_own_words(tmp_path: Path) -> None:
    body = {"name": "thing", "in": "body", "required": True, "schema": {"$ref": "#/definitions/Thing"}}
    document = {
        "swagger": "2.0",
        "info": {"title": "Old"},
        "host": "old.example",
        "basePath": "/v2/",
        "schemes": ["http", "https"],
        "paths": {
            "/things/{id}": {
                "parameters": [{"name": "id", "in": "path", "required": True, "type": "integer"}],
                "put": {"operationId": "putThing", "parameters": [body]},
                "get": {
                    "operationId": "getThing",
                    "parameters": [
                        {"name": "fields", "in": "query", "type": "array", "items": {"type": "string"}},
                        {
                            "name": "tags",
                            "in": "query",
                            "type": "array",
                            "items": {"type": "string"},
                            "collectionFormat": "multi",
                        },
                    ],
                },
                "post": {
                    "operationId": "sendThing",
                    "parameters": [{"name": "f", "in": "formData", "required": True, "type": "integer"}],
                },
                "patch": {"parameters": [{"name": "f", "in": "formData", "type": "file"}]},
                "delete": {"operationId": "endThing", "produces": ["application/xml"]},
            }
        },
        "definitions": {"Thing": {"properties": {"size": {"type": "number"}}}},
    }
    tools = tools_of(document, tmp_path)
    assert set(tools) == {"old_put_thing", "old_get_thing", "old_send_thing", "old_end_thing"}
    sent, ended = tools["old_send_thing"], tools["old_end_thing"]
    assert sent.request is not None
    assert (sent.request.body_type, sent.args["f"].type, sent.args["f"].required) == ("form", "integer", True)
    assert ended.response is not None
    assert ended.response.type == "text"
    assert tools["old_put_thing"].args["size"].type == "number"
    assert tools["old_get_thing"].args["fields"].type == "string"
    assert tools["old_get_thing"].args["fields"].description == "(several are separated by commas)"
    assert tools["old_get_thing"].args["tags"].type == "array"
    found = made(document)
    assert found.service["url"] == "https://old.example/v2"
    assert found.left_out == {"PATCH /things/{id}": "its body is an upload, which no tool can send"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": ["null", "integer"]}, {"type": "integer"}),
        ({"anyOf": [{"type": "null"}, {"type": "boolean"}]}, {"type": "boolean"}),
        ({"oneOf": [{"type": "string", "enum": ["a"]}, {"const": "b"}]}, {"enum": ("a", "b")}),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, {"type": "integer"}),
        ({"enum": [1, 2]}, {"type": "integer", "enum": (1, 2)}),
        ({"type": "string", "pattern": "^[a-z]+$"}, {"validate": "^[a-z]+$", "text": False}),
        ({"type": "string", "pattern": "(?=a)b"}, {"validate": None, "text": True}),
        ({"type": "string", "enum": ["a*", "b"]}, {"enum": ("a*", "b"), "text": True}),
        ({"type": "string", "enum": ["${HOME}"]}, {"enum": None}),
        ({"type": "string", "format": "password"}, {"secret": True}),
        ({"type": "string", "format": "uuid"}, {"description": "(uuid)", "text": False}),
        ({"type": "integer", "minimum": 0}, {"description": "(at least 0)"}),
        ({"type": "file"}, {"type": "string"}),
        (
            {"properties": {f"part{number}": {} for number in range(300)}},
            {"type": "object", "properties": None},
        ),
        ({}, {"type": "string"}),
        ({"additionalProperties": {"type": "string"}}, {"type": "object", "properties": None, "text": True}),
    ],
)
def test_a_schema_is_said_as_far_as_a_tool_file_can(
    schema: Any, expected: dict[str, Any], tmp_path: Path
) -> None:
    body = {"content": {"application/json": {"schema": {"type": "object", "properties": {"it": schema}}}}}
    [tool] = tools_of(with_operation({"requestBody": body}, method="post"), tmp_path).values()
    assert {key: getattr(tool.args["it"], key) for key in expected} == expected


def test_all_parts_of_a_composed_schema_count(tmp_path: Path) -> None:
    base = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}
    schema = {
        "allOf": [
            {"$ref": "#/components/schemas/Base"},
            {"properties": {"b": {"type": "boolean"}}, "required": ["b"]},
        ]
    }
    body = {"content": {"application/json": {"schema": schema}}}
    document = with_operation({"requestBody": body}, method="post", components={"schemas": {"Base": base}})
    [tool] = tools_of(document, tmp_path).values()
    assert {name: arg.required for name, arg in tool.args.items()} == {"a": True, "b": True}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "integer"}},
        {"type": "object", "properties": {"@type": {"type": "string"}}},
        {"type": "object", "properties": {"id": {"type": "string"}}},
        {"type": "object"},
    ],
    ids=["a list", "a name that clients refuse", "a name that the path has", "any object"],
)
def test_a_body_that_is_no_plain_object_is_one_argument(schema: Any, tmp_path: Path) -> None:
    parameters = [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}]
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    document = with_operation({"parameters": parameters, "requestBody": body}, "/things/{id}", "post")
    [tool] = tools_of(document, tmp_path).values()
    assert tool.request is not None
    assert tool.request.body == "{body}"
    assert tool.args["body"].required
    assert set(tool.args) == {"id", "body"}


@pytest.mark.parametrize(
    ("parameter", "why"),
    [
        ({"name": "q", "in": "query", "schema": {"type": "object"}}, "q in its query is an object"),
        ({"name": "s", "in": "cookie", "schema": {"type": "string"}}, "s stands in a cookie"),
        ({"name": "x y", "in": "header", "schema": {"type": "string"}}, "x y cannot stand in a header"),
    ],
)
def test_what_cannot_be_sent_is_dropped_where_it_is_optional_and_else_leaves_the_operation_out(
    parameter: dict[str, Any], why: str
) -> None:
    assert list(made(with_operation({"parameters": [parameter]})).dropped.values()) == [[why]]
    needed = made(with_operation({"parameters": [{**parameter, "required": True}]}))
    assert list(needed.left_out.values()) == [why]
    assert not needed.tools


def test_names_that_clients_refuse_are_sent_as_the_document_has_them(tmp_path: Path) -> None:
    parameters = [
        {"name": "filter[name]", "in": "query", "schema": {"type": "string"}},
        {"name": "pet id", "in": "path", "required": True, "schema": {"type": "integer"}},
    ]
    [tool] = tools_of(with_operation({"parameters": parameters}, "/pets/{pet id}"), tmp_path).values()
    assert tool.request is not None
    assert tool.request.query == {"filter[name]": "{filter_name}"}
    assert tool.request.path == "/pets/{pet_id}"


def test_what_frameworks_add_by_themselves_is_not_repeated(tmp_path: Path) -> None:
    parameters = [
        {
            "name": "item_id",
            "in": "path",
            "required": True,
            "schema": {"type": "integer", "title": "Item Id"},
        },
        {"name": "deep", "in": "query", "schema": {"type": "boolean", "title": "Deep", "default": False}},
    ]
    operation = {"operationId": "read_item_items__item_id__get", "parameters": parameters}
    [tool] = tools_of(with_operation(operation, "/items/{item_id}"), tmp_path).values()
    assert tool.name == "t_read_item"
    assert [arg.description for arg in tool.args.values()] == ["", "Deep (default false)"]


def test_two_operations_of_one_name_are_two_tools() -> None:
    same = {"operationId": "do"}
    document = with_operation(same)
    document["paths"]["/other"] = {"get": same}
    assert list(made(document).tools) == ["t_do", "t_do_2"]


@pytest.mark.parametrize("pattern", ["GET /pets", "/pets", "listPets", "read", "*listP*"])
def test_patterns_choose_operations_by_method_path_name_and_tag(pattern: str) -> None:
    assert "pet_store_list_pets" in made(PETS, pattern).tools
    assert "pet_store_get_pet" not in made(PETS, pattern).tools


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("other.json#/Pet", "it refers to another document, other.json#/Pet"),
        ("#/nowhere", "it refers to #/nowhere, which is not there"),
        ("#/paths/~1things/get/requestBody", "its references go round in a circle"),
    ],
)
def test_a_reference_that_leads_nowhere_costs_only_its_operation(reference: str, why: str) -> None:
    document = with_operation({"requestBody": {"$ref": reference}})
    document["paths"]["/well"] = {"get": {}}
    found = made(document)
    assert found.left_out == {"GET /things": why}
    assert len(found.tools) == 1


def test_a_path_that_leads_nowhere_costs_only_itself() -> None:
    document = with_operation({})
    document["paths"]["/gone"] = {"$ref": "paths.json#/gone"}
    document["components"] = {"securitySchemes": {"gone": {"$ref": "#/nowhere"}}}
    found = made(document)
    assert found.left_out == {"/gone": "it refers to another document, paths.json#/gone"}
    assert len(found.tools) == 1
    assert "auth" not in found.service


def test_a_reference_may_go_through_a_list(tmp_path: Path) -> None:
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Two/allOf/1"}}}}
    two = {"allOf": [{}, {"type": "object", "properties": {"x": {"type": "integer"}}}]}
    document = with_operation({"requestBody": body}, method="post", components={"schemas": {"Two": two}})
    [tool] = tools_of(document, tmp_path).values()
    assert tool.args["x"].type == "integer"


def test_a_schema_too_large_for_an_agent_is_cut_short(tmp_path: Path) -> None:
    wide: dict[str, Any] = {
        "type": "object",
        "properties": {f"p{i}": {"$ref": "#/components/schemas/W"} for i in range(20)},
    }
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/W"}}}}
    document = with_operation({"requestBody": body}, method="post", components={"schemas": {"W": wide}})
    assert made(document).text.count("type: object") < 500
    assert tools_of(document, tmp_path)


def test_yaml_is_read_like_json(tmp_path: Path) -> None:
    text = "openapi: 3.0.3\ninfo: {title: Y}\nservers: [{url: 'https://y.example'}]\npaths:\n  /a:\n    get: {responses: {200: {description: ok}}}\n"
    assert list(made(text).tools) == ["y_get_a"]


def test_a_large_document_must_be_json() -> None:
    large = f"openapi: 3.0.0\ninfo: {{title: {'x' * (1 << 20)}}}\n"
    with pytest.raises(ConfigError, match=r"pets\.json: a document of this size must be JSON"):
        read_document(large, "pets.json")


@pytest.mark.parametrize("text", ["[]", "null", "{}", '{"openapi": "4.0"}', "just words"])
def test_anything_else_is_no_document(text: str) -> None:
    with pytest.raises(ConfigError, match=r"pets\.json: this is no OpenAPI document"):
        read_document(text, "pets.json")


def paths_into(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        for key, item in value.items():
            found += paths_into(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            found += paths_into(item, (*path, i))
    return found


PLACES = paths_into(PETS)
TEXTS = st.text(st.sampled_from("ab{}$*?[](),:#\"'\\ \n\t\x00\x85é/%&-|^"), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            TEXTS | st.sampled_from(["type", "$ref", "enum", "properties", "items"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.sampled_from(PLACES), VALUES), min_size=1, max_size=4))
def test_whatever_a_document_says_its_file_can_be_read(
    changes: list[tuple[tuple[Any, ...], Any]], tmp_path: Path
) -> None:
    document = deepcopy(PETS)
    for place, value in changes:
        holder = document
        try:
            for step in place[:-1]:
                holder = holder[step]
            holder[place[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue
    try:
        found = made(document)
    except ConfigError:
        return
    if found.tools:
        assert set(tools_of(document, tmp_path)) == set(found.tools)
