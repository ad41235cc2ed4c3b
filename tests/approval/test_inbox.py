"""Open questions on a real store: what is kept of them, and how many a caller may have."""

import pytest
from tests.approval.test_parts import approval
from tests.calls.small_calls import opened

from agent_gate.approval.inbox import Inbox
from agent_gate.core.approval import Answer
from agent_gate.core.call import Caller, Decision
from agent_gate.core.ports import SystemClock
from agent_gate.errors import Forbidden, RateLimited

EVERYTHING = {
    "caller": Caller(
        name="pi",
        namespaces=frozenset({"home", "garden"}),
        mode="proxy",
        names="tool_id",
        cache_stable=True,
        calls_per_minute=7,
        max_pending=3,
        budget=900,
    ),
    "arguments": {"entity": "light.bedroom", "deep": [{"level": 1.5}, None, True]},
    "decision": Decision(
        effect="ask",
        rule="ask light*",
        where="permissions.yaml:3",
        reason="somebody looks first",
        said="lights are asked about",
        lifetime=60.0,
        approvers=("ann", "bob"),
        via="client",
    ),
    "session": "run-1",
    "surface": "rest",
    "mode": "proxy",
    "sentence": "Turn it on?",
    "secret": frozenset({"code"}),
    "client_id": 7,
    "idempotency_key": "k-1",
    "timeout": 5.0,
    "meta": {"progressToken": 1},
    "trace": "00-" + "a" * 32 + "-" + "b" * 16 + "-01",
}


@pytest.mark.parametrize("asked", [approval(), approval(**EVERYTHING)], ids=["plain", "with everything"])
async def test_a_question_is_the_same_after_a_restart(tmp_path, asked):
    async with opened(tmp_path) as store:
        await Inbox(store, SystemClock()).put(asked)
        again = Inbox(store, SystemClock())
        assert await again.load() == [asked]


async def test_after_a_restart_only_the_rules_approvers_may_answer(tmp_path):
    async with opened(tmp_path) as store:
        await Inbox(store, SystemClock()).put(approval(**EVERYTHING))
        again = Inbox(store, SystemClock())
        [asked] = await again.load()
        again.check_approver(asked, Answer(verdict="approve", person="bob", channel="page"))
        with pytest.raises(Forbidden, match="Only ann, bob may answer this"):
            again.check_approver(asked, Answer(verdict="approve", person="operator", channel="page"))


async def test_a_caller_has_as_many_open_questions_as_it_may_and_no_more(tmp_path):
    async with opened(tmp_path) as store:
        inbox = Inbox(store, SystemClock())
        for name in ("first", "second"):
            inbox.check_room("pi", 2)
            await inbox.put(approval(arguments_hash=name))
        with pytest.raises(RateLimited, match="2 wait for a person already"):
            inbox.check_room("pi", 2)
        inbox.check_room("pi", 0)
        inbox.check_room("another", 2)
