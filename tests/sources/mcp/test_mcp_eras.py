"""The four combinations of caller's and server's era, against a server made with the official SDK."""

import asyncio
import sys

import msgspec
import pytest
from tests.sources.mcp.upstreams import (
    HERE,
    Conversation,
    Memory,
    Upstream,
    connected,
    leave_when_parked,
    modern,
)
from tests.waiting import until

from agent_gate.errors import InvalidArgs, UpstreamError
from agent_gate.mcp.revisions import NEWEST
from agent_gate.sources.mcp.calling import parking
from agent_gate.sources.mcp.sessions import meeting

SDK_STDIO = {"command": sys.executable, "args": (str(HERE / "sdk_server.py"), "stdio")}


class KnownAsOld(Memory):
    """Remembers every server as one of a handshake era."""

    def get(self, key, default=None):
        return "2025-11-25"


async def test_a_server_of_both_eras_is_met_in_the_modern_one(both_eras: Upstream) -> None:
    async with connected(url=both_eras.url) as made:
        assert await made.text("era") == "2026-07-28"
        assert list(made.memory.values()) == ["2026-07-28"]


@pytest.mark.parametrize("memory", [Memory, KnownAsOld], ids=["modern", "handshake"])
async def test_a_server_is_known_by_what_it_says_of_itself(both_eras: Upstream, memory: type[Memory]) -> None:
    async with connected(memory(), url=both_eras.url) as made:
        assert made.source.about == "test-server Does what tests need."
    async with connected(memory(), url=both_eras.url, name="Lab") as made:
        assert made.source.about == "Lab test-server Does what tests need."


@pytest.mark.parametrize(
    "info", [{}, {"name": 5, "title": ["x"]}, {"name": "n" * 9999, "description": "d" * 9999}, {"name": None}]
)
def test_a_server_that_says_odd_things_of_itself_is_known_by_few_words(info: dict) -> None:
    said = meeting.welcome({"serverInfo": info, "instructions": {"a": 1}, "_meta": "no"}, NEWEST)
    assert len(meeting.about(said)) <= meeting.LONGEST_ABOUT


async def test_modern_to_modern_passes_questions_and_answers_through(both_eras: Upstream) -> None:
    async with connected(url=both_eras.url) as made:
        first = msgspec.json.decode((await made.call("rounds", conversation=modern())).body)
        assert first["resultType"] == "input_required"
        assert first["inputRequests"]["who"]["method"] == "elicitation/create"
        answers = {"who": {"action": "accept", "content": {"name": "Ada"}}}
        again = {"inputResponses": answers, "requestState": first["requestState"]}
        assert await made.text("rounds", conversation=modern(), meta=again) == "hello Ada"


async def test_a_modern_server_sees_the_callers_own_capabilities(both_eras: Upstream) -> None:
    async with connected(url=both_eras.url) as made:
        assert await made.text("capabilities", conversation=modern({"sampling": {}})) == "sampling"
        assert await made.text("capabilities") == ""


async def test_handshake_to_handshake_asks_the_caller_while_the_call_runs(both_eras: Upstream) -> None:
    async with connected(url=both_eras.url) as made:
        conversation = Conversation()
        assert await made.text("push", conversation=conversation) == "hello Ada"
        assert [method for method, _ in conversation.asked] == ["elicitation/create"]


async def test_a_question_the_caller_cannot_answer_is_refused(both_eras: Upstream) -> None:
    async with connected(KnownAsOld(), url=both_eras.url) as made:
        conversation = Conversation(capabilities={"roots": {}})
        with pytest.raises(UpstreamError):
            await made.call("push", conversation=conversation)
        assert conversation.asked == []


async def test_handshake_to_modern_runs_the_rounds_for_the_caller(both_eras: Upstream) -> None:
    async with connected(url=both_eras.url) as made:
        made.source.connections.handshake_refused = True
        conversation = Conversation()
        assert await made.text("rounds", conversation=conversation) == "hello Ada"
        assert [method for method, _ in conversation.asked] == ["elicitation/create"]


