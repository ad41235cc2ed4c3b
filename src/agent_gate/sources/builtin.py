"""A source that is part of the gateway: always there, with nothing to connect to and nothing to watch."""

import asyncio
from typing import Self


class BuiltinSource:
    kind = "builtin"
    unwell: str | None = None
    about, watched, context = "", False, None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def watch(self) -> None:
        await asyncio.Event().wait()
