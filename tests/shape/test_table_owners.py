"""Every table of the store is registered with its owner, and nobody else's code speaks of it."""

import re
import sqlite3
from pathlib import Path

import pytest
from tests.gateway import running
from tests.shape.program_copy import ROOT, ProgramCopy, named_in_architecture

from agent_gate.store import StoreSettings, open_store
from agent_gate.store.tables import TABLES

CODE = ROOT / "src/agent_gate"
SPOKEN = re.compile(r"\b(?:FROM|INTO|UPDATE|JOIN|TABLE IF NOT EXISTS) (\w+)")
OWN_DATABASE = "hosts/"
"""A tool host is another program, with a database of its own."""


def tables_of(store: Path) -> set[str]:
    with sqlite3.connect(store) as database:
        return {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


async def test_a_store_has_the_registered_tables_and_no_others(tmp_path):
    await open_store(StoreSettings(path=tmp_path / "gate.db", chain="home")).close()
    assert tables_of(tmp_path / "gate.db") == {table.name for table in TABLES}


@pytest.fixture(scope="module")
def speaking():
    """By module the names behind words of SQL."""
    return {str(path.relative_to(CODE)): set(SPOKEN.findall(path.read_text())) for path in CODE.rglob("*.py")}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_only_its_owner_speaks_of_a_table(table, speaking):
    modules = {module for module, names in speaking.items() if table.name in names}
    assert any(module.startswith(f"{table.owner}/") for module in modules)
    strangers = {name for name in modules if not name.startswith((f"{table.owner}/", OWN_DATABASE))}
    assert strangers == set(table.readers)


def test_a_table_is_a_file_and_a_line_with_its_owner(tmp_path):
    program = ProgramCopy(tmp_path / "program")
    program.write(
        "src/agent_gate/store/migrations/9001_tea.sql", "CREATE TABLE tea (kind TEXT PRIMARY KEY);\n"
    )
    program.insert(
        "src/agent_gate/store/tables.py", "TABLES = (\n", '    StoreTable("tea", "results", "tea"),\n'
    )
    files, registry = named_in_architecture("a table of the store")
    assert program.touched == [
        f"src/agent_gate/{files}".replace("*", "9001_tea"),
        f"src/agent_gate/{registry}",
    ]
    config = "gateway: {port: 0}\nadmin: {port: 0, socket: ./data/admin.sock}\n"
    with running(tmp_path, {"config.yaml": config}, "--insecure", env=program.env):
        pass
    [store] = (tmp_path / "data").glob("*.db")
    assert tables_of(store) == {table.name for table in TABLES} | {"tea"}
