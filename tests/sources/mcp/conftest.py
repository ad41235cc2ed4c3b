"""Puts the shared helpers of the test tree on the path and lends the real servers to the tests."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]

from upstreams import Upstream, http_process  # noqa: E402

from agent_gate.sources.mcp.process import child  # noqa: E402


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
