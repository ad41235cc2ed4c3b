"""Against contextweaver itself, for all that the contract and it agree on."""

import sys
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.servers import reference as installed

from agent_gate.core.ids import format_tool_id, hash8, parse_tool_id, tool_id
from agent_gate.core.tool import Definition
from agent_gate.errors import CatalogError

sys.path.append(str(installed()))
reference = import_module("contextweaver.routing.tool_id")
adapter = import_module("contextweaver.adapters.mcp")
refusal = import_module("contextweaver.exceptions").ContextWeaverError

names = st.text("abcXYZ019_.-/", min_size=1, max_size=30)
schemas = st.fixed_dictionaries(
    {"type": st.just("object")},
    optional={
        "properties": st.dictionaries(st.text(max_size=8), st.just({"type": "string"}), max_size=4),
        "required": st.lists(st.text(max_size=8), max_size=4),
    },
)
near_ids = st.from_regex(
    r"[a-z_0-9-]{1,6}:[A-Za-z_.0-9-]{1,8}(@[0-9a-z.+]{1,6})?(#[0-9a-fg]{7,9})?", fullmatch=True
)


@given(names, st.none() | schemas)
def test_hashes_agree(name, schema):
    assert hash8(name, schema) == reference.compute_hash8(name, schema)


@given(near_ids | st.text(":@#ab1.-_", max_size=20))
def test_ids_parse_alike(text):
    try:
        expected = reference.parse_tool_id(text)
    except refusal:
        with pytest.raises(CatalogError):
            parse_tool_id(text)
        return
    parts = parse_tool_id(text)
    assert tuple(parts) == (expected.namespace, expected.name, expected.version, expected.hash8)
    assert format_tool_id(parts) == reference.format_tool_id(expected) == text


@given(names, schemas)
def test_a_tool_gets_the_same_id_in_the_namespace_that_the_reference_takes_from_its_name(name, schema):
    try:
        expected = adapter.mcp_tool_to_selectable(
            {"name": name, "description": "d", "inputSchema": schema}
        ).id
    except refusal:
        return
    made = tool_id(parse_tool_id(expected).namespace, Definition(name=name, input_schema=schema))
    assert made == expected
