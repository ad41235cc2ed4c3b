"""Rules decide over MCP, in both eras, what they decide by themselves; nothing denied or asked reaches the server."""

from pathlib import Path

import pytest
from tests.hotpath.hot_gate import ERAS, code_of, connected, post, running

from agent_gate.app import Gateway
from agent_gate.audit.query import search
from agent_gate.policy import Subject

RULES = """
defaults: [{pattern: "*", action: ask}]
rules:
  - {pattern: "up__echo(text=secret*)", action: deny}
  - {pattern: "up__echo", action: allow}
  - {pattern: "up__echo(*)", action: allow}
  - {pattern: "up__wipe(*)", action: deny}
  - {pattern: "up__slow(text=now)", action: allow}
"""
CALLS = [
    ("up__echo", {"text": "hello"}, "ok"),
    ("up__echo", {"text": "secret plan"}, "FORBIDDEN"),
    ("up__echo", {"text": "a secret"}, "ok"),
    ("up__echo", {"text": "hello", "more": 1}, "ok"),
    ("up__echo", {"text": "x), up__wipe(text=y"}, "ok"),
    ("up__wipe", {"text": "all"}, "FORBIDDEN"),
    ("up__slow", {"text": "later"}, "waits"),
    ("up__slow", {"text": "now"}, "ok"),
    ("up__echo", {"text": 5}, "INVALID_ARGS"),
    ("up__echo", {}, "INVALID_ARGS"),
    ("up__echo", None, "INVALID_ARGS"),
    ("up__nothing", {"text": "x"}, "-32602"),
    ("echo", {"text": "x"}, "-32602"),
]
EFFECTS = {"ok": "allow", "FORBIDDEN": "deny", "waits": "ask"}


@pytest.mark.parametrize("era", ERAS)
async def test_every_call_over_mcp_ends_as_the_rules_say(tmp_path: Path, era: str) -> None:
    async with running(tmp_path, RULES) as (gateway, upstream, port), connected(port) as wire:
        upstream.release.set()
        for tool, arguments, expected in CALLS:
            _, answer = await wire.ask(post(tool, arguments, era))
            assert code_of(answer) == expected, (tool, arguments, answer)
        assert sorted(upstream.calls) == ["echo", "echo", "echo", "echo", "slow"]
        assert await decisions(gateway) == [
            EFFECTS[expected] for *_, expected in CALLS if expected in EFFECTS
        ]


async def test_the_engine_by_itself_decides_the_same(tmp_path: Path) -> None:
    async with running(tmp_path, RULES) as (gateway, _, _):
        for name, arguments, expected in CALLS:
            tool = gateway.supervisor.shelf.catalog.names.get(name)
            if tool is not None and expected in EFFECTS and arguments is not None:
                decided = gateway.in_force.terms.policy.decide(
                    Subject(tool, arguments, tool.sign(arguments), "tester")
                )
                assert decided.effect == EFFECTS[expected]


@pytest.mark.parametrize("era", ERAS)
async def test_changed_rules_count_from_the_next_call_on(tmp_path: Path, era: str) -> None:
    async with running(tmp_path, RULES) as (gateway, _, port), connected(port) as wire:
        assert code_of((await wire.ask(post("up__echo", {"text": "a"}, era)))[1]) == "ok"
        (tmp_path / "permissions.yaml").write_text("rules: [{pattern: '*', action: deny}]\n")
        await gateway.reload()
        assert code_of((await wire.ask(post("up__echo", {"text": "a"}, era)))[1]) == "FORBIDDEN"


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_over_its_quota_is_refused_before_anything_else(tmp_path: Path, era: str) -> None:
    async with running(tmp_path, RULES) as (gateway, upstream, port), connected(port) as wire:
        caller = gateway.ways_in.tokens.callers()[0]
        object.__setattr__(caller, "calls_per_minute", 2)
        codes = [code_of((await wire.ask(post("up__echo", {"text": "a"}, era)))[1]) for _ in range(3)]
        assert codes == ["ok", "ok", "RATE_LIMITED"]
        assert len(upstream.calls) == 2


async def decisions(gateway: Gateway) -> list[str]:
    """The decisions on record, in the order of their calls."""
    await gateway.kept.store.flush()
    rows = (await search(gateway.kept.store, limit=1000)).rows[::-1]
    bodies = [row.decoded()["body"] for row in rows]
    return [body["decision"] for body in bodies if "decision" in body]
