"""Arguments declared secret are nowhere in plain text on disk, and a call that waited still has them."""

import sqlite3
from contextlib import asynccontextmanager

import pytest
from tests.calls.small_calls import NO, YES, SmallCalls, opened

from agent_gate.approval.sealed import FIELD, owner_of
from agent_gate.cli.commands.backup import copy_store
from agent_gate.core.call import State
from agent_gate.core.catalog import Listing, build
from agent_gate.core.ports import SystemClock
from agent_gate.core.tool import Definition
from agent_gate.store.statement import Statement
from agent_gate.vault.vault import Vault

CODE = "very-secret-4711"
ARGUMENTS = {"door": "front", "code": CODE, "deep": {"door": "back"}}


async def vault_of(store, folder, env=None):
    vault = Vault(store, SystemClock(), folder, "home", env or {})
    await vault.open_or_say_why()
    return vault


@asynccontextmanager
async def gate_in(folder, env=None, **more):
    """A gateway's calls over the store of this folder, with the vault beside it."""
    async with opened(folder) as store:
        vault = await vault_of(store, folder, env)
        gate = SmallCalls(store, action="ask", vault=vault, **more)
        tool = Definition(name="act", secret=frozenset({"code"}))
        gate.shelf.swap(build([Listing(key="lab", namespace="lab", definitions=[tool])], gate.shelf.catalog))
        gate.vault = vault
        yield gate


def on_disk(folder):
    """Everything in the folder, the database's log and a backup of it included, that holds the secret."""
    copy_store(folder / "gate.db", folder / "copy.db")
    found = [file.name for file in folder.iterdir() if CODE.encode() in file.read_bytes()]
    (folder / "copy.db").unlink()
    return found


def sealed_rows(folder):
    with sqlite3.connect(folder / "gate.db") as database:
        [(count,)] = database.execute("SELECT count(*) FROM vault WHERE field = 'arguments'")
    database.close()
    return count


@pytest.mark.parametrize("answer", [YES, NO])
async def test_secret_arguments_are_on_disk_in_no_file_whatever_is_answered(tmp_path, answer):
    async with gate_in(tmp_path) as gate:
        await gate.calls.run(gate.call(arguments=ARGUMENTS), wait=0)
        approval = await gate.asked()
        assert on_disk(tmp_path) == []
        assert sealed_rows(tmp_path) == 1
        await gate.calls.answer(approval.id, answer)
        await gate.calls.drain(5)
        await gate.store.flush()
        assert [job.arguments["code"] for job in gate.jobs] == ([CODE] if answer is YES else [])
        assert on_disk(tmp_path) == []
        assert sealed_rows(tmp_path) == 0
    assert on_disk(tmp_path) == []


async def test_a_call_that_waited_over_a_restart_and_a_rotation_runs_with_its_secret(tmp_path):
    async with gate_in(tmp_path) as gate:
        await gate.calls.run(gate.call(arguments=ARGUMENTS), wait=0)
        assert await gate.vault.rotate() == 1
    async with gate_in(tmp_path) as gate:
        await gate.recover()
        [approval] = gate.inbox.open()
        assert approval.arguments == ARGUMENTS
        await gate.calls.answer(approval.id, YES)
        await gate.calls.drain(5)
        assert [job.arguments for job in gate.jobs] == [ARGUMENTS]


async def test_an_approved_call_that_a_stop_came_before_runs_with_its_secret_at_the_next_start(tmp_path):
    async with gate_in(tmp_path) as gate:
        await gate.calls.run(gate.call(arguments=ARGUMENTS), wait=0)
        approval = await gate.asked()
        gate.publish(available=False)
        await gate.calls.answer(approval.id, YES)
        await gate.calls.drain(0)
        assert gate.jobs == []
        assert sealed_rows(tmp_path) == 1
    async with gate_in(tmp_path) as gate:
        assert (await gate.recover())["approved"] == 1
        await gate.calls.drain(5)
        assert [job.arguments for job in gate.jobs] == [ARGUMENTS]
        await gate.store.flush()
        assert sealed_rows(tmp_path) == 0


@pytest.mark.parametrize("lost", ["the key", "the value", "the place"])
async def test_a_question_whose_secret_cannot_be_opened_runs_out_and_never_runs(tmp_path, caplog, lost):
    async with gate_in(tmp_path) as gate:
        pending = await gate.calls.run(gate.call(arguments=ARGUMENTS), wait=0)
        approval = await gate.asked()
        if lost == "the value":
            await gate.vault.remove(owner_of(approval.id), FIELD)
        elif lost == "the place":
            await gate.calls.run(gate.call(arguments={**ARGUMENTS, "code": "another-secret"}), wait=0)
            await swap_values(gate.store)
    if lost == "the key":
        (tmp_path / "vault.key").unlink()
    async with gate_in(tmp_path) as gate:
        await gate.recover()
        assert all(question.asked.expires_at <= gate.clock.now() for question in gate.inbox.open())
        await gate.calls.expire_due()
        assert (await gate.story(pending.call_id))[-1] == State.EXPIRED
        assert gate.jobs == []
    assert "cannot be asked any more" in caplog.text
    assert CODE not in caplog.text


async def swap_values(store):
    """Give each of two questions the sealed secret of the other."""
    (one, first), (other, second) = await store.read("SELECT owner, sealed FROM vault")
    await store.write(update(one, second), update(other, first))


def update(owner, sealed):
    return Statement("UPDATE vault SET sealed = ? WHERE owner = ?", (sealed, owner))


async def test_while_the_vault_is_shut_a_call_with_a_secret_is_refused_and_others_are_asked_about(tmp_path):
    async with gate_in(tmp_path):
        pass
    (tmp_path / "vault.key").unlink()
    async with gate_in(tmp_path) as gate:
        refused = await gate.calls.run(gate.call(arguments=ARGUMENTS), wait=0)
        assert refused.error.code == "DEPENDENCY_UNAVAILABLE"
        assert "The vault is shut" in refused.error.message
        await gate.calls.run(gate.call(arguments={"door": "front"}), wait=0)
        assert [question.arguments for question in gate.inbox.open()] == [{"door": "front"}]


async def test_a_crash_leaves_no_sealed_secret_of_a_call_that_ended(tmp_path):
    async with gate_in(tmp_path) as gate:
        await gate.calls.run(gate.call(arguments=ARGUMENTS), wait=0)
        approval = await gate.asked()
        gate.inbox.secrets.forget_performed = lambda _approval: None  # the process ends before it could
        await gate.calls.answer(approval.id, YES)
        await gate.calls.drain(5)
        await gate.store.flush()
        assert sealed_rows(tmp_path) == 1
    async with gate_in(tmp_path) as gate:
        await gate.recover()
        assert sealed_rows(tmp_path) == 0


async def test_a_secret_that_another_gateway_rotated_the_key_under_is_sealed_with_the_new_one(tmp_path):
    async with gate_in(tmp_path) as gate:
        await (await vault_of(gate.store, tmp_path)).rotate()
        await gate.calls.run(gate.call(arguments=ARGUMENTS), wait=0)
        assert len(gate.inbox.open()) == 1
        assert (await gate.inbox.load())[0].arguments == ARGUMENTS
