"""`tools/list`, resources and prompts: what is shown, to whom, and who hears that it changed."""

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.surfaces.mcp.mcp_client import client_of, decode, encode, text_of
from tests.surfaces.mcp.mcp_gate import OTHER_TOKEN, TOKEN, config_text, running_gate
from tests.surfaces.mcp.mcp_small import ALLOW, ANNA, ASK, BERT, Cupboard, SmallGate, caller, small_gate
from tests.waiting import PATIENCE, until

from agent_gate.access.tokens import Credential, digest
from agent_gate.core.call import Call, Caller
from agent_gate.core.traits import Traits
from agent_gate.errors import DependencyUnavailable, UpstreamError
from agent_gate.mcp.revisions import NEWEST
from agent_gate.surfaces.mcp import ModeReply
from agent_gate.surfaces.mcp import surface as surface_module
from agent_gate.surfaces.mcp.changes import subscriptions as subscriptions_module
from agent_gate.surfaces.mcp.context.templates import fits
from agent_gate.surfaces.mcp.modes import HoldRequest
from agent_gate.surfaces.mcp.surface import MOST_LISTENS
from agent_gate.surfaces.mcp.tools import lists

SCHEMA = {"type": "object", "$defs": {"z": {"const": 1}}, "properties": {"b": {}, "a": {"$ref": "#/$defs/z"}}}


async def test_an_entry_shows_the_tool_as_its_source_gave_it(tmp_path: Path) -> None:
    lab = Cupboard()
    lab.tool(
        "Make It",
        description="Makes it",
        input_schema=SCHEMA,
        output_schema={"type": "array"},
        annotations={"readOnlyHint": True},
        icons=({"src": "x"},),
        meta={"ui": {"a": 1}, "io.modelcontextprotocol/serverInfo": {"name": "someone else"}},
    )
    lab.tool("plain", traits=Traits(read_only=True), output_schema={"type": "object"})
    async with small_gate(tmp_path, lab) as gate, client_of(gate) as client:
        reply = await client.ask("tools/list")
        made, plain, waiting = reply.result["tools"]
        assert encode(SCHEMA) in reply.body
        assert (made["name"], made["title"]) == ("lab__Make_It", "Make It")
        assert made["annotations"] == {"readOnlyHint": True}
        assert made["_meta"] == {"ui": {"a": 1}, "agent-gate/tool-id": gate.shelf.catalog.tools[0].id}
        assert "outputSchema" not in made, "a handshake client may refuse the whole list for it"
        assert plain["outputSchema"] == {"type": "object"}
        assert plain["annotations"]["readOnlyHint"] is True
        assert waiting["name"] == "gate_result"
        modern = (await client.modern("tools/list")).result
        assert modern["tools"][0]["outputSchema"] == {"type": "array"}
        assert (modern["cacheScope"], modern["resultType"]) == ("private", "complete")


async def test_a_list_is_made_once_per_catalog(tmp_path: Path) -> None:
    lab = Cupboard()
    lab.tool("one")
    async with small_gate(tmp_path, lab) as gate:
        anna = caller("anna")
        first = gate.surface.lists.page(anna, "full", NEWEST)
        gate.publish()
        assert gate.surface.lists.page(anna, "full", NEWEST) is first
        lab.tool("two")
        gate.publish()
        assert gate.surface.lists.page(anna, "full", NEWEST) != first


async def test_a_long_list_comes_in_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "PAGE", 3)
    lab = Cupboard()
    for number in range(7):
        lab.tool(f"t{number}")
    async with small_gate(tmp_path, lab) as gate, client_of(gate) as client:
        names, cursor = [], None
        while True:
            page = (await client.ask("tools/list", **({"cursor": cursor} if cursor else {}))).result
            names += [tool["name"] for tool in page["tools"]]
            cursor = page.get("nextCursor")
            if cursor is None:
                break
        assert names == [*(f"lab__t{number}" for number in range(7)), "gate_result"]
        for wrong in "x", "1", "999", "-3", 5:
            refused = await client.ask("tools/list", cursor=wrong)
            assert (refused.status, refused.error["code"]) == (200, -32602)


