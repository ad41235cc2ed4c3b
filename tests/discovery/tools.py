"""Tools for the tests of discovery, made the way the catalog makes them."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent_gate.core.catalog import Catalog, Listing, build
from agent_gate.core.tool import Definition, Tool
from agent_gate.discovery.cards import MAX_ID, MAX_NAME, MAX_TAG, MAX_TAGS


def catalog(servers: Mapping[str, Sequence[Definition]], titles: Mapping[str, str] | None = None) -> Catalog:
    said = titles or {}
    return build(
        Listing(key=key, namespace=key, title=key, description=said.get(key, ""), definitions=definitions)
        for key, definitions in servers.items()
    )


def tool(name: str = "do_it", description: str = "Does it.", server: str = "lab", **fields: Any) -> Tool:
    return catalog({server: [Definition(name=name, description=description, **fields)]}).tools[0]


def takes(**properties: str) -> dict[str, Any]:
    """An input schema of text arguments with these descriptions."""
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": said} for name, said in properties.items()},
    }


CARD_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "minLength": 1, "maxLength": MAX_ID},
        "name": {"type": "string", "maxLength": MAX_NAME},
        "description": {"type": "string", "pattern": "^[^\\n\\r]*$"},
        "tags": {
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": MAX_TAG},
            "maxItems": MAX_TAGS,
            "uniqueItems": True,
        },
        "kind": {"enum": ["tool", "agent", "skill", "internal"]},
        "namespace": {"type": "string"},
        "has_schema": {"type": "boolean"},
        "cost_hint": {"type": "number", "minimum": 0},
        "side_effects": {"type": "boolean"},
        "score": {"type": "number"},
    },
    "required": ["id", "name", "description", "tags", "kind", "namespace", "has_schema"],
    "additionalProperties": False,
}
PAGE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"cards": {"type": "array", "items": CARD_SCHEMA}},
    "required": ["cards"],
}
HOME = {
    "github": [
        Definition(
            name="create_issue",
            description="Create a new issue in a repository.",
            input_schema=takes(title="Title"),
        ),
        Definition(name="list_issues", description="List the issues of a repository."),
        Definition(name="create_pull_request", description="Open a pull request."),
        Definition(name="search_code", description="Search code across repositories."),
    ],
    "files": [
        Definition(
            name="read_file",
            description="Read a file from disk.",
            input_schema=takes(path="Path of the file"),
        ),
        Definition(name="create_directory", description="Create a directory."),
    ],
    "weather": [
        Definition(
            name="get_forecast", description="Weather forecast for a city.", input_schema=takes(city="City")
        )
    ],
    "sheets": [
        Definition(name="import_csv", description="Import a CSV file into a sheet."),
        Definition(name="create_chart", description="Create a chart from a range of cells."),
    ],
}
