"""The JSON Schemas that editors use."""

from pathlib import Path

import jsonschema_rs
import pytest

from agent_gate.config.files.yamlfile import parse_yaml, read_yaml
from agent_gate.config.schema import SCHEMAS, references

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FILES = [
    ("config", ROOT / "config.example.yaml"),
    ("config", HERE / "example/config.yaml"),
    ("permissions", ROOT / "permissions.example.yaml"),
    ("permissions", HERE / "example/permissions.yaml"),
    ("tools", ROOT / "tools/homeassistant.yaml"),
    ("tools", HERE / "example/tools/homeassistant.yaml"),
]


def problems(kind: str, value: object) -> list[str]:
    return [error.message for error in jsonschema_rs.validator_for(SCHEMAS[kind]()).iter_errors(value)]


@pytest.mark.parametrize(("kind", "file"), FILES)
def test_the_examples_fit_their_schema(kind, file):
    assert problems(kind, read_yaml(file).plain()) == []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("config", "gatewey: {}"),
        ("config", "gateway: {prot: 1}"),
        ("config", "agents: {a: {tokn: x}}"),
        ("config", "services: {a: {url: x, tools: {t: {requets: {}}}}}"),
        ("config", "servers: {a: {comand: x}}"),
        ("permissions", "rules: [{pattern: a, action: ask, patern: b}]"),
        ("permissions", "rules: [{pattern: a, action: permit}]"),
        ("tools", "tools: {t: {args: {a: {typ: string}}}}"),
        ("tools", "toolz: {}"),
    ],
)
def test_a_mistake_does_not_fit(kind, text):
    assert problems(kind, parse_yaml(text, "x").plain())


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_property_is_described_and_every_reference_resolves(kind):
    schema = SCHEMAS[kind]()
    assert set(references(schema)) <= set(schema["$defs"])
    undescribed = [
        f"{name}.{key}"
        for name, definition in [("", schema), *schema["$defs"].items()]
        for key, value in definition["properties"].items()
        if kind != "tools" and not value.get("description")
    ]
    assert undescribed == []


def test_a_variable_may_stand_for_a_number():
    assert problems("config", {"gateway": {"port": "${PORT:-8443}"}}) == []
    assert problems("config", {"gateway": {"port": "high"}})
