"""A question holds its call: every field of it survives a restart, and stores of earlier versions are still read."""

import sqlite3
from dataclasses import fields
from pathlib import Path

from tests.calls.small_calls import YES, SmallCalls, opened

from agent_gate.approval.rows import LIVE, SELECT_APPROVALS, approval_of, insert_approval, resolve_approval
from agent_gate.core.approval import Answer, Answered, Approval, Asked, Hashes
from agent_gate.core.call import Call, Caller, Decision, State
from agent_gate.store.migrate import shipped

EARLIER = Path(__file__).parent / "data" / "store-0.1.0.sql"
CALL = Call(
    tool="lab:act",
    arguments={"deep": {"list": [1, None, "ä"]}},
    caller=Caller(name="anna", namespaces=frozenset({"lab"}), mode="proxy", budget=300, cache_stable=True),
    id="1" * 32,
    surface="websocket",
    mode="proxy",
    session="run-1",
    client_id="c1",
    idempotency_key="key",
    timeout=5.0,
    trace="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    continues=True,
    reads=True,
    meta={"note": {"x": 1}},
    filled=frozenset({"deep"}),
)


ASKED = Asked(
    at=1.0,
    expires_at=2.0,
    wire="lab__act",
    sentence="May it?",
    secret=frozenset({"password"}),
    facts={"element": "Buy now"},
    picture="image/png",
    number="47",
    risks=("destructive",),
)
QUESTION = Approval(
    id="2" * 32,
    call=CALL,
    decision=Decision(effect="ask", approvers=("eve",), lifetime=30.0, near="almost"),
    signature="lab__act()",
    hashes=Hashes("a", "d"),
    asked=ASKED,
    gateway="g1",
)


def kept(*approvals: Approval) -> Approval:
    """The question as the store gives it back, put and then ended as it is here."""
    connection = sqlite3.connect(":memory:")
    for migration in shipped():
        connection.executescript(migration.sql)
    asked, *ended = approvals
    for statement in (insert_approval(asked), *map(resolve_approval, ended)):
        connection.execute(statement.sql, statement.params)
    return approval_of(connection.execute(f"{SELECT_APPROVALS} WHERE id = ?", (asked.id,)).fetchone())


def test_every_field_of_a_call_survives_a_restart() -> None:
    plain = Call(tool="", arguments={}, caller=Caller(name=""))
    for name in Call.__struct_fields__:
        assert name in LIVE or getattr(CALL, name) != getattr(plain, name), f"give CALL a {name} of its own"
    assert kept(QUESTION) == QUESTION


def test_how_a_question_was_put_and_how_it_ended_survive_a_restart() -> None:
    for field in fields(Asked):
        assert getattr(ASKED, field.name) not in ("", None, frozenset()), f"give ASKED a {field.name}"
    answer = Answer(
        verdict="approve", person="eve", channel="page", lifetime="hour", reason="fine", terms={"days": 7}
    )
    ended = QUESTION.ended(State.APPROVED, answer, 3.0)
    for field in fields(Answered):
        assert getattr(ended.answered, field.name) != getattr(Answered(), field.name), (
            f"give it a {field.name}"
        )
    assert kept(QUESTION, ended) == ended


async def test_a_store_of_version_0_1_0_goes_on_where_it_was(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "gate.db").executescript(EARLIER.read_text()).connection.close()
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask")
        await gate.grants.load()
        assert (await gate.recover())["approved"] == 1
        [asked] = gate.inbox.open()
        assert asked.call == Call(
            tool=asked.tool_id,
            arguments={"n": 1, "deep": {"list": [1, None, "ä"]}},
            caller=Caller(
                name="anna",
                max_pending=5,
                calls_per_minute=0,
                namespaces=frozenset({"lab"}),
                mode="proxy",
                budget=300,
            ),
            id=f"{1:032x}",
            surface="websocket",
            mode="proxy",
            session="run-1",
            client_id="c1",
            idempotency_key="key-1",
            timeout=5.0,
            trace="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            meta={"note": {"x": 1}},
        )
        await gate.calls.answer(asked.id, YES)
        outcomes = [await gate.calls.await_outcome(f"{n:032x}", asked.caller, wait=10) for n in (1, 2, 3)]
        assert [outcome.state for outcome in outcomes] == [State.COMPLETED, State.COMPLETED, State.DENIED]
        assert sorted(job.arguments["n"] for job in gate.jobs) == [1, 2]
        ended = {a.call_id: a for a in await gate.inbox.list_past(ended=True)}
        assert ended[f"{3:032x}"].answered.reason == "not now"
