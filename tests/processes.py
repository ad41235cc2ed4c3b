"""Ports for other processes."""

import random
import socket

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
