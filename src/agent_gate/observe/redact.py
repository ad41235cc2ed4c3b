"""The one place that takes secrets out of what is shown: by value in text, by name in arguments."""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec

from agent_gate.core.signature import MASK as MASK

Redact = Callable[[str], str]
"""Takes what is secret out of a text."""
SHORTEST_SECRET = 6
SHORTEST_MASKED = 12
MOST_ISSUED = 512
# A value may stand inside JSON: an escaped quote ends it like a bare one, and no escape is cut in two.
LOOKS_SECRET = re.compile(
    r"(?i)(authorization(?:\\?[\"'])?\s*[:=]\s*(?:\\?[\"'])?)(?:(?:bearer|basic)\s+)?(?:\\[^\"']|[^\s\"',}\\])+|"
    r"(\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}|"
    r"((?:api[_-]?key|token|secret|password|passwd)(?:\\?[\"'])?\s*[:=]\s*(?:\\?[\"'])?)"
    r"(?:\\[^\"']|[^\s\"',&}\\]){4,}"
)
ESCAPED = re.compile("%[0-9A-F]{2}")
MOST_MASKED = 64
MASKED = MASK.encode()
BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-"
CONTENT = re.compile(rb'"(?:data|blob)"\s*:\s*"$')


class Redactor:
    """Knows the secrets of the running configuration and replaces them wherever they appear."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._pattern: re.Pattern[str] | None = None
        self._written: frozenset[str] = frozenset()
        self._issued: dict[str, None] = {}
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Replace what the configuration has; short values are left out, because they would blot out ordinary text."""
        self._written = frozenset(secrets)
        self._compile()

    def add(self, secrets: Iterable[str]) -> None:
        """Know these too, which came while the gateway runs. Of very many, the last are kept."""
        fresh = [one for one in secrets if one not in self._written and one not in self._issued]
        if not fresh:
            return
        self._issued |= dict.fromkeys(fresh)
        for old in list(self._issued)[:-MOST_ISSUED]:
            del self._issued[old]
        self._compile()

    def _compile(self) -> None:
        secrets = (s for s in (*self._written, *self._issued) if len(s) >= SHORTEST_SECRET)
        known = sorted({form for s in secrets for form in forms(s)}, key=len, reverse=True)
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


class Mask:
    """Takes a source's own credentials out of the JSON that it answers with; a quick search says that there are none.

    What is inside longer base64 content, as of a picture, is left alone: it would be broken and still tell.
    """

    def __init__(self) -> None:
        self._secrets: dict[str, None] = {}
        self._spellings: tuple[bytes, ...] = ()
        self._numbers = Redactor()

    def learn(self, secrets: Iterable[str]) -> None:
        fresh = [one for one in secrets if len(one) >= SHORTEST_MASKED and one not in self._secrets]
        if not fresh:
            return
        self._secrets = dict.fromkeys([*self._secrets, *fresh][-MOST_MASKED:])
        found = {form.encode(errors="replace") for secret in self._secrets for form in spellings(secret)}
        self._spellings = tuple(sorted(found, key=len, reverse=True))
        self._numbers = Redactor(one for one in self._secrets if one.isdigit())

    def body(self, body: bytes) -> bytes:
        # `in` would try the spelling as a number first and drop the exception, which costs more than the search.
        for spelling in self._spellings:
            if body.find(spelling) >= 0:
                return self._masked(body)
        return body

    def _masked(self, body: bytes) -> bytes:
        for spelling in self._spellings:
            # Digits may stand there as a number, for which only the decoded value can tell.
            body = self._without_number(body, spelling) if spelling.isdigit() else without(body, spelling)
        return body

    def _without_number(self, body: bytes, spelling: bytes) -> bytes:
        """Rather no JSON any more than a secret, where a number out of range or endless nesting is beside it."""
        try:
            return msgspec.json.encode(self._numbers.inside(msgspec.json.decode(body)))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return without(body, spelling)


def without(body: bytes, spelling: bytes) -> bytes:
    """JSON with a spelling masked wherever it is text of its own. Each byte is looked at a few times at most."""
    parts: list[bytes] = []
    done, at = 0, body.find(spelling)
    while at >= 0:
        end = at + len(spelling)
        before = body[done:at]
        if content_ends := end_of_content(body, before, end):
            end = content_ends
        elif not ends_in_escape(before):
            parts += [before, MASKED]
            done = end
        at = body.find(spelling, end)
    return b"".join([*parts, body[done:]]) if parts else body


def ends_in_escape(before: bytes) -> bool:
    """Whether what follows is the rest of an escape, so that no spelling begins there."""
    return (len(before) - len(before.rstrip(b"\\"))) % 2 == 1


def end_of_content(body: bytes, before: bytes, end: int) -> int:
    """Where the longer `data` or `blob` of a picture or a file ends that this stands in; 0 where it is in none."""
    start = before.rfind(b'"') + 1
    if not start or not CONTENT.search(before, max(0, start - 16), start) or not is_base64(before[start:]):
        return 0
    stop = body.find(b'"', end)
    longer = len(before) > start or stop > end
    return stop if longer and is_base64(body[end:stop]) else 0


def is_base64(data: bytes) -> bool:
    return not data.translate(None, BASE64)


def spellings(secret: str) -> set[str]:
    """A secret as it may stand in JSON: itself, in an address, in base64, each as JSON writes it or JSON inside it."""
    encoded = b64encode(secret.encode(errors="replace")).decode().rstrip("=")
    plain = {secret, quote(secret, safe=""), quote_plus(secret), quote(secret), encoded}
    plain |= {ESCAPED.sub(lambda found: found[0].lower(), form) for form in plain}
    once = {form for one in plain for form in as_json(one)}
    return once | {form for one in once for form in as_json(one)}


def as_json(text: str) -> set[str]:
    written = {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    return written | {form.replace("/", "\\/") for form in written}


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
