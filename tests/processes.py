"""Waiting for other processes, and ports for them."""

import socket
import time
from collections.abc import Callable
from typing import Any


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def eventually(condition: Callable[[], Any], what: str = "it", seconds: float = 30.0) -> Any:
    """The first true value of `condition`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError(f"{what} did not happen within {seconds} s")
