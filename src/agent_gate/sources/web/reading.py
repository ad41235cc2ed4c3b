"""Starts the process that reads one page, and holds it to its deadline."""

import asyncio
import os
import sys
from importlib.util import find_spec

import msgspec

from agent_gate.errors import CallTimeout, DependencyUnavailable, UpstreamError
from agent_gate.sources.web.extract import Readable, ReadOrder
from agent_gate.sources.web.fetching import Fetched

NEEDED = ("trafilatura", "pypdfium2")
INSTALL = (
    "Reading pages needs a few packages more: pip install 'agent-gate[web]', then start the gateway again"
)


def can_read() -> bool:
    return all(find_spec(name) is not None for name in NEEDED)


async def make_readable(fetched: Fetched, *, raw: bool, seconds: float) -> Readable:
    """The readable text of what was fetched. One process a page: what it does to its parser ends with it."""
    if not raw and not can_read():
        raise DependencyUnavailable(INSTALL)
    order = ReadOrder(fetched.url, fetched.content_type, len(fetched.body), raw)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "agent_gate.sources.web.extract",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(seconds):
            written, _ = await process.communicate(msgspec.json.encode(order) + b"\n" + fetched.body)
    except TimeoutError:
        raise CallTimeout("Reading this page took too long") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise UpstreamError("This page cannot be read: it asks too much of its reader")
    return msgspec.json.decode(written, type=Readable)
