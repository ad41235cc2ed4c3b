import json
import time

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gate.core.call import Result
from agent_gate.discovery.tokens import count, fits
from agent_gate.results.data import data_of
from agent_gate.results.envelope import (
    ERROR_BUDGET,
    SUMMARY_BUDGET,
    Artifact,
    summarise,
    whole,
)

ENVELOPE_SCHEMA = {
    "type": "object",
    "properties": {
        "status": {"enum": ["ok", "partial", "error"]},
        "summary": {"type": "string"},
        "facts": {"type": "array", "items": {"type": "string"}},
        "artifacts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "handle": {"type": "string"},
                    "media_type": {"type": "string"},
                    "size": {"type": "integer", "minimum": 0},
                    "digest": {"type": "string"},
                    "expires_at": {"type": "number"},
                },
                "required": ["handle", "media_type", "size", "digest"],
                "additionalProperties": False,
            },
        },
        "views": {"type": "array", "items": {"type": "object", "required": ["type"]}},
    },
    "required": ["status", "summary", "facts", "artifacts", "views"],
    "additionalProperties": False,
}
KEPT = Artifact(handle="result:" + "0" * 32, media_type="application/json", size=1, digest="d")


def result(value, kind="json", is_error=False):
    return Result(json.dumps(value).encode(), kind, is_error)


def text_result(text, is_error=False):
    return result({"content": [{"type": "text", "text": text}], "isError": is_error}, "mcp", is_error)


def check(envelope):
    jsonschema_rs.validator_for(ENVELOPE_SCHEMA).validate(msgspec.json.decode(envelope.encode()))


def test_a_small_result_is_its_own_summary():
    envelope = whole(text_result("It is 12:00."))
    assert (envelope.status, envelope.summary, envelope.artifacts) == ("ok", "It is 12:00.", ())
    check(envelope)
    assert whole(result({"a": [1, 2]})).summary == '{"a":[1,2]}'


def test_a_small_error_keeps_its_words_and_its_status():
    envelope = whole(text_result("No such city", is_error=True))
    assert (envelope.status, envelope.summary) == ("error", "No such city")


def test_large_json_is_described_by_counts_key_paths_and_the_head_of_its_table():
    rows = [{"id": n, "name": f"name {n}", "geo": {"lat": 1.5}} for n in range(400)]
    envelope = summarise(result({"total": 400, "next": "p2", "items": rows}), KEPT, fits)
    assert envelope.status == "partial"
    assert "400 items of {id, name, geo}" in envelope.summary
    assert "A table of 400 rows: id | name | geo" in envelope.summary
    assert "$.items[*].geo.lat: 1.5" in envelope.summary
    assert envelope.facts == ("total: 400", "next: p2")
    assert envelope.artifacts == (KEPT,)
    assert {"type": "rows", "start": 0, "end": 50} in envelope.views
    check(envelope)


def test_json_inside_a_text_part_is_read_as_json():
    envelope = summarise(text_result(json.dumps([{"a": 1}] * 900)), KEPT, fits)
    assert "900 items of {a}" in envelope.summary


def test_structured_content_wins_over_the_text_that_repeats_it():
    value = {"content": [{"type": "text", "text": "…"}], "structuredContent": {"rows": [1] * 5000}}
    assert "5000 items" in summarise(result(value, "mcp"), KEPT, fits).summary


def test_a_long_text_shows_both_ends_and_its_errors_word_for_word():
    lines = [f"step {n} fine" for n in range(3000)]
    lines[1700] = "FATAL: disk /dev/sda1 is full (code 28)"
    envelope = summarise(text_result("\n".join(lines)), KEPT, fits)
    assert "Text of 3000 lines" in envelope.summary
    assert "line 1700: FATAL: disk /dev/sda1 is full (code 28)" in envelope.summary
    assert "step 0 fine" in envelope.summary
    assert "step 2999 fine" in envelope.summary


def test_a_table_in_text_shows_its_head():
    text = "city;people\n" + "\n".join(f"town{n};{n}" for n in range(2000))
    assert (
        "A table of 2000 rows: city | people\ntown0 | 0" in summarise(text_result(text), KEPT, fits).summary
    )


