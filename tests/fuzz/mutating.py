"""How an input becomes another: bytes cut, doubled, joined and replaced; or the same on the values of a JSON."""

import json
from random import Random
from typing import Any

ODD = (
    b"\0",
    b"\r\n",
    b"\n",
    b"\xff",
    b"\xc3\x28",
    b"%00",
    b"..",
    b"9" * 20,
    b"-1",
    b"{}",
    b'"',
    b"\xef\xbb\xbf",
)
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 1.5, 2**31, 2**53 + 1, -(2**63), 10**30, "", "x", "\0", "\x1b[31m", "é", "ﾊ", "\ud83d\ude00",
    "2.0", "../..", "a" * 3000, [], {}, [[]], [None], {"": None}, {"type": "text"}, {"$ref": "#"},
)  # fmt: skip


def mutate_bytes(data: bytes, random: Random, corpus: list[bytes], words: tuple[bytes, ...]) -> bytes:
    """One to four small changes."""
    for _ in range(random.randint(1, 4)):
        data = _change(data, random, corpus, words)
    return data


def _change(data: bytes, random: Random, corpus: list[bytes], words: tuple[bytes, ...]) -> bytes:
    start, end = sorted((random.randint(0, len(data)), random.randint(0, len(data))))
    piece = data[start:end]
    match random.randrange(8):
        case 0:
            return data[:start] + data[end:]
        case 1:
            return data[:end] + piece * random.choice((1, 1, 2, 30)) + data[end:]
        case 2:
            return data[:start] + bytes([random.randrange(256)]) + data[start + 1 :]
        case 3:
            other = random.choice(corpus)
            return data[:start] + other[random.randint(0, len(other)) :]
        case 4:
            return data[:start] + random.choice(ODD) + data[start:]
        case 5:
            return (
                data[:start] + random.choice(words or ODD) + data[end if random.random() < 0.2 else start :]
            )
        case 6:
            return data[:start] + piece.swapcase() + data[end:]
        case _:
            return (
                data[:start]
                + bytes(byte ^ (1 << random.randrange(8)) for byte in piece[:1])
                + data[start + 1 :]
            )


def mutate_json(data: bytes, random: Random, corpus: list[bytes], words: tuple[bytes, ...]) -> bytes:
    """A value somewhere in the JSON replaced, taken away, doubled or renamed; sometimes its bytes instead."""
    if random.random() < 0.15:
        return mutate_bytes(data, random, corpus, words)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return mutate_bytes(data, random, corpus, words)
    names = [word.decode("utf-8", "replace") for word in words] or ["x"]
    for _ in range(random.randint(1, 3)):
        value = _vary(value, random, names)
    return json.dumps(value).encode()


def _vary(value: Any, random: Random, names: list[str]) -> Any:
    """Go down to some place and change what is there."""
    if isinstance(value, dict) and value and random.random() < 0.8:
        key = random.choice(list(value))
        return _vary_member(dict(value), key, random, names)
    if isinstance(value, list) and value and random.random() < 0.8:
        at = random.randrange(len(value))
        match random.randrange(5):
            case 0:
                return value[:at] + value[at + 1 :]
            case 1:
                return value[:at] + value[at : at + 1] * 2 + value[at + 1 :]
            case _:
                return [*value[:at], _vary(value[at], random, names), *value[at + 1 :]]
    return random.choice((random.choice(VALUES), random.choice(names)))


def _vary_member(value: dict[str, Any], key: str, random: Random, names: list[str]) -> dict[str, Any]:
    match random.randrange(6):
        case 0:
            del value[key]
        case 1:
            value[random.choice(names)] = value[key]
        case 2:
            value[random.choice(names)] = random.choice(VALUES)
        case _:
            value[key] = _vary(value[key], random, names)
    return value