def contexts() -> tuple[Cupboard, Cupboard]:
    lab, attic = Cupboard("my-lab"), Cupboard("attic", prefix=False)
    lab.context = {
        "prompts": [{"name": "greet", "_meta": {"io.modelcontextprotocol/x": 1, "y": 2}}],
        "resources": [{"uri": "shared://a", "name": "lab's"}],
        "resourceTemplates": [{"uriTemplate": "lab://{id}/data", "name": "t"}],
    }
    attic.context = {
        "prompts": [{"name": "greet"}],
        "resources": [{"uri": "shared://a", "name": "attic's"}, {"uri": "attic://b", "name": "b"}],
    }
    return lab, attic


async def test_prompts_are_renamed_like_tools_and_reach_their_own_source(tmp_path: Path) -> None:
    lab, attic = contexts()
    lab.answers["prompts/get"] = {"messages": []}
    async with small_gate(tmp_path, lab, attic) as gate, client_of(gate) as client:
        prompts = (await client.ask("prompts/list")).result["prompts"]
        assert [prompt["name"] for prompt in prompts] == ["greet", "my_lab__greet"]
        assert prompts[1]["_meta"] == {"y": 2}
        assert (await client.ask("prompts/get", name="my_lab__greet")).result == {"messages": []}
        assert lab.forwarded[-1][1]["name"] == "greet"
        assert (await client.ask("prompts/get", name="nope")).error["code"] == -32602
        ref = {"type": "ref/prompt", "name": "my_lab__greet"}
        await client.ask("completion/complete", ref=ref, argument={"name": "a", "value": "b"})
        method, params = lab.forwarded[-1]
        assert (method, params["ref"]["name"]) == ("completion/complete", "greet")


async def test_a_resource_is_read_from_the_source_that_lists_it_or_whose_template_it_fits(
    tmp_path: Path,
) -> None:
    lab, attic = contexts()
    for source in lab, attic:
        source.answers["resources/read"] = {"contents": [{"uri": "u", "text": source.key}]}
    async with small_gate(tmp_path, lab, attic) as gate, client_of(gate) as client:
        listed = (await client.ask("resources/list")).result["resources"]
        assert [entry["name"] for entry in listed] == ["attic's", "b"]
        for uri, owner in (("shared://a", "attic"), ("attic://b", "attic"), ("lab://7/data", "my-lab")):
            found = (await client.ask("resources/read", uri=uri)).result["contents"][0]["text"]
            assert found == owner
        assert (await client.ask("resources/read", uri="lab://7/other")).error["code"] == -32002
        modern = await client.modern("resources/read", uri="lab://7/other")
        assert modern.error["code"] == -32602
        read = (await client.modern("resources/read", uri="attic://b")).result
        assert (read["ttlMs"], read["cacheScope"], read["resultType"]) == (0, "private", "complete")


async def test_a_resource_that_no_list_has_is_read_from_the_source_that_led_to_it(tmp_path: Path) -> None:
    lab, attic = contexts()
    lab.context = {**lab.context, "links": ["made://today"]}
    attic.context = {**attic.context, "links": ["lab://7/data"]}
    for source in lab, attic:
        source.answers["resources/read"] = {"contents": [{"uri": "u", "text": source.key}]}
    async with small_gate(tmp_path, lab, attic) as gate, client_of(gate) as client:
        for uri, owner in (
            ("made://today", "my-lab"),
            ("lab://7/data", "attic"),
            ("lab://8/data", "my-lab"),
        ):
            found = (await client.ask("resources/read", uri=uri)).result["contents"][0]["text"]
            assert found == owner


