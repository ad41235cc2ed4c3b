"""Waiting for other processes, and ports for them."""

import random
import socket
import time
from collections.abc import Callable
from typing import Any

LISTENING = range(12_000, 32_000)
"""Below what the system gives to connections that go out, which would take a port before its program listens."""


def free_port() -> int:
    """A port that nobody has now and that no outgoing connection takes in the meantime."""
    for port in random.SystemRandom().sample(LISTENING, 100):
        with socket.socket() as found:
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no port is free")


def eventually(condition: Callable[[], Any], what: str = "it", seconds: float = 30.0) -> Any:
    """The first true value of `condition`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError(f"{what} did not happen within {seconds} s")
