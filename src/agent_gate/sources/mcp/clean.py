"""Upstream text as data: characters that hide or reorder what a person reads are taken out."""

import re
from typing import Any

from agent_gate.core.tool import Json

MAX_DESCRIPTION = 4 * 1024
MAX_TITLE = 200
MAX_DEPTH = 64
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, but for tab and newline
    "\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # zero width, direction
    "\ufe00-\ufe0f\U000e0000-\U000e0fff"  # variation selectors and tags
    "\ud800-\udfff]"  # lone surrogates
)
SHOWN = frozenset({"description", "title", "$comment"})


def clean(text: object, limit: int = MAX_DESCRIPTION) -> str:
    """`text` without hidden characters, at most `limit` bytes long; anything but a string is empty."""
    if not isinstance(text, str):
        return ""
    seen = HIDDEN.sub("", text)
    if len(seen.encode()) <= limit:
        return seen
    return seen.encode()[: limit - 3].decode(errors="ignore") + "…"


def clean_schema(schema: Json, depth: int = 0) -> Any:
    """The schema with every text an agent reads cleaned; its structure is untouched."""
    if depth > MAX_DEPTH:
        raise ValueError(f"its schema is nested deeper than {MAX_DEPTH} levels")
    if isinstance(schema, dict):
        return {
            name: clean(value) if name in SHOWN and isinstance(value, str) else clean_schema(value, depth + 1)
            for name, value in schema.items()
        }
    if isinstance(schema, list):
        return [clean_schema(item, depth + 1) for item in schema]
    return HIDDEN.sub("", schema) if isinstance(schema, str) and HIDDEN.search(schema) else schema
