import json
from pathlib import Path

import pytest

from agent_gate.core.ids import (
    canonical_shape,
    fold_namespace,
    format_tool_id,
    hash8,
    parse_tool_id,
    tool_id,
)
from agent_gate.core.tool import Definition
from agent_gate.errors import CatalogError

VECTORS = Path(__file__).parent.parent / "vectors"


def rows(name):
    return json.loads((VECTORS / f"{name}.json").read_text())["vectors"]


@pytest.mark.parametrize("row", rows("hash8"))
def test_the_hash_covers_the_name_and_the_shape_of_the_schema(row):
    assert canonical_shape(row["input_schema"]) == row["canonical_shape"]
    assert hash8(row["upstream_name"], row["input_schema"]) == row["hash8"]


@pytest.mark.parametrize("row", rows("tool_id_parse"))
def test_an_id_parses_and_formats_back_or_is_refused(row):
    if row.get("spec_ok", row["ok"]):
        parts = parse_tool_id(row["input"])
        assert list(parts) == row["parts"]
        assert format_tool_id(parts) == row["input"]
    else:
        with pytest.raises(CatalogError):
            parse_tool_id(row["input"])


@pytest.mark.parametrize("row", rows("tool_id_derivation"))
def test_a_tool_gets_the_id_of_the_contract_or_a_folded_one_where_that_has_none(row):
    definition = Definition(
        name=row["upstream_name"],
        input_schema=row["input_schema"],
        version=str(row.get("_meta.version") or ""),
    )
    if row["tool_id"] is None:
        made = parse_tool_id(tool_id(fold_namespace(row.get("namespace", "weather")), definition))
        assert made.hash8 == hash8(row["upstream_name"], row["input_schema"])
    else:
        assert tool_id(parse_tool_id(row["tool_id"]).namespace, definition) == row["tool_id"]


@pytest.mark.parametrize(
    ("key", "namespace"),
    [
        ("github", "github"),
        ("GitHub", "github"),
        ("Sequential Thinking", "sequential_thinking"),
        ("123server", "n123server"),
        ("_x", "n_x"),
        ("名前", "n__"),
        ("a-b", "a-b"),
    ],
)
def test_a_configured_key_folds_to_a_namespace(key, namespace):
    assert fold_namespace(key) == namespace


@pytest.mark.parametrize(
    ("namespace", "name", "expected"),
    [
        ("github", "github.create_issue", "github:create_issue#678543c8"),
        ("lab", "github.create_issue", "lab:github.create_issue#678543c8"),
        ("notion", "notion-search", "notion:notion-search#030ffc68"),
        ("x", "日本語", "x:___#0f5ecb99"),
        ("x", "1abc", None),
    ],
)
def test_a_prefix_is_dropped_only_when_it_repeats_the_namespace(namespace, name, expected):
    made = tool_id(namespace, Definition(name=name))
    assert made == expected if expected else made.startswith("x:n1abc#")


def test_a_folded_name_carries_its_hash_even_with_a_version():
    made = parse_tool_id(tool_id("x", Definition(name="a b", version="2")))
    assert made.version == "2"
    assert made.hash8 == hash8("a b", {"type": "object"})