@pytest.fixture(params=["http", "stdio"])
def old_server(request: pytest.FixtureRequest, both_eras: Upstream) -> dict[str, object]:
    """Where the SDK's server is met in a handshake era: over HTTP, where it holds a stream of its own, and over stdio."""
    return {"url": both_eras.url} if request.param == "http" else SDK_STDIO


async def test_modern_to_handshake_parks_the_call_until_its_caller_comes_back(old_server: dict) -> None:
    async with connected(KnownAsOld(), **old_server) as made:
        first = msgspec.json.decode((await made.call("push", conversation=modern())).body)
        assert first["resultType"] == "input_required"
        (name, question), *_ = first["inputRequests"].items()
        assert question["params"]["message"] == "who?"
        answers = {name: {"action": "accept", "content": {"name": "Bo"}}}
        again = {"inputResponses": answers, "requestState": first["requestState"]}
        assert await made.text("push", conversation=modern(), meta=again) == "hello Bo"
        with pytest.raises(InvalidArgs, match="used or expired"):
            await made.call("push", conversation=modern(), meta=again)


async def test_a_parked_call_belongs_to_its_caller_and_its_arguments(old_server: dict) -> None:
    async with connected(KnownAsOld(), **old_server) as made:
        first = msgspec.json.decode((await made.call("push", conversation=modern())).body)
        stolen = {"requestState": first["requestState"], "inputResponses": {}}
        for other in ({"caller": "thief"}, {"arguments": {"x": 1}}):
            with pytest.raises(InvalidArgs):
                await made.call("push", conversation=modern(), meta=stolen, **other)
        asked_again = msgspec.json.decode((await made.call("push", conversation=modern(), meta=stolen)).body)
        assert asked_again["inputRequests"] == first["inputRequests"]
        assert asked_again["requestState"] != first["requestState"]


class OneWay(Conversation):
    """A caller that is asked by coming back only, as one over HTTP is."""

    async def request(self, method, params):
        raise InvalidArgs("It cannot be asked while its request runs")


