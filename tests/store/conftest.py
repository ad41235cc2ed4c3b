"""A store of each engine, on real files and a real server."""

from pathlib import Path

import pytest
from tests import postgres

from agent_gate.store import StoreSettings


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> StoreSettings:
    if request.param == "sqlite":
        return StoreSettings(path=tmp_path / "data" / "gate.db", chain="home")
    return StoreSettings(type="postgres", url=postgres.server().clean_database(), chain="home")
