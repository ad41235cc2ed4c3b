"""The writer's tick comes, however little CPU its thread gets."""

from queue import SimpleQueue
from threading import Thread

from tests.waiting import PATIENCE

from agent_gate.store.writer import comes_within

SHORT = 1e-7
"""Seconds that are over before a thread has begun to wait, as the tick is on a machine with no CPU to spare."""
TRIES = 10_000


def test_a_tick_that_is_over_before_it_began_ends_all_the_same() -> None:
    def try_them() -> None:
        ended.extend(comes_within(SimpleQueue(), SHORT) for _ in range(TRIES))

    ended: list[bool] = []
    trying = Thread(target=try_them, daemon=True)
    trying.start()
    trying.join(PATIENCE)
    assert (len(ended), any(ended)) == (TRIES, False)


def test_who_was_called_before_or_meanwhile_does_not_wait_for_the_tick() -> None:
    wake: SimpleQueue[None] = SimpleQueue()
    wake.put(None)
    assert comes_within(wake, 60)
    calling = Thread(target=wake.put, args=(None,))
    calling.start()
    assert comes_within(wake, 60)
    calling.join()
