"""How long views of large results take, and what they take from others: `python -m bench.views`.

One agent searches results of 20 and 60 MB while another looks into a small one and a third only waits for the
event loop. `tick` is how late the loop came to a waiter that it should have woken within a millisecond.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import msgspec
import psutil

from agent_gate.calls.meta import MetaTools
from agent_gate.core.call import Call, Caller, Result
from agent_gate.core.catalog import Shelf
from agent_gate.core.ports import SystemClock
from agent_gate.discovery.meta import ViewArgs
from agent_gate.discovery.tokens import fits
from agent_gate.results.artifacts import Artifacts
from agent_gate.store import StoreSettings, open_store

GREEDY, SMALL = Caller(name="greedy"), Caller(name="small")
GREP = {"type": "grep", "pattern": "(alpha|gamma)[0-9]+ zz$"}


def log_of(megabytes: int) -> Result:
    lines = (f"line {at} with alpha{at} and beta and what else a log says\n" for at in range(megabytes << 14))
    text = "".join(lines)[: megabytes << 20]
    return Result(msgspec.json.encode({"content": [{"type": "text", "text": text}]}), "mcp")


async def timed(work: Awaitable[object]) -> float:
    begin = time.perf_counter()
    await work
    return time.perf_counter() - begin


async def ticking(lags: list[float], done: Callable[[], bool]) -> None:
    while not done():
        lags.append(max(0.0, await timed(asyncio.sleep(0.001)) - 0.001))


def p99(values: list[float]) -> str:
    return f"{sorted(values)[int(len(values) * 0.99)] * 1000:.1f} ms"


def memory() -> int:
    """Of this process and of those it started, in MB."""
    me = psutil.Process(os.getpid())
    return sum(one.memory_info().rss for one in (me, *me.children(recursive=True))) >> 20


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(StoreSettings(path=Path(folder) / "gate.db"))
        artifacts = Artifacts(store, SystemClock())
        meta = MetaTools(cast(Any, None), Shelf(), lambda _caller: (), artifacts, fits)

        async def keep(caller: Caller, result: Result, **selector: str) -> ViewArgs:
            kept = await artifacts.save(Call(tool="x", arguments={}, caller=caller), result)
            return ViewArgs(handle=kept.handle, selector=selector)

        tiny = await keep(SMALL, Result(b'{"a": 1}'), type="head")
        large, huge = await keep(GREEDY, log_of(20), **GREP), await keep(GREEDY, log_of(60), **GREP)
        await asyncio.sleep(1)
        print(f"at rest: {memory()} MB")
        idle: list[float] = []
        until = time.perf_counter() + 2
        await ticking(idle, lambda: time.perf_counter() > until)
        print(f"tick at rest p99 {p99(idle)}")
        for _ in range(2):
            print(f"grep of 20 MB: {await timed(meta.view(GREEDY, large)):.2f} s")
        print(
            f"six at once: {await timed(asyncio.gather(*(meta.view(GREEDY, large) for _ in range(6)))):.2f} s"
        )
        greedy = asyncio.gather(*(meta.view(GREEDY, huge) for _ in range(12)), return_exceptions=True)
        lags: list[float] = []
        ticks = asyncio.ensure_future(ticking(lags, greedy.done))
        await asyncio.sleep(0.2)
        small = [await timed(meta.view(SMALL, tiny))]
        begin, most = time.perf_counter(), memory()
        while not greedy.done():
            small.append(await timed(meta.view(SMALL, tiny)))
            most = max(most, memory())
            await asyncio.sleep(0.05)
        await ticks
        late = sum(isinstance(one, Exception) for one in greedy.result())
        del greedy
        print(f"twelve greps of 60 MB: {time.perf_counter() - begin:.1f} s, {late} late, at most {most} MB")
        print(f"tick meanwhile p99 {p99(lags)}")
        print(f"another agent's tiny view meanwhile: first {small[0]:.3f} s, slowest {max(small):.3f} s")
        await asyncio.sleep(12)
        print(f"afterwards: {memory()} MB")
        await store.close()


if __name__ == "__main__":
    asyncio.run(main())
