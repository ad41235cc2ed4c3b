"""Names as TypeScript identifiers: camelCase that keeps inner capitals, and suffixes where two names fold together."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

WORD = re.compile(r"[A-Za-z0-9]+")
LEADING_CAPITALS = re.compile(r"[A-Z]+(?=[A-Z][a-z]|[0-9]|$)|[A-Z]")
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# An object with a function of this name is taken for a promise by `await`.
TAKEN = frozenset({"then"})


def words(text: str) -> list[str]:
    """The letters and digits of `text` in ASCII, accents dropped, split at everything else."""
    if text.isascii():
        return WORD.findall(text)
    decomposed = unicodedata.normalize("NFKD", text)
    return WORD.findall("".join(c for c in decomposed if not unicodedata.combining(c)))


def digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def lead(word: str) -> str:
    """`word` as the first of a camelCase name: `GitHub` → `gitHub`, `HTTPServer` → `httpServer`, `API` → `api`."""
    found = LEADING_CAPITALS.match(word)
    return found[0].lower() + word[found.end() :] if found else word


def camel(text: str, fallback: str = "unnamed") -> str:
    """`create_issue` and `createIssue` → `createIssue`; `123test` → `_123test`; nothing usable → `fallback`."""
    parts = words(text)
    if not parts:
        return fallback
    name = lead(parts[0]) + "".join(part[0].upper() + part[1:] for part in parts[1:])
    return f"_{name}" if name[0].isdigit() or name in TAKEN else name


def pascal(text: str, fallback: str = "Unnamed") -> str:
    name = "".join(part[0].upper() + part[1:] for part in words(text))
    if not name:
        return fallback
    return f"_{name}" if name[0].isdigit() else name


def distinct(originals: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """One name per original. Where several want the same, the one that is spelled so keeps it; the others end in
    a digest of their original, whatever the order and whatever else is there."""
    counts = Counter(wanted)
    return [
        name if counts[name] == 1 or original == name else f"{name}_{digest(original)}"
        for original, name in zip(originals, wanted, strict=True)
    ]
