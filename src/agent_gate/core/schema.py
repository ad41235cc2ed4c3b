"""JSON Schema compiled once into a validator, of a kind that fetches nothing and ends in time."""

from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from agent_gate.errors import CatalogError

LINEAR = jsonschema_rs.RegexOptions()
BOUNDED = jsonschema_rs.FancyRegexOptions(backtrack_limit=10_000)


def compile_schema(schema: Mapping[str, Any], *, linear_only: bool = False) -> Any:
    """A reusable validator. A remote `$ref` is refused, never fetched; patterns run in linear time where they can."""
    try:
        return jsonschema_rs.validator_for(dict(schema), offline=True, pattern_options=LINEAR)
    except (jsonschema_rs.ValidationError, ValueError) as error:
        if linear_only:
            raise CatalogError(f"The schema cannot be used: {first_line(error)}") from None
    try:
        return jsonschema_rs.validator_for(dict(schema), offline=True, pattern_options=BOUNDED)
    except (jsonschema_rs.ValidationError, ValueError) as error:
        raise CatalogError(f"The schema cannot be used: {first_line(error)}") from None


def first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]