async def test_out_of_sight_resources_and_prompts_do_not_exist(tmp_path: Path) -> None:
    callers = (caller("anna", namespaces=frozenset({"attic"})), caller("bert"))
    async with (
        small_gate(tmp_path, *contexts(), callers=callers) as gate,
        client_of(gate) as client,
    ):
        assert len((await client.ask("prompts/list")).result["prompts"]) == 1
        assert (await client.ask("resources/templates/list")).result["resourceTemplates"] == []
        assert (await client.ask("resources/read", uri="lab://7/data")).error["code"] == -32002


async def test_a_source_that_fails_is_an_error_of_that_request(tmp_path: Path) -> None:
    lab, attic = contexts()
    async with small_gate(tmp_path, lab, attic) as gate, client_of(gate) as client:
        attic.answers["resources/read"] = DependencyUnavailable("attic is not available")
        down = (await client.ask("resources/read", uri="attic://b")).error
        assert (down["code"], down["data"]["code"]) == (-32603, "DEPENDENCY_UNAVAILABLE")
        attic.answers["resources/read"] = UpstreamError("attic: gone", details={"code": -32002})
        assert (await client.ask("resources/read", uri="attic://b")).error["code"] == -32002
        assert (await client.modern("resources/read", uri="attic://b")).error["code"] == -32602


async def test_a_session_hears_of_changed_lists_once_and_of_its_own_resources(tmp_path: Path) -> None:
    lab, attic = contexts()
    async with small_gate(tmp_path, lab, attic) as gate, client_of(gate) as client:
        await client.initialize()
        assert (await client.ask("resources/subscribe", uri="attic://b")).result == {}
        assert ("resources/subscribe", {"uri": "attic://b"}) in attic.forwarded
        stream = await client.listen()
        lab.announce("notifications/prompts/list_changed")
        lab.context["prompts"] = []
        lab.announce("notifications/prompts/list_changed")
        lab.announce("notifications/prompts/list_changed")
        attic.announce("notifications/resources/updated", uri="shared://a")
        attic.announce("notifications/resources/updated", uri="attic://b")
        lab.tool("new")
        gate.publish()
        gate.publish()
        heard = [await stream.event() for _ in range(3)]
        assert sorted(event["method"] for event in heard) == [
            "notifications/prompts/list_changed",
            "notifications/resources/updated",
            "notifications/tools/list_changed",
        ]
        assert (await client.ask("resources/unsubscribe", uri="attic://b")).result == {}
        assert attic.forwarded[-1] == ("resources/unsubscribe", {"uri": "attic://b"})


def come_back(gate: SmallGate, source: Cupboard) -> None:
    """Have a source be away for a moment."""
    for available in False, True:
        source.available = available
        gate.publish()


async def told(source: Cupboard, *expected: tuple[str, str]) -> bool:
    """True once a source was told exactly this of its resources; the test's own deadline bounds it."""
    wanted = [(f"resources/{what}", {"uri": uri}) for what, uri in expected]
    await until(lambda: source.forwarded == wanted)
    return True


async def test_a_source_that_comes_back_is_asked_again_to_watch_what_clients_subscribed_to(
    tmp_path: Path,
) -> None:
    lab, attic = contexts()
    async with small_gate(tmp_path, lab, attic) as gate, client_of(gate) as client:
        await client.initialize()
        await client.ask("resources/subscribe", uri="attic://b")
        attic.forwarded.clear()
        come_back(gate, attic)
        assert await told(attic, ("subscribe", "attic://b"))
        assert lab.forwarded == []


async def test_a_caller_who_does_not_see_a_resource_cannot_end_the_subscription_of_another(
    tmp_path: Path,
) -> None:
    lab, attic = contexts()
    callers = (caller("anna"), caller("bert", namespaces=frozenset({"my-lab"})))
    async with (
        small_gate(tmp_path, lab, attic, callers=callers) as gate,
        client_of(gate) as first,
        client_of(gate) as second,
        client_of(gate, token=BERT) as bert,
    ):
        for client in first, second:
            await client.initialize()
            await client.ask("resources/subscribe", uri="attic://b")
        stream = await bert.modern(
            "subscriptions/listen", notifications={"resourceSubscriptions": ["attic://b"]}
        )
        await stream.event()
        stream.hang_up()
        await until(lambda: len(gate.surface.notices) <= 2)
        await first.ask("resources/unsubscribe", uri="attic://b")
        assert await told(attic, ("subscribe", "attic://b"))
        await second.send("DELETE", headers=second.session_headers())
        assert await told(attic, ("subscribe", "attic://b"), ("unsubscribe", "attic://b"))


