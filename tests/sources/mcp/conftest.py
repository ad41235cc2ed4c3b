"""Lends the real servers to the tests."""

from collections.abc import Iterator

import pytest
from tests.sources.mcp.upstreams import Upstream, http_process

from agent_gate.sources.mcp.process import child


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that do not end by themselves are given less time than in earnest."""
    monkeypatch.setattr(child, "EOF_SECONDS", 0.3)
    monkeypatch.setattr(child, "TERM_SECONDS", 0.3)


@pytest.fixture(scope="session")
def both_eras() -> Iterator[Upstream]:
    """A server made with the official SDK that speaks every era on one URL."""
    with http_process("sdk_server.py", "http") as upstream:
        yield upstream
