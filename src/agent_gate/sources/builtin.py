"""A source that is part of the gateway: always there, with nothing to connect to and nothing to watch."""

import asyncio
from types import TracebackType
from typing import Self


class BuiltinSource:
    kind = "builtin"
    unwell: str | None = None
    about, watched, context = "", False, None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def watch(self) -> None:
        await asyncio.Event().wait()
