"""The one place that takes secrets out of what is shown: by value in text, by name in arguments."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from agent_gate.core.signature import MASK as MASK

SHORTEST_SECRET = 6
# A value may stand inside JSON: an escaped quote ends it like a bare one, and no escape is cut in two.
LOOKS_SECRET = re.compile(
    r"(?i)(authorization(?:\\?[\"'])?\s*[:=]\s*(?:\\?[\"'])?)(?:(?:bearer|basic)\s+)?(?:\\[^\"']|[^\s\"',}\\])+|"
    r"(\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}|"
    r"((?:api[_-]?key|token|secret|password|passwd)(?:\\?[\"'])?\s*[:=]\s*(?:\\?[\"'])?)"
    r"(?:\\[^\"']|[^\s\"',&}\\]){4,}"
)
ESCAPED = re.compile("%[0-9A-F]{2}")


class Redactor:
    """Knows the secrets of the running configuration and replaces them wherever they appear."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._pattern: re.Pattern[str] | None = None
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Replace what is known; short values are left out, because they would blot out ordinary text."""
        known = sorted(
            {form for s in secrets if len(s) >= SHORTEST_SECRET for form in forms(s)}, key=len, reverse=True
        )
        self._pattern = re.compile("|".join(map(re.escape, known))) if known else None

    def text(self, text: str) -> str:
        if self._pattern is not None:
            text = self._pattern.sub(MASK, text)
        return LOOKS_SECRET.sub(lambda m: f"{m[1] or m[2] or m[3]}{MASK}", text)

    def known(self, text: str) -> str:
        """Only exact secrets, for text that a guess must not change."""
        return self._pattern.sub(MASK, text) if self._pattern is not None else text

    def inside(self, value: Any) -> Any:
        """The same for a JSON value: its texts and names, and numbers that are a secret."""
        if isinstance(value, str):
            return self.known(value)
        if isinstance(value, Mapping):
            return {self.known(name): self.inside(inner) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.inside(inner) for inner in value]
        return MASK if self.holds(json.dumps(value)) else value

    def holds(self, text: str) -> bool:
        return self._pattern is not None and self._pattern.search(text) is not None


def forms(secret: str) -> set[str]:
    """A secret as it may come back: as it is, as part of an address, inside JSON, as others write these too."""
    in_address = {quote(secret, safe=""), quote_plus(secret)}
    in_json = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    small = {ESCAPED.sub(lambda found: found[0].lower(), form) for form in in_address}
    slashed = {form.replace("/", "\\/") for form in in_json}
    return {secret} | in_address | small | in_json | slashed


def mask_arguments(arguments: Mapping[str, Any], secret: frozenset[str]) -> Mapping[str, Any]:
    """The arguments with those declared secret masked; the same object when there is nothing to mask."""
    if not secret or secret.isdisjoint(arguments):
        return arguments
    return {name: MASK if name in secret else value for name, value in arguments.items()}


def secret_values(arguments: Mapping[str, Any], secret: frozenset[str]) -> Iterator[str]:
    """Every value, at any depth, of the arguments declared secret."""
    for name in secret & arguments.keys():
        yield from values_within(arguments[name])


def values_within(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for inner in value:
            yield from values_within(inner)
    else:
        yield str(value)
