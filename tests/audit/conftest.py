"""A store of each engine for the record, and a key to seal it with."""

from pathlib import Path

import pytest
from tests import postgres

from agent_gate.audit import ensure_key
from agent_gate.store import StoreSettings


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> StoreSettings:
    if request.param == "sqlite":
        return StoreSettings(path=tmp_path / "gate.db", chain="home")
    return StoreSettings(type="postgres", url=postgres.server().clean_database(), chain="home")


@pytest.fixture
def key(tmp_path: Path) -> bytes:
    return ensure_key(tmp_path / "keys" / "record.key")
