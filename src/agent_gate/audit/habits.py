"""What callers did lately, read off the record for people who judge: how a tool was used before."""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_gate.store import Store

MOST_EARLIER = 40
USED = (
    "SELECT call FROM record WHERE at >= ? AND caller = ? AND tool = ? AND state = 'completed' "
    "ORDER BY at DESC LIMIT ?"
)


async def read_earlier(store: Store, caller: str, tool: str, since: float) -> list[Mapping[str, Any]]:
    """The arguments of the latest calls of this tool by this caller that went well, newest first."""
    calls = [row[0] for row in await store.read(USED, (since, caller, tool, MOST_EARLIER))]
    if not calls:
        return []
    marks = ", ".join("?" * len(calls))
    rows = await store.read(f"SELECT call, body FROM record WHERE call IN ({marks})", tuple(calls))
    found = {call: body for call, text in rows if "arguments" in (body := msgspec.json.decode(text))}
    return [found[call]["arguments"] for call in calls if call in found]
