"""The memory host: found by words, by part and by age, the newest where no words are given, and nobody else's."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.hosts.hosting import CONTEXT, Gate, serving_host

from agent_gate.hosts.memory import host


class Rememberer:
    """A gateway that is paired with the memory host."""

    def __init__(self, gate: Gate, port: int) -> None:
        self._gate, self._port = gate, port

    async def ask(self, tool: str, key: str | None = None, **args: Any) -> dict[str, Any]:
        more = {"context": {**CONTEXT, "isolation_key": key}} if key else {}
        said = await self._gate.call(self._port, f"memory.{tool}", args, **more)
        assert said["status"] == "ok", said
        return dict(said["result"])

    async def found(self, **args: Any) -> list[str]:
        return [one["text"] for one in (await self.ask("query", **args))["entries"]]


@asynccontextmanager
async def memory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rememberer]:
    monkeypatch.setenv("MEMORY_DATABASE", str(folder / "kept.db"))
    gate = Gate()
    async with serving_host(host, folder / "host", gate) as server:
        assert server.folder is not None
        await gate.pair(server.server.port, server.folder.identity.fingerprint)
        yield Rememberer(gate, server.server.port)


async def test_entries_are_found_by_words_part_and_age(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with memory(tmp_path, monkeypatch) as remembering:
        await remembering.ask("append", text="The key is under the pot", scope="house")
        await remembering.ask("append", text="The pot is blue", scope="garden")
        await remembering.ask("append", text="Call Ben", scope="house")
        assert await remembering.found(words="pot key") == ["The key is under the pot"]
        assert await remembering.found() == ["Call Ben", "The pot is blue", "The key is under the pot"]
        assert await remembering.found(limit=1) == ["Call Ben"]
        assert await remembering.found(scope="garden") == ["The pot is blue"]
        with sqlite3.connect(tmp_path / "kept.db") as kept:
            kept.execute("UPDATE entries SET at = at - 2 * 86400 WHERE scope = 'house'")
        assert await remembering.found(days=1) == ["The pot is blue"]


async def test_nobody_finds_or_deletes_the_entries_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with memory(tmp_path, monkeypatch) as remembering:
        made = await remembering.ask("append", "anna", text="mine alone")
        assert await remembering.found(key="ben") == []
        assert (await remembering.ask("delete", "ben", ids=[made["id"]]))["deleted"] == 0
        assert await remembering.found(key="anna") == ["mine alone"]
        assert (await remembering.ask("delete", "anna", ids=[made["id"]]))["deleted"] == 1
        assert await remembering.found(key="anna") == []
