"""Tools for the tests of discovery, made the way the catalog makes them."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent_gate.core.catalog import Catalog, Listing, build
from agent_gate.core.tool import Definition, Tool


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
