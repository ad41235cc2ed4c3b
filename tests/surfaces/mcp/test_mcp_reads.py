"""Resources and prompts: reading one is a call like any other, decided by the rules and kept on record."""

from pathlib import Path
from typing import Any

import pytest
from tests.surfaces.mcp.mcp_client import client_of
from tests.surfaces.mcp.mcp_small import ALLOW, ASK, Cupboard, SmallGate, caller, small_gate

from agent_gate.core.call import Caller
from agent_gate.policy.rule import make_rule

READ = {"contents": [{"uri": "lab://a", "text": "contents of a"}]}
SAID = {"messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}]}


def lab() -> Cupboard:
    source = Cupboard()
    source.context = {
        "resources": [{"uri": "lab://a", "name": "a"}, {"uri": "lab://secret/b", "name": "b"}],
        "resourceTemplates": [{"uriTemplate": "lab://secret/{x}", "name": "t"}],
        "prompts": [{"name": "greet"}, {"name": "curse"}],
    }
    source.answers = {"resources/read": READ, "prompts/get": SAID}
    return source


async def rows(gate: SmallGate) -> list[tuple[str, str]]:
    await gate.store.flush()
    found = await gate.store.read("SELECT state, json_extract(body, '$.signature') FROM record ORDER BY seq")
    return [(row[0], row[1]) for row in found]


async def test_what_was_read_is_on_record_with_what_was_asked(tmp_path: Path) -> None:
    async with small_gate(tmp_path, lab()) as gate, client_of(gate) as client:
        assert (await client.ask("resources/read", uri="lab://a")).result == READ
        said = await client.ask("prompts/get", name="lab__greet", arguments={"who": "x"})
        assert said.result == SAID
        assert await rows(gate) == [
            ("dispatching", "lab__resources/read(uri=lab://a)"),
            ("completed", None),
            ("dispatching", 'lab__prompts/get(arguments={"who":"x"}, name=greet)'),
            ("completed", None),
        ]


WHY = "Nobody needs to read this"
DENIED = (
    make_rule(pattern="lab__resources/read(uri=lab://secret/*", action="deny", description=WHY),
    make_rule(pattern="*__prompts/get(*name=curse)", action="deny", description=WHY),
    *ALLOW,
)


async def test_what_a_rule_denies_is_not_listed_and_not_read(tmp_path: Path) -> None:
    source = lab()
    async with small_gate(tmp_path, source, rules=DENIED) as gate, client_of(gate) as client:
        for request in (
            {"method": "resources/read", "uri": "lab://secret/b"},
            {"method": "resources/read", "uri": "lab://secret/c"},
            {"method": "prompts/get", "name": "lab__curse"},
        ):
            error = (await client.ask(**request)).error
            assert (error["data"]["code"], error["data"]["details"]) == ("FORBIDDEN", {"reason": WHY})
        assert not source.forwarded
        assert [state for state, _ in await rows(gate)] == ["refused"] * 3
        resources = (await client.ask("resources/list")).result["resources"]
        prompts = (await client.ask("prompts/list")).result["prompts"]
        templates = (await client.ask("resources/templates/list")).result["resourceTemplates"]
        assert [one["uri"] for one in resources] == ["lab://a"]
        assert [one["name"] for one in prompts] == ["lab__greet"]
        assert templates == []


COMPLETIONS = (
    ({"type": "ref/prompt", "name": "lab__curse"}, {"type": "ref/prompt", "name": "lab__greet"}),
    ({"type": "ref/resource", "uri": "lab://secret/{x}"}, {"type": "ref/resource", "uri": "lab://a"}),
)


@pytest.mark.parametrize(("secret", "free"), COMPLETIONS, ids=["prompt", "resource"])
async def test_what_a_rule_denies_is_not_completed(tmp_path: Path, secret: Any, free: Any) -> None:
    source = lab()
    source.answers["completion/complete"] = {"completion": {"values": ["plans.txt"]}}
    async with small_gate(tmp_path, source, rules=DENIED) as gate, client_of(gate) as client:
        argument = {"name": "x", "value": ""}
        refused = await client.ask("completion/complete", ref=secret, argument=argument)
        assert refused.error["data"]["code"] == "FORBIDDEN"
        assert refused.error["data"]["details"] == {"reason": WHY}
        assert source.forwarded == []
        completed = await client.ask("completion/complete", ref=free, argument=argument)
        assert completed.result["completion"]["values"] == ["plans.txt"]


async def test_changes_of_what_a_rule_denies_are_not_told(tmp_path: Path) -> None:
    source, secret = lab(), "lab://secret/b"
    async with small_gate(tmp_path, source, rules=DENIED) as gate, client_of(gate) as client:
        wanted = {"resourceSubscriptions": [secret, "lab://a"]}
        modern = await client.modern("subscriptions/listen", notifications=wanted)
        assert (await modern.event())["method"] == "notifications/subscriptions/acknowledged"
        await client.initialize()
        own = await client.listen()
        refused = await client.ask("resources/subscribe", uri=secret)
        assert refused.error["data"]["code"] == "FORBIDDEN"
        assert refused.error["data"]["details"] == {"reason": WHY}
        assert (await client.ask("resources/subscribe", uri="lab://a")).result == {}
        for uri in secret, "lab://a":
            source.announce("notifications/resources/updated", uri=uri)
        for stream in own, modern:
            assert (await stream.event())["params"]["uri"] == "lab://a"
        assert {params["uri"] for _, params in source.forwarded} == {"lab://a"}


async def test_a_rule_for_everything_of_a_server_covers_what_is_read_too(tmp_path: Path) -> None:
    rules = (make_rule(pattern="lab__*", action="allow"),)
    async with small_gate(tmp_path, lab(), rules=rules) as gate, client_of(gate) as client:
        assert (await client.ask("resources/read", uri="lab://a")).result == READ
        assert (await client.ask("prompts/get", name="lab__greet", arguments={"who": "x"})).result == SAID


async def test_a_read_that_no_rule_names_waits_for_a_person(tmp_path: Path) -> None:
    source = lab()
    async with (
        small_gate(tmp_path, source, rules=(), hold=0.05) as gate,
        client_of(gate) as client,
    ):
        for _ in range(2):
            error = (await client.ask("resources/read", uri="lab://a")).error
            assert "A person is being asked" in error["message"]
            assert error["data"]["retryable"] is True
        assert len(gate.inbox.open()) == 1
        assert (await gate.approval()).signature == "lab__resources/read(uri=lab://a)"
        assert not source.forwarded
        await gate.approve_and_wait()
        done = (await client.call("gate_result", id=error["data"]["details"]["call"])).result
        assert done["structuredContent"] == READ
        assert len(source.forwarded) == 1


async def test_a_client_of_the_newer_revision_comes_back_for_what_it_may_read(tmp_path: Path) -> None:
    source = lab()
    async with (
        small_gate(tmp_path, source, rules=ASK, hold=0.05) as gate,
        client_of(gate) as client,
    ):
        waiting = (await client.modern("resources/read", uri="lab://a")).result
        assert waiting["resultType"] == "input_required"
        await gate.approve_and_wait()
        state = waiting["requestState"]
        done = (await client.modern("resources/read", uri="lab://a", requestState=state)).result
        assert done["contents"] == READ["contents"]
        assert (done["resultType"], done["cacheScope"]) == ("complete", "private")
        assert len(source.forwarded) == 1
        other = await client.modern("resources/read", uri="lab://secret/b", requestState=state)
        assert other.error["code"] == -32602


@pytest.mark.parametrize(
    ("method", "params", "asked"),
    [
        ("resources/read", {"uri": "lab://nowhere"}, "resources/read"),
        ("prompts/get", {"name": "nothing"}, "prompts/get"),
        (
            "tools/call",
            {"name": "lab__resources/read", "arguments": {"uri": "lab://a"}},
            "lab__resources/read",
        ),
    ],
)
async def test_what_is_not_there_is_refused_and_on_record(
    tmp_path: Path, method: str, params: dict[str, Any], asked: str
) -> None:
    source = lab()
    async with small_gate(tmp_path, source) as gate, client_of(gate) as client:
        assert (await client.ask(method, **params)).error["code"] in (-32602, -32002)
        [(state, signature)] = await rows(gate)
        assert state == "refused"
        assert signature.startswith(asked)
        assert not source.forwarded


async def test_reads_count_against_the_quota_and_carry_no_state_of_the_clients_making(tmp_path: Path) -> None:
    source = lab()
    callers = (Caller(name="anna", calls_per_minute=1), caller("bert"))
    async with small_gate(tmp_path, source, callers=callers) as gate, client_of(gate) as client:
        meta = {"requestState": "forged", "mine": 1}
        assert (await client.ask("resources/read", uri="lab://a", _meta=meta)).result == READ
        assert source.forwarded == [("resources/read", {"uri": "lab://a", "_meta": {"mine": 1}})]
        error = (await client.ask("resources/read", uri="lab://a")).error
        assert error["data"]["code"] == "RATE_LIMITED"
