"""Plugins as people write them, and as they should not."""

import asyncio
import concurrent.futures
import sys
import threading
import time
from typing import Any

from agent_gate import ServiceHandler
from agent_gate.errors import UpstreamError


class Good(ServiceHandler):
    """Async, with a life of its own."""

    def __init__(self, config: Any, tools: Any) -> None:
        super().__init__(config, tools)
        self.started = self.closed = False

    async def start(self) -> None:
        self.started = True

    async def close(self) -> None:
        self.closed = True

    async def execute(self, tool_name: str, args: dict[str, Any]) -> Any:
        thread = threading.current_thread().name
        known = [tool.name for tool in self.tools]
        return {"tool": tool_name, "args": args, "thread": thread, "tools": known, "url": self.config.url}


class Blocking(ServiceHandler):
    """Blocks until it is let go, in a plain function."""

    begun, go_on = threading.Event(), threading.Event()
    running = 0

    def execute(self, tool_name: str, args: dict[str, Any]) -> Any:
        type(self).running += 1
        self.begun.set()
        self.go_on.wait(20)
        type(self).running -= 1
        return "done"


class BlockingLoop(ServiceHandler):
    """Blocks in a coroutine, which would stop a loop that it shared."""

    begun, go_on = threading.Event(), threading.Event()

    async def execute(self, tool_name: str, args: dict[str, Any]) -> Any:
        self.begun.set()
        self.go_on.wait(20)
        return "done"


class Crashing(ServiceHandler):
    """Fails in every way the arguments ask for."""

    def execute(self, tool_name: str, args: dict[str, Any]) -> Any:
        how = args["how"]
        if how == "exit":
            sys.exit(3)
        if how == "nothing found":
            return next(found for found in [] if found)
        if how == "given up":
            raise concurrent.futures.CancelledError
        if how == "told":
            raise UpstreamError("The valve is stuck; its password is hunter2-hunter2")
        if how == "object":
            return {"value": object()}
        if how == "large":
            return "x" * 2_000_000
        raise ValueError("the password is hunter2-hunter2")


class Panic(BaseException):
    """As extensions written in other languages raise it."""


class Mistaken(ServiceHandler):
    """Cannot be called at all."""

    async def execute(self) -> Any:  # type: ignore[override]
        return None


class CrashingLoop(ServiceHandler):
    async def execute(self, tool_name: str, args: dict[str, Any]) -> Any:
        if args["how"] == "exit":
            raise SystemExit(3)
        if args["how"] == "panic":
            raise Panic
        if args["how"] == "given up":
            raise concurrent.futures.CancelledError
        raise KeyError("hunter2-hunter2")


class Cancellable(ServiceHandler):
    """Tells whether its coroutine was cancelled."""

    begun, cancelled = threading.Event(), threading.Event()

    async def execute(self, tool_name: str, args: dict[str, Any]) -> Any:
        self.begun.set()
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


class NoStart(ServiceHandler):
    """Cannot start before its third try."""

    tries = 0

    async def start(self) -> None:
        type(self).tries += 1
        if self.tries < 3:
            raise RuntimeError("hunter2-hunter2")

    def execute(self, tool_name: str, args: dict[str, Any]) -> Any:
        return self.tries


class Slow(ServiceHandler):
    def execute(self, tool_name: str, args: dict[str, Any]) -> Any:
        time.sleep(0.01)
        return threading.current_thread().name


class Unfinished(ServiceHandler):
    pass


class Stranger:
    pass


not_a_class = 7