async def test_where_no_more_calls_may_wait_a_question_is_refused_and_other_calls_go_on(
    old_server: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connected(KnownAsOld(), **old_server) as made:
        monkeypatch.setattr(parking, "MAX_PARKED", 0)
        caller = OneWay(era="2026-07-28")
        with pytest.raises(UpstreamError, match="cannot be asked"):
            await made.call("push", conversation=caller)
        assert made.source.bridge.parking.waiting == {}
        assert await made.text("era", conversation=caller) == "2025-11-25"


async def test_a_closed_source_ends_its_parked_calls(old_server: dict) -> None:
    async with connected(KnownAsOld(), **old_server) as made:
        await made.call("push", conversation=modern())
        (parked,) = made.source.bridge.parking.waiting.values()
    assert await until(parked.task.done)


async def test_a_caller_that_leaves_the_moment_its_child_asks_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with connected(KnownAsOld(), **SDK_STDIO) as made:
        call = asyncio.create_task(made.call("push", conversation=modern()))
        leave_when_parked(call, monkeypatch)
        with pytest.raises(asyncio.CancelledError):
            await call
        assert made.source.connections.current().in_flight == 0
        assert await made.text("era") == "2025-11-25"


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
async def test_progress_reaches_the_caller_under_its_own_token(both_eras: Upstream, era: str) -> None:
    async with connected(url=both_eras.url) as made:
        conversation = Conversation(era=era)
        assert await made.text("steps", conversation=conversation, meta={"progressToken": "mine"}) == "done"
        assert [params["progress"] for _, params in conversation.notes] == [0, 1, 2]
        assert {params["progressToken"] for _, params in conversation.notes} == {"mine"}


async def test_log_messages_reach_the_caller_that_asked_for_them(both_eras: Upstream) -> None:
    async with connected(url=both_eras.url) as made:
        quiet, told = modern(), modern()
        await made.call("log", conversation=quiet)
        await made.call("log", conversation=told, meta={"io.modelcontextprotocol/logLevel": "info"})
        assert quiet.notes == []
        assert [params["data"] for _, params in told.notes] == ["careful"]


async def test_reserved_members_of_meta_stay_on_their_side(both_eras: Upstream) -> None:
    async with connected(url=both_eras.url) as made:
        sent = {"traceparent": "00-1-2-03", "io.modelcontextprotocol/secret": 1}
        result = await made.call("meta", conversation=modern(), meta=sent)
        assert b"traceparent" in result.body
        assert b"secret" not in result.body
        assert b"serverInfo" not in result.body


@pytest.mark.parametrize("conversation", [Conversation(), modern()], ids=["handshake", "modern"])
async def test_a_cancelled_call_is_cancelled_upstream(
    both_eras: Upstream, conversation: Conversation
) -> None:
    async with connected(url=both_eras.url) as made:
        before = int(await made.text("was_cancelled"))
        running = asyncio.create_task(made.call("wait", conversation=conversation))
        await until(lambda: in_flight(made))
        running.cancel()
        await asyncio.wait([running])

        async def cancelled() -> int:
            return int(await made.text("was_cancelled")) - before

        assert await until(cancelled) == 1


def in_flight(made) -> bool:
    connections = made.source.connections
    others = [task.result() for task in connections.others.values() if task.done()]
    return any(
        "tools/call" in {order.method for order in s.link.running.values()}
        for s in [connections.main, *others]
    )


async def test_changes_of_a_modern_server_are_heard_and_announced(both_eras: Upstream) -> None:
    async with connected(url=both_eras.url) as made:
        watching = asyncio.create_task(made.source.watch())
        before = len(made.source.tools.definitions)

        async def announced() -> bool:
            await made.call("grow")
            return bool(made.announced)

        await until(announced)
        assert len(made.announced[-1]) > before
        watching.cancel()


async def test_a_subscribed_resource_of_a_modern_server_is_heard_of(both_eras: Upstream) -> None:
    async with connected(url=both_eras.url) as made:
        heard: list[tuple[str, object]] = []
        undo = made.source.listen(lambda method, params: heard.append((method, params)))
        watching = asyncio.create_task(made.source.watch())
        deadline = asyncio.get_running_loop().time() + 10
        assert (
            await made.source.forward("resources/subscribe", {"uri": "test://note"}, None, deadline) == b"{}"
        )

        async def is_heard() -> bool:
            await made.call("touch")
            return ("notifications/resources/updated", {"uri": "test://note"}) in heard

        assert await until(is_heard)
        undo()
        watching.cancel()


async def test_resources_and_prompts_are_listed_and_forwarded(both_eras: Upstream) -> None:
    async with connected(url=both_eras.url) as made:
        source, deadline = made.source, asyncio.get_running_loop().time() + 10
        assert [entry["uri"] for entry in source.offers("resources")] == ["test://note"]
        assert [entry["name"] for entry in source.offers("prompts")] == ["hello"]
        assert source.offers("resourceTemplates") == ()
        assert "tools" in source.capabilities()
        read = await source.forward("resources/read", {"uri": "test://note"}, modern(), deadline)
        assert b"a note" in read
        assert b"say hello" in await source.forward("prompts/get", {"name": "hello"}, None, deadline)


async def test_an_argument_is_repeated_in_the_header_its_schema_names(both_eras: Upstream) -> None:
    async with connected(url=both_eras.url) as made:
        assert await made.text("region", {"region": "eu"}) == "eu"


async def test_an_error_result_is_a_result_and_a_protocol_error_names_the_server(both_eras: Upstream) -> None:
    async with connected(url=both_eras.url, name="Test server") as made:
        assert (await made.call("fail")).is_error
        assert not (await made.call("era")).is_error
        with pytest.raises(UpstreamError, match="Test server: that is not possible") as caught:
            await made.call("refuse")
        assert caught.value.details == {
            "server": "Test server",
            "code": -32602,
            "data": {"why": "because"},
        }


async def test_a_child_of_both_eras_gets_a_second_process_for_callers_that_are_asked() -> None:
    async with connected(**SDK_STDIO) as made:
        assert await made.text("era") == "2026-07-28"
        assert await made.text("push", conversation=Conversation()) == "hello Ada"
        assert len(made.source.connections.others) == 1
        assert await made.text("echo", {"text": "hi"}, conversation=modern()) == "hi"
