"""A gateway killed in the middle of its writes: what was acknowledged is there, and nothing is half there."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.rows import opened, values

from agent_gate.audit import ensure_key, verify
from agent_gate.store import StoreSettings

HERE = Path(__file__).parent


def written_until_killed(settings: StoreSettings, seconds: float) -> list[str]:
    """Let a child write for a while, kill it outright, and return the units it was told are durable."""
    named = {"type": settings.type, "chain": settings.chain}
    named |= {"path": str(settings.path)} if settings.path else {"url": str(settings.url)}
    process = subprocess.Popen(
        [sys.executable, str(HERE / "writing_child.py"), json.dumps(named)],
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1])},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    deadline = time.monotonic() + seconds
    acknowledged = [first]
    while time.monotonic() < deadline:
        acknowledged.append(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate()
    assert process.returncode == -signal.SIGKILL
    # The last line may have been cut by the kill.
    acknowledged += rest.splitlines(keepends=True)
    return [line.strip() for line in acknowledged if line.endswith("\n")]


async def check(settings: StoreSettings, acknowledged: list[str], key: bytes) -> None:
    async with opened(settings) as store:
        found = await values(store)
        rows = set(await store.read("SELECT call, step FROM record"))
        for name in acknowledged:
            assert {name, f"{name}-too"} <= found.keys()
            assert {(name, 3), (name, 4)} <= rows
        for name, step in rows:
            if step == 4:
                assert {name, f"{name}-too"} <= found.keys(), "a unit was written by halves"
        assert (await verify(store, key)).ok
        await store.write()


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.31])
async def test_everything_acknowledged_survives_a_kill_and_the_chain_is_whole(
    settings: StoreSettings, seconds: float, tmp_path: Path
) -> None:
    acknowledged = written_until_killed(settings, seconds)
    assert acknowledged
    await check(settings, acknowledged, ensure_key(tmp_path / "key"))
