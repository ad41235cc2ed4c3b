"""What a source is unless it says otherwise: well, silent about itself, with nothing to close and nothing to watch."""

import asyncio
from typing import Self

from agent_gate.core.ports import ContextSource


class SourceBase:
    unwell: str | None = None
    about: str = ""
    watched: bool = False
    context: ContextSource | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def watch(self) -> None:
        await asyncio.Event().wait()