async def test_each_source_that_has_a_uri_is_asked_to_watch_it_for_those_who_see_it(tmp_path: Path) -> None:
    lab, attic = contexts()
    callers = tuple(
        caller(name, namespaces=frozenset({space})) for name, space in (("anna", "my-lab"), ("bert", "attic"))
    )
    async with (
        small_gate(tmp_path, lab, attic, callers=callers) as gate,
        client_of(gate) as anna,
        client_of(gate, token=BERT) as bert,
    ):
        for client in anna, bert:
            await client.initialize()
            assert (await client.ask("resources/subscribe", uri="shared://a")).result == {}
        for source in lab, attic:
            assert await told(source, ("subscribe", "shared://a"))


async def test_a_source_that_a_reload_replaced_is_asked_to_watch_in_the_place_of_the_old_one(
    tmp_path: Path,
) -> None:
    lab, attic = contexts()
    async with small_gate(tmp_path, lab, attic) as gate, client_of(gate) as client:
        await client.initialize()
        await client.ask("resources/subscribe", uri="attic://b")
        _, fresh = contexts()
        gate.sources["attic"] = fresh
        come_back(gate, fresh)
        assert await told(fresh, ("subscribe", "attic://b"))


async def test_a_subscription_that_fails_leaves_the_next_one_to_try_again(tmp_path: Path) -> None:
    class Slow(Cupboard):
        """Refuses the first request to watch, once a second one has come."""

        both = asyncio.Event()

        async def forward(self, method: str, *more: Any) -> bytes:
            body = await super().forward(method, *more)
            if len(self.forwarded) == 1:
                await self.both.wait()
                raise DependencyUnavailable("attic is not available")
            return body

    attic = Slow("attic")
    attic.context = contexts()[1].context
    async with (
        small_gate(tmp_path, attic) as gate,
        client_of(gate) as first,
        client_of(gate) as second,
    ):
        for client in first, second:
            await client.initialize()
        failing = asyncio.create_task(first.ask("resources/subscribe", uri="attic://b"))
        await until(lambda: attic.forwarded)
        assert (await second.ask("resources/subscribe", uri="attic://b")).result == {}
        attic.both.set()
        assert (await failing).error["data"]["code"] == "DEPENDENCY_UNAVAILABLE"
        assert await told(attic, ("subscribe", "attic://b"), ("subscribe", "attic://b"))


async def test_a_listener_hears_no_more_of_what_a_reload_took_from_its_agent(tmp_path: Path) -> None:
    lab, attic = contexts()
    async with small_gate(tmp_path, lab, attic) as gate, client_of(gate) as client:
        wanted = {"resourceSubscriptions": ["attic://b", "shared://a"]}
        stream = await client.modern("subscriptions/listen", notifications=wanted)
        await stream.event()
        narrow = caller("anna", namespaces=frozenset({"my-lab"}))
        gate.surface.door.tokens.replace([Credential(digest(ANNA), narrow)])
        gate.surface.refresh()
        attic.announce("notifications/resources/updated", uri="attic://b")
        lab.announce("notifications/resources/updated", uri="shared://a")
        assert (await stream.event())["params"]["uri"] == "shared://a"


