"""What a stranger on a socket may cost: sizes in bytes, times in seconds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """One listener's bounds. Times are kept by one sweeper, so each may overrun by two `tick`s."""

    header_bytes: int = 32 * 1024
    headers: int = 100
    chunk_bytes: int = 64
    body_bytes: int = 4 * 1024 * 1024
    header_seconds: float = 10.0
    body_seconds: float = 15.0
    write_seconds: float = 20.0
    keep_alive_seconds: float = 75.0
    linger_seconds: float = 2.0
    progress_bytes: int = 1024
    pipelined: int = 16
    connections: int = 16_384
    message_bytes: int = 1024 * 1024
    buffer_bytes: int = 1024 * 1024
    ping_seconds: float = 20.0
    pong_seconds: float = 20.0
    tick: float = 1.0
