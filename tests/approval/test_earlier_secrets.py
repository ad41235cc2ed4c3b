"""Secret arguments that earlier versions kept are sealed in the vault or masked at the next start.

The stores below `earlier/` were written by those versions: one allowed call, and one question each that waits, was
denied, was remembered for always and had run, and was approved but had not run yet.
"""

import logging
import sqlite3
from contextlib import asynccontextmanager, closing
from pathlib import Path

import msgspec
import pytest
from tests import postgres
from tests.calls.small_calls import YES, Clock, SmallCalls, opened
from tests.rows import opened as opened_by

from agent_gate.approval.earlier import KEY_FILE, move_secrets
from agent_gate.cli.commands.backup import copy_store
from agent_gate.core.catalog import Listing, build
from agent_gate.core.ports import SystemClock
from agent_gate.core.tool import Definition
from agent_gate.store import StoreSettings
from agent_gate.store.statement import Statement
from agent_gate.vault.vault import Vault

HERE = Path(__file__).parent / "earlier"
KEY = "6a801d1ede8e159572dac25d6ff799e2aa0d3cb7864de364fd7fb702713d19d1"
WRITTEN_AT = 1794885090.0
KINDS = ("pending", "denied", "granted", "approved")
SECRETS = [f"{kind}-secret-{4711 + place}" for place, kind in enumerate(KINDS)]
PENDING, APPROVED = SECRETS[0], SECRETS[3]


def earlier_store(folder, era):
    with closing(sqlite3.connect(folder / "gate.db")) as database:
        database.executescript((HERE / f"{era}.sql").read_text("utf-8"))
    if era == "sealed":
        (folder / KEY_FILE).write_text(KEY)


def gate_of(store, vault, **more):
    gate = SmallCalls(store, action="ask", vault=vault, **more)
    tool = Definition(name="act", secret=frozenset({"code"}))
    gate.shelf.swap(build([Listing(key="lab", namespace="lab", definitions=[tool])], gate.shelf.catalog))
    return gate


@asynccontextmanager
async def started(folder):
    """What a start brings up of calls: the vault, what is moved over, and what was open."""
    async with opened(folder) as store:
        vault = Vault(store, SystemClock(), folder, "home", {})
        await vault.open_or_say_why()
        clock = Clock()
        clock.time = WRITTEN_AT
        gate = gate_of(store, vault, clock=clock)
        await move_secrets(store, vault, folder)
        await gate.recover()
        gate.vault = vault
        yield gate


def found_beside_the_record(folder):
    """Secrets in any file of the folder, more often than in the rows of the record (its pages are in the log too)."""
    copy_store(folder / "gate.db", folder / "copy.db")
    with closing(sqlite3.connect(folder / "copy.db")) as database:
        record = "".join(body for (body,) in database.execute("SELECT body FROM record")).encode()
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    (folder / "copy.db").unlink()
    return [
        (name, secret)
        for name, held in files.items()
        for secret in SECRETS
        if held.count(secret.encode()) > record.count(secret.encode())
        and not (name.endswith("-wal") and secret.encode() in record)
    ]


@pytest.mark.parametrize("era", ["plain", "sealed"])
async def test_what_waited_runs_with_its_secret_and_nothing_else_has_one(tmp_path, era):
    earlier_store(tmp_path, era)
    assert bool(found_beside_the_record(tmp_path)) == (era == "plain")
    async with started(tmp_path) as gate:
        assert found_beside_the_record(tmp_path) == []
        assert not (tmp_path / KEY_FILE).exists()
        [question] = gate.inbox.open()
        assert question.arguments == {"door": "front", "code": PENDING, "deep": {"door": "back"}}
        assert PENDING not in question.signature
        await gate.calls.answer(question.id, YES)
        await gate.calls.drain(5)
        assert sorted(job.arguments["code"] for job in gate.jobs) == [APPROVED, PENDING]
        await gate.store.flush()
        assert await gate.vault.count() == 0
        assert found_beside_the_record(tmp_path) == []
    assert found_beside_the_record(tmp_path) == []


@pytest.mark.parametrize("era", ["plain", "sealed"])
async def test_without_a_key_to_the_vault_what_waited_runs_out_and_is_masked_all_the_same(tmp_path, era):
    earlier_store(tmp_path, era)
    async with opened(tmp_path) as store:
        await Vault(store, SystemClock(), tmp_path, "home", {}).open()
    (tmp_path / "vault.key").write_text("00" * 32)
    async with started(tmp_path) as gate:
        assert not gate.vault.is_open
        await gate.calls.expire_due()
        await gate.calls.drain(5)
        assert gate.inbox.open() == gate.jobs == []
        assert found_beside_the_record(tmp_path) == []


async def test_a_lost_key_of_an_earlier_version_lets_its_questions_run_out(tmp_path):
    earlier_store(tmp_path, "sealed")
    (tmp_path / KEY_FILE).unlink()
    async with started(tmp_path) as gate:
        await gate.calls.expire_due()
        await gate.calls.drain(5)
        assert gate.inbox.open() == gate.jobs == []


async def test_a_remembered_answer_of_an_earlier_version_still_holds_and_shows_no_secret(tmp_path):
    earlier_store(tmp_path, "plain")
    async with started(tmp_path) as gate:
        await gate.grants.load()
        [grant] = await gate.grants.list()
        assert grant.signature == 'lab__act(code=•••, deep={"door":"back"}, door=front)'


async def test_the_record_of_an_earlier_version_stays_and_the_log_says_what_it_shows(tmp_path, caplog):
    earlier_store(tmp_path, "plain")
    caplog.set_level(logging.WARNING)
    async with started(tmp_path):
        pass
    assert "5 rows of the record, written by an earlier version, show secret arguments" in caplog.text
    caplog.clear()
    async with started(tmp_path):
        pass
    assert "earlier version" not in caplog.text


async def test_a_question_in_postgresql_is_moved_over_too(tmp_path):
    settings = StoreSettings(type="postgres", url=postgres.server().clean_database(), chain="home")
    async with opened_by(settings) as store:
        vault = Vault(store, SystemClock(), tmp_path, "home", {})
        await vault.open()
        gate = gate_of(store, vault)
        await gate.calls.run(gate.call(arguments={"door": "front", "code": PENDING}), wait=0)
        [(body,)] = await store.read("SELECT body FROM approvals")
        await store.write(
            Statement("UPDATE approvals SET body = ?", (in_plain_text(body),)),
            Statement("DELETE FROM vault"),
        )
        await move_secrets(store, vault, tmp_path)
        [(body,)] = await store.read("SELECT body FROM approvals")
        assert PENDING not in body
        [question] = await gate.inbox.load()
        assert question.arguments["code"] == PENDING
        await gate.calls.answer(question.id, YES)
        await gate.calls.drain(5)
        assert [job.arguments["code"] for job in gate.jobs] == [PENDING]
        await store.flush()
        assert await vault.count() == 0


def in_plain_text(body):
    made = msgspec.json.decode(body)
    made["call"]["arguments"]["code"] = PENDING
    return msgspec.json.encode(made).decode()
