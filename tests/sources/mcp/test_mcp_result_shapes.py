"""What a server answers to a call is a result, or the call's outcome is unknown."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sources.mcp.upstreams import (
    Bench,
    Conversation,
    Request,
    Scripted,
    connected,
    discovery,
    handshake,
    modern,
    scripted,
    text,
)

from agent_gate.core.call import Result
from agent_gate.errors import OutcomeUnknown, UpstreamError
from agent_gate.mcp.results import NoResult, read_tool_result
from agent_gate.results.kept import upstream_said
from agent_gate.results.reading import MEDIA_TYPES, read

PNG = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
RESULTS: list[Any] = [
    {"content": []},
    text("hello"),
    {"content": [PNG]},
    {"content": [{**PNG, "type": "audio"}]},
    {"content": [{"type": "resource_link", "uri": "file:///a", "name": "a"}]},
    {"content": [{"type": "resource", "resource": {"uri": "file:///a", "text": "a"}}]},
    {"content": [{"type": "resource", "resource": {"uri": "file:///a", "blob": "aGk="}}]},
    {"content": [{"type": "hologram", "beam": 5}]},
    {"structuredContent": {"n": 1}},
    {"structuredContent": [1]},
    text("hello", isError=None, structuredContent=None, _meta=None),
    text("no", isError=True),
    text("hello", foreign={"a": [1]}),
]
NO_RESULTS: list[Any] = [
    {},
    {"foo": 1},
    {"isError": False},
    {"resultType": "complete"},
    {"resultType": "input_required", "inputRequests": {}},
    {"structuredContent": None},
    None,
    5,
    "x",
    [],
    {"content": "x"},
    {"content": None},
    {"content": None, "structuredContent": {}},
    {"content": {}},
    {"content": 5},
    {"content": [5]},
    {"content": ["x"]},
    {"content": [None]},
    {"content": [[]]},
    {"content": [{}]},
    {"content": [{"type": 5}]},
    {"content": [{"type": None, "text": "x"}]},
    {"content": [{"type": "text"}]},
    {"content": [{"type": "text", "text": 5}]},
    {"content": [{"type": "text", "text": None}]},
    {"content": [{"type": "text", "text": {"a": 1}}]},
    {"content": [{"type": "text", "text": "x"}, {"type": "text", "text": ["x"]}]},
    {"content": [{"type": "image", "data": 5, "mimeType": "image/png"}]},
    {"content": [{"type": "image", "data": "aGk="}]},
    {"content": [{"type": "audio", "data": "aGk=", "mimeType": 5}]},
    {"content": [{"type": "resource_link", "uri": 5, "name": "a"}]},
    {"content": [{"type": "resource"}]},
    {"content": [{"type": "resource", "resource": 5}]},
    {"content": [{"type": "resource", "resource": {"uri": "file:///a"}}]},
    {"content": [{"type": "resource", "resource": {"uri": "file:///a", "text": 5}}]},
    {"content": [{"type": "resource", "resource": {"uri": 5, "text": "a"}}]},
    {"content": [], "isError": "no"},
    {"content": [], "_meta": 5},
    {"content": [], "resultType": []},
]


@asynccontextmanager
async def told_by(handler: Callable[[Request], Awaitable[None]]) -> AsyncIterator[tuple[Bench, Scripted]]:
    """A server of the handshake eras that answers calls by `handler`."""

    async def answering(request: Request) -> None:
        if not await handshake(request):
            await handler(request)

    async with scripted(answering) as upstream, connected(url=upstream.url) as made:
        yield made, upstream


@pytest.mark.parametrize("result", RESULTS)
async def test_a_result_passes_as_it_came(result: Any) -> None:
    body = msgspec.json.encode(result)
    async with told_by(lambda request: request.result(msgspec.Raw(body))) as (made, _):
        answer = await made.call("work")
        assert answer.body == body
        assert answer.is_error == (result.get("isError") is True)


@pytest.mark.parametrize("came", NO_RESULTS)
async def test_what_is_no_result_leaves_the_outcome_unknown_and_is_kept_for_the_operator(came: Any) -> None:
    async with told_by(lambda request: request.result(came)) as (made, upstream):
        with pytest.raises(OutcomeUnknown, match="Check whether it took effect") as caught:
            await made.call("work")
        assert caught.value.came == msgspec.json.encode(came)
        assert "came" not in caught.value.as_dict()
        assert len(upstream.sent("tools/call")) == 1


async def test_a_question_in_place_of_a_result_goes_only_to_a_caller_that_can_come_back() -> None:
    question = {"resultType": "input_required", "inputRequests": {}, "requestState": "s"}

    async def handler(request: Request) -> None:
        if not await discovery(request):
            await request.result(question)

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        asked = await made.call("work", conversation=modern())
        assert msgspec.json.decode(asked.body) == question
        with pytest.raises(UpstreamError):
            await made.call("work", conversation=Conversation())


async def test_what_an_extension_answers_goes_only_to_a_caller_that_has_it() -> None:
    async def handler(request: Request) -> None:
        if not await discovery(request):
            await request.result({"resultType": "task", "taskId": "t"})

    async with scripted(handler) as upstream, connected(url=upstream.url) as made:
        extended = modern({"extensions": {"io.modelcontextprotocol/tasks": {}}})
        assert msgspec.json.decode((await made.call("work", conversation=extended)).body)["taskId"] == "t"
        with pytest.raises(OutcomeUnknown):
            await made.call("work", conversation=modern())


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (202, b"", "text/plain"),
        (202, b"", "application/json"),
        (204, b"", ""),
        (200, b"", "application/json"),
        (200, b"", "text/html"),
        (200, b"<html>It works</html>", "text/html"),
        (200, b"{}", "application/json"),
        (200, b'{"jsonrpc":"2.0","id":999,"result":{"content":[]}}', "application/json"),
        (200, b'{"jsonrpc":"2.0","method":"notifications/progress"}', "application/json"),
        (200, b'{"jsonrpc":"2.0","id":true,"result":{}}', "application/json"),
        (200, b"[]", "application/json"),
        (201, b"done", "text/plain"),
        (200, b"\xff\xfe", "application/json"),
    ],
)
async def test_a_request_that_was_taken_and_not_answered_may_have_run(
    status: int, body: bytes, kind: str
) -> None:
    async with told_by(lambda request: request.send(status, body, kind)) as (made, upstream):
        with pytest.raises(OutcomeUnknown, match="Check whether it took effect") as caught:
            await made.call("work")
        assert caught.value.came == body
        assert len(upstream.sent("tools/call")) == 1


async def test_a_reply_with_both_a_result_and_an_error_is_an_error() -> None:
    async def both(request: Request) -> None:
        reply = {"jsonrpc": "2.0", "id": request.body["id"], "result": text("yes")}
        await request.send(200, msgspec.json.encode({**reply, "error": {"code": -1, "message": "no"}}))

    async with told_by(both) as (made, _):
        with pytest.raises(OutcomeUnknown, match="both a result and an error"):
            await made.call("work")


async def test_an_empty_member_beside_the_one_that_counts_is_none() -> None:
    async def old_fashioned(request: Request) -> None:
        reply = {"jsonrpc": "2.0", "id": request.body["id"]}
        failed = request.body["params"]["arguments"].get("fail")
        said = {"result": None, "error": {"code": -1, "message": "no"}}
        await request.send(
            200, msgspec.json.encode({**reply, **(said if failed else {"result": text("a"), "error": None})})
        )

    async with told_by(old_fashioned) as (made, _):
        assert await made.text("work") == "a"
        with pytest.raises(UpstreamError, match="no"):
            await made.call("work", {"fail": True})


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)
kinds = st.sampled_from(["text", "image", "audio", "resource", "resource_link", "other"])
resources = st.fixed_dictionaries(
    {}, optional={"uri": values, "text": values, "blob": values, "mimeType": values}
)
members = {"text": values, "data": values, "mimeType": values, "uri": values, "name": values, "_meta": values}
parts = st.fixed_dictionaries(
    {}, optional={"type": kinds | values, "resource": resources | values, **members}
)
shapes = st.fixed_dictionaries(
    {},
    optional={
        "content": st.lists(parts | values, max_size=3) | values,
        "structuredContent": values,
        "isError": st.booleans() | values,
        "_meta": st.dictionaries(st.text(max_size=5), values, max_size=2) | values,
        "resultType": st.sampled_from(["complete", "input_required"]) | values,
    },
)


@given(shapes | values)
def test_what_passes_the_check_can_be_read_by_everybody(came: Any) -> None:
    body = msgspec.json.encode(came)
    try:
        result = read_tool_result(body)
    except NoResult:
        return
    content = came.get("content", [])
    assert isinstance(content, list)
    assert all(isinstance(part, dict) and isinstance(part["type"], str) for part in content)
    assert all(isinstance(part["text"], str) for part in content if part["type"] == "text")
    assert "content" in came or came.get("structuredContent") is not None
    read(body, MEDIA_TYPES["mcp"])
    upstream_said(Result(body, "mcp", bool(result.error)))
