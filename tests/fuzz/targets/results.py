"""A result of any content type through reading, summary, views and rendering: bounded, or refused in words."""

from contextlib import suppress

import msgspec
from tests.fuzz.fuzzing import Target

from agent_gate.core.call import Result
from agent_gate.discovery.tokens import count, fits
from agent_gate.errors import GatewayError
from agent_gate.results.data import content_of, data_of
from agent_gate.results.envelope import Artifact, summarise, whole
from agent_gate.results.reading import ResultReading, read_result
from agent_gate.results.views import VIEW_BUDGET, Selector, view

KEPT = Artifact(handle="result:" + "0" * 32, media_type="x/y", size=1, digest="0")
MOST_STEPS = 5
SELECTORS: tuple[Selector, ...] = (
    {"type": "head"},
    {"type": "lines", "start": 1},
    {"type": "rows"},
    {"type": "json_keys"},
    {"type": "grep", "pattern": "a|^$"},
    {"type": "jsonpath", "path": "$..*"},
    {"type": "part", "index": 0},
)


def run(data: bytes) -> None:
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    _check(Result(data, "json"))
    if _is_result(value):
        _check(Result(data, "mcp", bool(value.get("isError"))))


def _is_result(value: object) -> bool:
    """What the gateway takes from a server: other shapes are refused when they arrive."""
    if not isinstance(value, dict) or not isinstance(value.get("content"), list):
        return False
    return all(
        isinstance(part, dict)
        and isinstance(part.get("type"), str)
        and isinstance(part.get("text", ""), str)
        and isinstance(part.get("resource", {}), dict)
        for part in value["content"]
    )


def _check(result: Result) -> None:
    for envelope in (whole(result), summarise(result, KEPT, fits)):
        msgspec.json.decode(envelope.encode())
    msgspec.json.decode(data_of(result))
    msgspec.json.decode(content_of(result) or b"[]")
    reading = read_result(result)
    for selector in SELECTORS:
        with suppress(GatewayError):
            _walk(reading, selector)


def _walk(reading: ResultReading, selector: Selector) -> None:
    """Every view is bounded, and what it names as next lies behind it."""
    for _ in range(MOST_STEPS):
        seen = view(reading, selector, fits)
        assert count(seen.text) <= VIEW_BUDGET
        if seen.next is None:
            return
        assert seen.next["start"] > selector.get("start", 0)
        selector = seen.next


TARGET = Target(
    "results",
    run,
    words=(
        b'{"content":[', b'{"type":"text","text":"', b'{"type":"image","data":"AA==","mimeType":"image/png"}',
        b'{"type":"audio","data":"AA==","mimeType":"audio/wav"}', b'{"type":"resource","resource":{"uri":"a:b","text":"',
        b'{"type":"resource","resource":{"uri":"a:b","blob":"AA=="}}', b'{"type":"resource_link","uri":"a:b","name":"n"}',
        b'"structuredContent":{', b'"isError":true', b'"_meta":{}', b'"a,b\\n1,2\\n3,4\\n"', b"\\r\\n", b"\\u0000", b"\\u2028",
        b"[", b"]", b"{", b"}", b'":', b",", b"null", b"1e400", b"-0", b'"[1,2"', b'"{}"',
    ),
)  # fmt: skip
