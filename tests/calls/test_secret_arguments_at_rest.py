"""Arguments declared secret are nowhere in plain text on disk, and a call that waited still has them."""

import sqlite3

import pytest

from agent_gate.core.call import State
from agent_gate.core.catalog import Listing, build
from agent_gate.core.tool import Definition
from agent_gate.vault.sealing import SealingKey
from calls.small_calls import NO, YES, SmallCalls, opened, told

CODE = "very-secret-4711"
KEY, OTHER = SealingKey(b"k" * 32), SealingKey(b"o" * 32)
ARGUMENTS = {"door": "front", "code": CODE, "deep": {"door": "back"}}


def gate_of(store, key=KEY, **more):
    gate = SmallCalls(store, action="ask", key=key, **more)
    tool = Definition(name="act", secret=frozenset({"code"}))
    gate.shelf.swap(build([Listing(key="lab", namespace="lab", definitions=[tool])], gate.shelf.catalog))
    return gate


def on_disk(folder):
    """Everything in the folder, the database's log and a copy of it included, that holds the secret."""
    with sqlite3.connect(folder / "gate.db") as database:
        database.execute("VACUUM INTO ?", (str(folder / "copy.db"),))
    database.close()
    found = [file.name for file in folder.iterdir() if CODE.encode() in file.read_bytes()]
    (folder / "copy.db").unlink()
    return found


@pytest.mark.parametrize("answer", [YES, NO])
def test_secret_arguments_are_on_disk_in_no_file_whatever_is_answered(tmp_path, answer):
    async def story():
        async with opened(tmp_path) as store:
            gate = gate_of(store)
            await gate.calls.run(gate.call(arguments=ARGUMENTS), wait=0)
            approval = await gate.asked()
            assert on_disk(tmp_path) == []
            await gate.calls.answer(approval.id, answer)
            await gate.calls.drain(5)
            await store.flush()
            assert [job.arguments["code"] for job in gate.jobs] == ([CODE] if answer is YES else [])
            assert on_disk(tmp_path) == []
        assert on_disk(tmp_path) == []

    told(story)


def test_a_call_that_waited_over_a_restart_runs_with_its_secret(tmp_path):
    async def story():
        async with opened(tmp_path) as store:
            gate = gate_of(store)
            await gate.calls.run(gate.call(arguments=ARGUMENTS), wait=0)
        async with opened(tmp_path) as store:
            gate = gate_of(store)
            await gate.recover()
            [approval] = gate.inbox.open()
            assert approval.arguments == ARGUMENTS
            await gate.calls.answer(approval.id, YES)
            await gate.calls.drain(5)
            assert [job.arguments for job in gate.jobs] == [ARGUMENTS]

    told(story)


def test_a_question_whose_secret_cannot_be_opened_runs_out_and_never_runs(tmp_path, caplog):
    async def story():
        async with opened(tmp_path) as store:
            gate = gate_of(store)
            pending = await gate.calls.run(gate.call(arguments=ARGUMENTS), wait=0)
        async with opened(tmp_path) as store:
            gate = gate_of(store, OTHER)
            await gate.recover()
            [approval] = gate.inbox.open()
            assert approval.expires_at <= gate.clock.now()
            await gate.calls.expire_due()
            assert (await gate.story(pending.call_id))[-1] == State.EXPIRED
            assert gate.jobs == []
        assert "cannot be asked any more" in caplog.text
        assert CODE not in caplog.text

    told(story)
