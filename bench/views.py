"""How long views of large results take, and what they take from others: `python -m bench.views`.

One agent searches results of 20 and 60 MB while another looks into a small one and a third only waits for the
event loop. `tick` is how late the loop came to a waiter that it should have woken within a millisecond. Then the same
with a gateway in its own process: the p99 of another agent's calls, alone and beside six greps of 20 MB or twelve of
60 MB at once, in turn (`python -m bench.views calls` for this part only).
"""

import asyncio
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
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
from bench.load import MODERN, Ask, drive, first_answer, outcome, post
from bench.machine import CORES, LOADED
from bench.subjects import gateway, remote, upstream_server

GREEDY, SMALL = Caller(name="greedy"), Caller(name="small")
GREP = {"type": "grep", "pattern": "(alpha|gamma)[0-9]+ zz$"}


GREEDY_TOKEN = "greedy-token-greedy-token-greedy-token"
UNLIMITED = {"max_requests_per_minute": 0}
LOG_TOOLS = {
    "tools": {
        "log_read": {
            "args": {"size": {"type": "integer", "required": True}},
            "request": {"method": "GET", "path": "/log/{size}"},
        }
    }
}
CALL_RATE, CALL_SECONDS, ROUNDS = 200, 4, 5


def log_text(megabytes: int) -> str:
    lines = (f"line {at} with alpha{at} and beta and what else a log says\n" for at in range(megabytes << 14))
    return "".join(lines)[: megabytes << 20]


def log_of(megabytes: int) -> Result:
    return Result(msgspec.json.encode({"content": [{"type": "text", "text": log_text(megabytes)}]}), "mcp")


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


class Logs(BaseHTTPRequestHandler):
    """An API whose `/log/N` is a log of N megabytes."""

    @staticmethod
    @lru_cache
    def written(megabytes: int) -> bytes:
        return msgspec.json.encode({"log": log_text(megabytes)})

    def do_GET(self) -> None:
        body = self.written(int(self.path.rpartition("/")[2] or 0))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        pass


@contextmanager
def logs() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Logs)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def asked(port: int, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What the greedy agent is answered over REST."""
    headers = {"Authorization": f"Bearer {GREEDY_TOKEN}", "Content-Type": "application/json"}
    status, data, _ = post(port, f"/api/tools/{tool}", json.dumps(arguments), headers)
    found: dict[str, Any] = json.loads(data)
    if status != 200:
        raise OSError(f"{tool} was answered with {status} {data[:300]!r}")
    return found


def kept(port: int, megabytes: int) -> str:
    """The handle of a log that the greedy agent had fetched."""
    reply = json.dumps(asked(port, "tool_execute", {"tool_id": "log_read", "args": {"size": megabytes}}))
    return reply[reply.index("result:") :][: len("result:") + 32]


@contextmanager
def grepping(port: int, handle: str, at_once: int) -> Iterator[list[float]]:
    """So many greps at once, again and again; how long each took."""
    taken: list[float] = []
    ended = threading.Event()

    def one() -> None:
        while not ended.is_set():
            began = time.perf_counter()
            try:
                asked(port, "tool_view", {"handle": handle, "selector": GREP})
            except OSError as late:
                if "seconds" not in str(late):
                    raise
            taken.append(time.perf_counter() - began)

    threads = [threading.Thread(target=one) for _ in range(at_once)]
    for thread in threads:
        thread.start()
    try:
        yield taken
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def other_calls(port: int) -> float:
    """The p99 of another agent's governed calls at a steady rate, in ms."""
    ask = Ask("/mcp", "http__echo", MODERN)
    return float(outcome(drive(port, ask, 8, CALL_SECONDS, rate=CALL_RATE))["p99_ms"])


def views_beside_calls() -> None:
    with upstream_server(LOADED) as upstream, logs() as log_api:
        config = {
            "agents": {"greedy": {"token": GREEDY_TOKEN, "mode": "gateway", "rate_limit": UNLIMITED}},
            "services": {"log": {"url": log_api, "tools": "logs.yaml"}},
            "limits": {"max_result_bytes": 70 << 20},
        }
        with gateway({"http": remote(upstream)}, more=config, files={"logs.yaml": LOG_TOOLS}) as subject:
            os.sched_setaffinity(subject.pid, CORES)
            first_answer(subject.port, Ask("/mcp", "http__echo", MODERN))
            for megabytes, at_once in ((20, 6), (60, 12)):
                beside_greps(subject.port, kept(subject.port, megabytes), megabytes, at_once)


def beside_greps(port: int, handle: str, megabytes: int, at_once: int) -> None:
    alone, beside, taken = [], [], list[float]()
    for _ in range(ROUNDS):
        alone.append(other_calls(port))
        with grepping(port, handle, at_once) as greps:
            time.sleep(1)
            beside.append(other_calls(port))
        taken += greps
    ratio = median(later / before for before, later in zip(alone, beside, strict=True))
    print(
        f"{at_once} greps of {megabytes} MB at once: p99 of {CALL_RATE} other calls a second "
        f"{median(alone):.2f} ms alone, {median(beside):.2f} ms beside ({ratio:.2f} times in the round in the middle; "
        f"alone {min(alone):.2f} to {max(alone):.2f}, beside {min(beside):.2f} to {max(beside):.2f}, "
        f"{ROUNDS} rounds of {CALL_SECONDS} s in turn); a grep took {median(taken):.1f} s"
    )


if __name__ == "__main__":
    if "calls" not in sys.argv:
        asyncio.run(main())
    views_beside_calls()