def test_a_long_error_keeps_both_ends_verbatim():
    text = "\n".join(
        ["Traceback (most recent call last):", *[f"  frame {n}" for n in range(500)], "ValueError: bad zip"]
    )
    envelope = summarise(text_result(text, is_error=True), KEPT, fits)
    assert envelope.status == "error"
    assert envelope.summary.startswith("Traceback (most recent call last):")
    assert envelope.summary.endswith("ValueError: bad zip")


def test_the_text_of_a_resource_that_came_along_is_read_like_any_text():
    file = {"uri": "repo://ada/main.py", "mimeType": "text/x-python", "text": "print('hello')"}
    parts = [{"type": "text", "text": "downloaded"}, {"type": "resource", "resource": file}]
    envelope = whole(result({"content": parts}, "mcp"))
    assert envelope.summary == "downloaded\nprint('hello')"
    assert envelope.facts == ("resource text/x-python repo://ada/main.py",)


def test_the_text_of_a_resource_is_part_of_a_result_as_plain_data():
    file = {"uri": "repo://ada/main.py", "text": "print('hello')"}
    parts = [{"type": "text", "text": "downloaded"}, {"type": "resource", "resource": file}]
    blob = {"type": "resource", "resource": {"uri": "repo://ada/x.bin", "blob": "AA=="}}
    found = data_of(result({"content": [*parts, blob, {"type": "resource", "resource": "odd"}]}, "mcp"))
    assert json.loads(found) == "downloaded\nprint('hello')"


@pytest.mark.parametrize("text", [5, None, {"a": []}, [1e308], True])
def test_a_part_of_an_unknown_type_may_hold_anything_and_says_no_words(text):
    parts = [{"type": "text", "text": "here"}, {"type": "mood", "text": text}]
    assert json.loads(data_of(result({"content": parts}, "mcp"))) == "here"


def test_parts_that_are_no_text_are_named():
    value = {"content": [{"type": "image", "mimeType": "image/png", "data": "A" * 16000}]}
    assert whole(result(value, "mcp")).facts == ("image image/png, about 12 kB, part 0",)


def test_a_short_text_beside_a_large_picture_is_given_as_it_is():
    said = "\n".join(f"{n}. look at the picture" for n in range(11))
    picture = {"type": "image", "mimeType": "image/png", "data": "A" * 160000}
    envelope = summarise(result({"content": [{"type": "text", "text": said}, picture]}, "mcp"), KEPT, fits)
    assert envelope.summary == said
    assert envelope.facts == ("image image/png, about 120 kB, part 1",)


def test_what_no_summary_can_say_makes_a_small_result_partial_and_has_a_view():
    blob = {"type": "resource", "resource": {"uri": "a://b", "blob": "AA=="}}
    parts = [
        {"type": "text", "text": "here"},
        {"type": "image", "mimeType": "image/png", "data": "AA=="},
        blob,
    ]
    envelope = whole(result({"content": parts}, "mcp"))
    assert (envelope.status, envelope.summary) == ("partial", "here")
    assert envelope.views == ({"type": "part", "index": 1}, {"type": "part", "index": 2})
    link = {"type": "resource_link", "uri": "a://c", "name": "c"}
    assert whole(result({"content": [link]}, "mcp")).status == "ok"


values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=100),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=12), inner, max_size=6),
    max_leaves=25,
)


@settings(max_examples=100, deadline=None)
@given(value=values, is_error=st.booleans())
def test_any_result_has_a_bounded_valid_envelope(value, is_error):
    envelope = summarise(result(value, is_error=is_error), KEPT, fits)
    check(envelope)
    assert count(envelope.summary) <= (ERROR_BUDGET if is_error else SUMMARY_BUDGET)
    assert count("\n".join(envelope.facts)) <= SUMMARY_BUDGET
    assert summarise(result(value, is_error=is_error), KEPT, fits) == envelope


def test_twenty_megabytes_are_summarised_in_seconds():
    rows = [{"id": n, "text": "word " * 20} for n in range(150_000)]
    big = result(rows)
    start = time.process_time()
    envelope = summarise(big, KEPT, fits)
    assert "150000 items" in envelope.summary
    assert time.process_time() - start < 5


def test_a_large_result_without_text_says_what_is_in_it_instead():
    image = {"type": "image", "mimeType": "image/png", "data": "A" * 100_000}
    envelope = summarise(Result(json.dumps({"content": [image]}).encode(), "mcp"), KEPT, fits)
    assert envelope.summary.startswith("No text; 1 other part:\nimage image/png, about 75 kB")
    assert "lines" not in envelope.summary
