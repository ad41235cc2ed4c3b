"""Large messages over TLS, a record at a time.

TLS keeps, for as long as a connection lasts, as much memory as it once had to hold for it. One large result, written
whole, would cost its size until the agent leaves. So it is cut into records, and the next one is written when the one
before has gone on to the socket.
"""

import asyncio
from collections.abc import Iterator

RECORD = 16 * 1024
"""The most that one record of TLS carries."""


def hold_little(transport: asyncio.Transport) -> None:
    """Have writing paused as soon as TLS holds anything that the socket does not take yet."""
    transport.set_write_buffer_limits(high=1, low=0)


def in_records(data: bytes) -> Iterator[memoryview]:
    whole = memoryview(data)
    return (whole[at : at + RECORD] for at in range(0, len(whole), RECORD))
