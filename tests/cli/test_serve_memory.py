"""What a gateway that runs for long does about its memory."""

import asyncio
import ctypes

import psutil
import pytest
from tests.waiting import until

from agent_gate.cli.commands.serve import give_back_memory

PIECE, PIECES, KEPT_EVERY = 100_000, 600, 50
"""Small enough to lie among everything else, as the pieces do in which a large result comes."""


def resident() -> int:
    return int(psutil.Process().memory_info().rss)


async def test_what_large_results_left_between_what_stays_goes_back_to_the_system():
    if not hasattr(ctypes.CDLL(None), "malloc_trim"):
        pytest.skip("this C library cannot be asked to give memory back")
    ctypes.CDLL(None).malloc_trim(0)
    before = resident()
    pieces = [bytearray(b"x" * PIECE) for _ in range(PIECES)]
    kept = pieces[KEPT_EVERY - 1 :: KEPT_EVERY]
    del pieces
    assert resident() - before > PIECE * PIECES / 2, "the system has it back already"
    giving = asyncio.create_task(give_back_memory(0.01))
    await until(lambda: resident() - before <= PIECE * PIECES / 4)
    giving.cancel()
    assert len(kept) == PIECES / KEPT_EVERY