@pytest.mark.parametrize("left", [{}, {"other": {"token": "another-token-of-the-same-agent"}}])
async def test_what_a_revoked_token_has_open_ends_and_nothing_of_others(
    tmp_path: Path, left: dict[str, Any]
) -> None:
    class Front:
        def __init__(self, server: Any) -> None:
            self.server = server

    config = config_text({})
    async with running_gate(tmp_path, config) as gate:
        front: Any = Front(gate.gateway.listeners.public)
        async with (
            client_of(front, token=OTHER_TOKEN) as revoked,
            client_of(front, token=TOKEN) as client,
        ):
            await revoked.initialize()
            await client.initialize()
            wanted = {"toolsListChanged": True}
            ending = (
                await revoked.listen(),
                await revoked.modern("subscriptions/listen", notifications=wanted),
            )
            await ending[1].event()
            going_on = await client.listen()
            agents = decode(config)["agents"]
            kept = {"tester": agents["tester"], **left}
            (tmp_path / "config.yaml").write_text(config_text({}, agents=kept))
            await gate.gateway.reload()
            async with asyncio.timeout(PATIENCE):
                assert await ending[0].event() is None
                assert [set(event) for event in await ending[1].events()] == [{"jsonrpc", "id", "result"}]
            assert len(gate.gateway.ways_in.mcp.sessions) == 1
            assert not going_on.reader.at_eof()


async def test_an_agent_has_so_many_subscriptions_and_a_session_so_many_resources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surface_module, "MOST_LISTENS", 2)
    monkeypatch.setattr(subscriptions_module, "MOST_URIS", 1)
    wanted = {"toolsListChanged": True}

    lab, attic = contexts()
    async with (
        small_gate(tmp_path, lab, attic) as gate,
        client_of(gate) as client,
        client_of(gate, token=BERT) as bert,
    ):
        for _ in range(2):
            assert (await client.modern("subscriptions/listen", notifications=wanted)).streams
        third = await client.modern("subscriptions/listen", notifications=wanted)
        assert "Too many subscriptions are open" in third.error["message"]
        assert (await bert.modern("subscriptions/listen", notifications=wanted)).streams
        await client.initialize()
        assert (await client.ask("resources/subscribe", uri="attic://b")).result == {}
        second = await client.ask("resources/subscribe", uri="shared://a")
        assert "unsubscribe from one first" in second.error["message"]
        await client.ask("resources/unsubscribe", uri="attic://b")
        assert (await client.ask("resources/subscribe", uri="shared://a")).result == {}


async def test_sessions_take_no_place_of_subscriptions(tmp_path: Path) -> None:
    async with small_gate(tmp_path, Cupboard()) as gate, client_of(gate) as client:
        for _ in range(MOST_LISTENS):
            await client.initialize()
        stream = await client.modern("subscriptions/listen", notifications={"toolsListChanged": True})
        assert stream.streams


async def test_a_second_stream_of_a_session_takes_over_from_the_first(tmp_path: Path) -> None:
    lab = Cupboard()
    async with small_gate(tmp_path, lab) as gate, client_of(gate) as client:
        await client.initialize()
        first, second = await client.listen(), await client.listen()
        assert await first.event() is None
        lab.tool("new")
        gate.publish()
        assert (await second.event())["method"] == "notifications/tools/list_changed"


class Meta:
    """A mode with one tool of its own, which runs another."""

    def __init__(self) -> None:
        self.gate: Any = None

    def list(self, caller: Caller) -> bytes | None:
        return encode([{"name": "run", "inputSchema": {"type": "object"}}])

    def call(self, call: Call, resumes: str | None, held: HoldRequest) -> Awaitable[ModeReply] | None:
        if call.tool != "run":
            return None
        if resumes is not None:
            return self.gate.calls.await_outcome(resumes, call.caller, wait=0.02)  # type: ignore[no-any-return]
        return self.gate.calls.run(replace(call, tool=call.arguments["tool"], arguments={}), wait=0.02)  # type: ignore[no-any-return]


