import json
from contextlib import asynccontextmanager

import pytest
from tests.calls.small_calls import Clock, opened

from agent_gate.core.call import Call, Caller, Result
from agent_gate.discovery.tokens import fits
from agent_gate.errors import InvalidArgs, ViewFailed
from agent_gate.results import handles
from agent_gate.results.artifacts import Artifacts, handle_of
from agent_gate.results.handles import find_handles, substitute
from agent_gate.results.reading import ResultReading, read_result
from agent_gate.results.views import view

PI, CODER = Caller(name="pi"), Caller(name="coder")


@asynccontextmanager
async def keeping(folder):
    clock = Clock()
    async with opened(folder) as store:
        yield Artifacts(store, clock, lifetime=60), clock, store


def call(caller=PI):
    return Call(tool="t", arguments={}, caller=caller)


def body(value):
    return Result(json.dumps(value).encode())


async def test_a_result_is_kept_whole_and_read_back_by_its_caller(tmp_path):
    async with keeping(tmp_path) as (artifacts, *_):
        mine = call()
        kept = await artifacts.save(mine, body({"rows": [1, 2, 3]}))
        assert kept.handle == handle_of(mine.id)
        assert kept.size == len(b'{"rows": [1, 2, 3]}')
        reading = (await artifacts.load(kept.handle, PI)).read()
        assert view(reading, {"type": "jsonpath", "path": "$.rows[2]"}, fits).text == "3"


async def test_two_calls_of_one_tool_have_two_artifacts(tmp_path):
    async with keeping(tmp_path) as (artifacts, *_):
        first = await artifacts.save(call(), body("first"))
        second = await artifacts.save(call(), body("second"))
        assert (await artifacts.load(first.handle, PI)).read().text == "first"
        assert (await artifacts.load(second.handle, PI)).read().text == "second"


async def test_a_call_stores_once_and_the_first_body_stays(tmp_path):
    async with keeping(tmp_path) as (artifacts, _, store):
        mine = call()
        kept = await artifacts.save(mine, body("first"))
        await artifacts.save(mine, body("second"))
        assert (await artifacts.load(kept.handle, PI)).read().text == "first"
        assert await store.read("SELECT count(*) FROM artifacts") == [(1,)]


async def test_another_callers_handle_answers_like_an_unknown_one(tmp_path):
    async with keeping(tmp_path) as (artifacts, *_):
        kept = await artifacts.save(call(), body("secret"))
        failures = []
        for handle, caller in ((kept.handle, CODER), (handle_of("0" * 32), CODER)):
            with pytest.raises(ViewFailed) as caught:
                await artifacts.load(handle, caller)
            failures.append(caught.value.message)
        assert failures[0] == failures[1]


@pytest.mark.parametrize(
    "handle", ["", "x", "result:", "result:zz", "result:" + "0" * 33, "result:" + "0" * 32 + "\n"]
)
async def test_what_is_no_handle_says_so(tmp_path, handle):
    async with keeping(tmp_path) as (artifacts, *_):
        with pytest.raises(ViewFailed, match="not a handle"):
            await artifacts.load(handle, PI)


async def test_an_expired_artifact_is_gone_and_swept(tmp_path):
    async with keeping(tmp_path) as (artifacts, clock, store):
        kept = await artifacts.save(call(), body("old"))
        clock.time += 61
        with pytest.raises(ViewFailed, match="expired"):
            await artifacts.load(kept.handle, PI)
        assert await artifacts.sweep() == 1
        assert await store.read("SELECT count(*) FROM artifacts") == [(0,)]


HANDLE = handle_of("ab" * 16)
TABLE = read_result(body({"rows": [{"a": 1}, {"a": 2}], "note": "hi"}))
TEXT = read_result(body("plain text"))
SCHEMA = {
    "type": "object",
    "properties": {
        "data": {"type": "array"},
        "text": {"type": "string"},
        "either": {"anyOf": [{"type": "string"}, {"type": "object"}]},
        "deep": {"type": "object", "properties": {"inner": {"type": "string"}}},
        "list": {"type": "array", "items": {"type": "integer"}},
    },
}


def fill(arguments, reading: ResultReading = TABLE):
    return substitute(arguments, SCHEMA, {HANDLE: reading})


def test_handles_are_found_only_as_whole_values():
    assert find_handles(
        {"a": HANDLE, "b": [f"{HANDLE}#$.rows"], "c": f"see {HANDLE}", "d": f"{HANDLE}#x"}
    ) == {HANDLE}


@pytest.mark.parametrize(
    ("arguments", "filled"),
    [
        ({"data": f"{HANDLE}#$.rows"}, {"data": [{"a": 1}, {"a": 2}]}),
        ({"text": f"{HANDLE}#$.rows[0]"}, {"text": '{"a":1}'}),
        ({"text": f"{HANDLE}#$.note"}, {"text": "hi"}),
        ({"either": HANDLE}, {"either": {"rows": [{"a": 1}, {"a": 2}], "note": "hi"}}),
        ({"deep": {"inner": f"{HANDLE}#$.note"}}, {"deep": {"inner": "hi"}}),
        ({"list": [f"{HANDLE}#$.rows[1].a"]}, {"list": [2]}),
        ({"data": f"{HANDLE}#$.rows[*].a"}, {"data": [1, 2]}),
        ({"text": f"look at {HANDLE}"}, {"text": f"look at {HANDLE}"}),
    ],
)
def test_a_handle_becomes_what_the_schema_takes(arguments, filled):
    assert fill(arguments) == filled


def test_a_text_result_is_passed_as_text():
    assert fill({"text": HANDLE}, TEXT) == {"text": "plain text"}
    with pytest.raises(InvalidArgs, match="not JSON"):
        fill({"text": f"{HANDLE}#$.a"}, TEXT)


def test_a_path_that_selects_nothing_is_refused():
    with pytest.raises(InvalidArgs, match="Nothing is at"):
        fill({"text": f"{HANDLE}#$.absent"})


def test_a_short_request_cannot_become_a_huge_one(monkeypatch):
    assert find_handles({"list": [HANDLE] * handles.MOST_REFERENCES}) == {HANDLE}
    with pytest.raises(InvalidArgs, match="Too many handles"):
        find_handles({"list": [HANDLE] * (handles.MOST_REFERENCES + 1)})
    monkeypatch.setattr(handles, "MOST_BYTES", 100)
    assert fill({"either": HANDLE})
    for many in (HANDLE, f"{HANDLE}#$..*"):
        with pytest.raises(InvalidArgs, match="too large together"):
            fill({"deep": {"inner": HANDLE}, "text": many, "either": many})