async def test_a_mode_shows_its_own_tools_and_answers_for_them(tmp_path: Path) -> None:
    lab, mode = Cupboard(), Meta()
    lab.tool("echo")
    async with small_gate(tmp_path, lab, rules=ALLOW, modes={"gateway": mode}) as gate:
        mode.gate = gate
        async with client_of(gate, path="/mcp/gateway") as client, client_of(gate) as full:
            tools = (await client.ask("tools/list")).result["tools"]
            assert [tool["name"] for tool in tools] == ["run"]
            assert (await client.modern("tools/list")).result["resultType"] == "complete"
            assert text_of((await client.call("run", tool="lab__echo")).result) == "{}"
            assert text_of((await client.call("lab__echo")).result) == "{}"
            assert len((await full.ask("tools/list")).result["tools"]) == 2
            assert (await full.call("run", tool="lab__echo")).error["code"] == -32602


async def test_a_mode_resumes_what_its_tool_left_waiting(tmp_path: Path) -> None:
    lab, mode = Cupboard(), Meta()
    lab.tool("echo")
    async with small_gate(tmp_path, lab, rules=ASK, modes={"gateway": mode}) as gate:
        mode.gate = gate
        async with client_of(gate, path="/mcp/gateway") as client:
            arguments = {"tool": "lab__echo"}
            state = (await client.modern_call("run", arguments)).result["requestState"]
            await gate.approve()

            async def completed() -> Any:
                result = (await client.modern_call("run", arguments, requestState=state)).result
                return result if result["resultType"] == "complete" else None

            result = await until(completed)
            assert text_of(result) == "{}"
            assert len(lab.jobs) == 1


@pytest.mark.parametrize(
    ("template", "uri", "fitting"),
    [
        ("test://template/{id}/data", "test://template/7/data", True),
        ("test://template/{id}/data", "test://template/7/8/data", False),
        ("test://template/{id}/data", "test://template//data", False),
        ("file:///{+path}", "file:///a/b/c.txt", True),
        ("repo://{owner}/{path*}", "repo://ada/src/main.py", True),
        ("repo://{owner}/{path*}", "repo://ada", False),
        ("repo://{owner}/{path*}", "repo://ada/", False),
        ("repo://{path*}/raw", "repo://ada/src/raw", True),
        ("repo://{path*}{?ref}", "repo://ada/src?ref=main", True),
        ("repo://{path*}", "repo://ada/src?ref=main", False),
        ("list://{?tag*}", "list://?tag=a&tag=b", True),
        ("dir://x{/path*}", "dir://x/a/b", True),
        ("db://{table}{?limit,offset}", "db://users?limit=3", True),
        ("db://{table}{?limit,offset}", "db://users", True),
        ("db://{table}", "db://users?x=1", False),
        ("a://{x}-{y}", "a://1-2", True),
        ("a://{x}.json", "a://b.json", True),
        ("a://{x}.json", "a://b.xml", False),
        ("plain://x", "plain://x", True),
        ("plain://x", "plain://x/y", False),
        ("a://" + "{x}" * 500, "a://" + "b" * 4000 + "/", False),
    ],
)
def test_whether_a_uri_fits_a_template(template: str, uri: str, fitting: bool) -> None:
    assert fits(template, uri) is fitting


async def test_a_uri_that_would_have_to_be_kept_is_not_endless(tmp_path: Path) -> None:
    attic = Cupboard("attic")
    attic.context = {"resourceTemplates": [{"uriTemplate": "attic://{x}", "name": "t"}]}
    async with small_gate(tmp_path, attic) as gate, client_of(gate) as client:
        long = "attic://" + "x" * 10_000
        wanted = {"resourceSubscriptions": [long]}
        refused = await client.modern("subscriptions/listen", notifications=wanted)
        assert (refused.status, refused.error["code"]) == (400, -32602)
        await client.initialize()
        assert (await client.ask("resources/subscribe", uri=long)).error["code"] == -32602
        assert (await client.ask("resources/subscribe", uri="attic://x")).result == {}
        assert attic.forwarded == [("resources/subscribe", {"uri": "attic://x"})]
