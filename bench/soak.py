"""`make soak`: an hour of calls and ten thousand agents over TLS. Does anything stay behind?

    python -m bench.soak [--minutes 60] [--agents 10000] [--rate 100] [--store sqlite]

A gateway runs as in earnest, in its own process, with a real store and a server behind it. Seven agents in ten hold a
WebSocket, two a session of MCP with its event stream, one speaks MCP's modern revision; each kind makes a third of the
calls. One call in a hundred has a result of 4 MiB. Memory, descriptors, tasks and the rows of every table are noted all
along. The end says what was found, and fails where memory grew by more than 1 MB a minute, where a call failed, or where
something was left when the agents had gone.
"""

import argparse
import asyncio
import json
import os
import resource
import signal
import sqlite3
import ssl
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
import psycopg
import uvloop

from agent_gate.cli.operator import AdminClient
from agent_gate.store.tables import TABLES
from bench.connected import ConnectedAgent, Gate, PlainAgent, SessionAgent, SocketAgent
from bench.load import TOKEN
from bench.machine import CACHE, CORES, cpu_us, memory_mib, running
from bench.subjects import AGENT_GATE, postgres_server, remote, upstream_server, write_config

CALLERS = 10
"""Agents by name: many connections share one, as the sessions of one agent do."""
AT_ONCE = 50
BIG_EVERY, BIG_KIB = 100, 4096
MOST_SLOPE = 1.0
"""Megabytes a minute."""
JUDGED_FROM = 10.0
"""Minutes below which a slope says nothing: caches still fill."""
WARMING = 1 / 6
"""The part of a run that does not count for the slope: ten minutes of an hour."""
PATIENCE = 150.0
"""Seconds in which everything must be gone after the agents are."""
SILENCE = 5.0
"""Seconds without a turn after which a call that fails says nothing of the gateway: it closes a connection on which nothing
comes for ten, and the agents were those who said nothing."""
CATCH_UP = 1.0
"""Seconds of calls that are made up for after a sleep."""
GROWS = {"record", "seals", "trends"}
"""What is meant to stay of a call: its rows, their seals, and the sums of each minute and hour."""


@dataclass(frozen=True)
class Plan:
    minutes: float = 60.0
    agents: int = 10_000
    rate: float = 100.0
    store: str = "sqlite"

    @property
    def seconds(self) -> float:
        return self.minutes * 60

    @property
    def step(self) -> float:
        """Seconds between two samples."""
        return min(10.0, self.seconds / 40)


@dataclass(frozen=True, slots=True)
class Sample:
    at: float
    rss_mb: float
    cpu_us: float
    files: int
    tasks: int
    connections: int
    sessions: int
    rows: Mapping[str, int]


@dataclass(slots=True)
class Tally:
    """What the agents saw."""

    calls: int = 0
    big: int = 0
    late: int = 0
    """Calls that were not made, because the agent still waited or because all agents had slept."""
    lost: int = 0
    slept: float = 0.0
    """The longest that the agents themselves got no CPU, in seconds."""
    overslept: int = 0
    """Calls in which the agents slept for so long that a gateway takes them for gone."""
    errors: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def fail(self, why: str) -> None:
        self.errors.append(why)


@dataclass(frozen=True, slots=True)
class Soaked:
    """A whole run: empty, with its agents, under load, and after they left."""

    plan: Plan
    tally: Tally
    empty: Sample
    connected: Sample
    samples: Sequence[Sample]
    left: Sample
    verified: bool


def slope(samples: Sequence[Sample]) -> float:
    """Megabytes a minute, by least squares over what comes after the warming up."""
    end = samples[-1].at
    counted = [one for one in samples if one.at - samples[0].at >= (end - samples[0].at) * WARMING]
    line = statistics.linear_regression([one.at / 60 for one in counted], [one.rss_mb for one in counted])
    return float(line.slope)


def faults(found: Soaked) -> list[str]:
    """What is wrong, in sentences; nothing where all is well."""
    return [
        *load_faults(found.tally),
        *slope_faults(found.plan, found.samples),
        *leftovers(found.tally, found.empty, found.left),
        *([] if found.verified else ["the record does not verify"]),
    ]


def load_faults(tally: Tally) -> Iterator[str]:
    if tally.errors:
        yield f"{len(tally.errors)} calls failed; the first: {tally.errors[0]}"
    if tally.lost:
        yield f"{tally.lost} agents lost the connection that they held"
    if not tally.calls or not tally.big:
        yield "no call, or no large one, was made"


def slope_faults(plan: Plan, samples: Sequence[Sample]) -> Iterator[str]:
    if plan.minutes >= JUDGED_FROM and (grown := slope(samples)) > MOST_SLOPE:
        yield f"memory grew by {grown:.2f} MB a minute"


def leftovers(tally: Tally, empty: Sample, left: Sample) -> Iterator[str]:
    for name in ("files", "tasks", "connections", "sessions"):
        before, after = getattr(empty, name), getattr(left, name)
        if after > before:
            yield f"{name}: {before} before the agents came, {after} after they left"
    expected = 2 * tally.calls
    written = left.rows["record"] - empty.rows["record"]
    if not tally.errors and not tally.overslept and written != expected:
        yield f"{tally.calls} calls are {expected} rows, and the record has {written}"
    for name in sorted(left.rows.keys() - GROWS):
        if left.rows[name] > empty.rows[name]:
            yield f"rows of {name}: {empty.rows[name]} before the agents came, {left.rows[name]} after they left"


def report(found: Soaked) -> dict[str, Any]:
    plan, tally, last = found.plan, found.tally, found.samples[-1]
    cuts = statistics.quantiles(tally.seconds, n=100) if len(tally.seconds) > 1 else [0.0] * 99
    held = (found.connected.rss_mb - found.empty.rss_mb) * 1e3 / plan.agents
    return {
        "minutes": plan.minutes,
        "agents": plan.agents,
        "connections": last.connections,
        "sessions": last.sessions,
        "calls": tally.calls,
        "calls_with_4_mib": tally.big,
        "calls_per_second": round(tally.calls / (last.at - found.samples[0].at), 1),
        "failed": len(tally.errors),
        "failed_because": dict(Counter(tally.errors).most_common(5)),
        "lost": tally.lost,
        "late": tally.late,
        "overslept": tally.overslept,
        "agents_slept_at_most_s": round(tally.slept, 2),
        "cpu_percent": round(
            (last.cpu_us - found.samples[0].cpu_us) / (last.at - found.samples[0].at) / 1e4, 1
        ),
        "p50_ms": round(cuts[49] * 1e3, 1),
        "p99_ms": round(cuts[98] * 1e3, 1),
        "memory_empty_mb": round(found.empty.rss_mb, 1),
        "memory_connected_mb": round(found.connected.rss_mb, 1),
        "memory_of_an_agent_kb": round(held, 1),
        "memory_at_the_end_mb": round(last.rss_mb, 1),
        "memory_most_mb": round(max(one.rss_mb for one in found.samples), 1),
        "memory_when_they_left_mb": round(found.left.rss_mb, 1),
        "slope_mb_a_minute": round(slope(found.samples), 3),
        "files": [found.empty.files, last.files, found.left.files],
        "tasks": [found.empty.tasks, last.tasks, found.left.tasks],
        "rows": {name: [found.empty.rows[name], rows] for name, rows in found.left.rows.items() if rows},
        "verified": found.verified,
        "faults": faults(found),
    }


class Watcher:
    """Reads what a gateway uses: from its process, its metrics and its store."""

    def __init__(self, pid: int, admin: AdminClient, connect: Callable[[], Any], upstream: int) -> None:
        self.pid, self.admin, self._connect, self._upstream = pid, admin, connect, upstream

    def quiet(self) -> Sample:
        """A sample without the connections to the server behind, which are kept for the next call."""
        found = self.sample()
        kept = [
            one for one in psutil.Process(self.pid).net_connections() if one.raddr[1:] == (self._upstream,)
        ]
        return replace(found, files=found.files - len(kept))

    def sample(self) -> Sample:
        """Files are counted before the metrics are asked for, which takes one."""
        files = len(os.listdir(f"/proc/{self.pid}/fd"))
        numbers = self._metrics()
        return Sample(
            at=time.monotonic(),
            rss_mb=memory_mib(self.pid) * 2**20 / 1e6,
            cpu_us=cpu_us(self.pid),
            files=files,
            tasks=numbers["agent_gate_tasks"],
            connections=numbers["agent_gate_connections"],
            sessions=numbers["agent_gate_mcp_sessions"],
            rows=self._rows(),
        )

    def _metrics(self) -> dict[str, int]:
        lines = (line.split() for line in self.admin.get("/metrics").splitlines())
        return {words[0]: int(float(words[1])) for words in lines if len(words) == 2}

    def _rows(self) -> dict[str, int]:
        connection = self._connect()
        try:
            counts = ((one.name, f"SELECT count(*) FROM {one.name}") for one in TABLES)
            return {name: connection.execute(sql).fetchone()[0] for name, sql in counts}
        finally:
            connection.close()


class Soak:
    """The agents, their calls, and the samples taken meanwhile."""

    def __init__(self, plan: Plan, gate: Gate, watcher: Watcher) -> None:
        self.plan, self.watcher, self.tally = plan, watcher, Tally()
        makers = [SocketAgent] * 7 + [SessionAgent] * 2 + [PlainAgent]
        self.kinds: list[list[ConnectedAgent]] = [[], [], []]
        for number in range(plan.agents):
            kind = makers[number % len(makers)]
            place = (SocketAgent, SessionAgent, PlainAgent).index(kind)
            self.kinds[place].append(kind(gate, token_of(number // len(makers) % CALLERS)))
        self.busy: set[int] = set()
        self.awake = self.slept_until = 0.0
        self.owed = 0
        """Large results that are still to be asked for; one whose agent is busy is the next one's."""

    async def run(self) -> Soaked:
        empty = await self._wait_until_still()
        await self._each(lambda agent: agent.connect())
        connected = await asyncio.to_thread(self.watcher.sample)
        say(
            f"{self.plan.agents} agents are connected: {connected.rss_mb:.0f} MB, before {empty.rss_mb:.0f} MB"
        )
        samples = await self._load()
        self.tally.lost = sum(agent.lost for kind in self.kinds for agent in kind)
        await self._each(lambda agent: agent.leave())
        left = await self._wait_until_gone(empty)
        verified = (await asyncio.to_thread(self._verify))["ok"]
        return Soaked(self.plan, self.tally, empty, connected, samples, left, verified)

    async def _each(self, work: Callable[[ConnectedAgent], Any]) -> None:
        """Some at a time: handshakes are most of the work."""
        limit = asyncio.Semaphore(AT_ONCE)

        async def one(agent: ConnectedAgent) -> None:
            async with limit:
                await work(agent)

        await asyncio.gather(*(one(agent) for kind in self.kinds for agent in kind))

    async def _load(self) -> list[Sample]:
        calls: set[asyncio.Task[None]] = set()
        sampling = asyncio.create_task(self._sample())
        began, number = time.monotonic(), 0
        self.awake = began
        while (now := self._wake_up() - began) < self.plan.seconds:
            number += self._miss(int(now * self.plan.rate) - number)
            while number <= now * self.plan.rate:
                task = asyncio.create_task(self._call(number))
                calls.add(task)
                task.add_done_callback(calls.discard)
                number += 1
            await asyncio.sleep(1 / self.plan.rate)
        await asyncio.gather(*calls)
        return await sampling

    def _wake_up(self) -> float:
        """The time, once per turn; a turn that comes late says for how long the agents got no CPU."""
        before, self.awake = self.awake, time.monotonic()
        self.tally.slept = max(self.tally.slept, self.awake - before)
        if self.awake - before >= SILENCE:
            self.slept_until = self.awake
        return self.awake

    def _miss(self, due: int) -> int:
        """How many of the calls that are due are given up: made all at once after a sleep, they would be another load."""
        missed = max(0, due - int(self.plan.rate * CATCH_UP))
        self.tally.late += missed
        return missed

    async def _sample(self) -> list[Sample]:
        ends, samples = time.monotonic() + self.plan.seconds, []
        while time.monotonic() < ends:
            await asyncio.sleep(min(self.plan.step, max(0.0, ends - time.monotonic())))
            samples.append(await asyncio.to_thread(self.watcher.sample))
            note(samples[-1], self.tally)
        return samples

    async def _call(self, number: int) -> None:
        kind = self.kinds[number % 3]
        agent = kind[number // 3 % len(kind)]
        self.owed += number % BIG_EVERY == BIG_EVERY // 2
        if id(agent) in self.busy:
            self.tally.late += 1
            return
        self.busy.add(id(agent))
        began = time.monotonic()
        try:
            await self._ask(agent, number)
            self.tally.seconds.append(time.monotonic() - began)
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            if self.slept_until >= began:
                self.tally.overslept += 1
            else:
                self.tally.fail(f"{type(agent).__name__}: {error!r}")
        finally:
            self.busy.discard(id(agent))

    async def _ask(self, agent: ConnectedAgent, number: int) -> None:
        big = self.owed > 0
        self.owed -= big
        text = f"hello {number:08d} soak"
        tool, arguments = ("http__big", {"kib": BIG_KIB}) if big else ("http__echo", {"text": text})
        answer = await agent.call(tool, arguments, number)
        if len(answer) < BIG_KIB << 10 if big else text.encode() not in answer:
            raise ValueError(f"a wrong answer of {len(answer)} bytes: {answer[:300]!r}")
        self.tally.calls += 1
        self.tally.big += big

    async def _wait_until_still(self) -> Sample:
        """The gateway as it is once it knows its server and has written that down."""
        before = None
        while True:
            now = await asyncio.to_thread(self.watcher.quiet)
            if now.rows["pins"] and before is not None and now.rows == before.rows:
                return now
            before = now
            await asyncio.sleep(0.3)

    async def _wait_until_gone(self, empty: Sample) -> Sample:
        """The row of the last outcome rides on the next commit, so rows are waited for as everything else is."""
        ends = time.monotonic() + PATIENCE
        while True:
            left = await asyncio.to_thread(self.watcher.quiet)
            if not any(leftovers(self.tally, empty, left)) or time.monotonic() > ends:
                return left
            await asyncio.sleep(0.2)

    def _verify(self) -> dict[str, Any]:
        found: dict[str, Any] = self.watcher.admin.request("GET", "/api/audit/verify", timeout=600)
        return found


def token_of(caller: int) -> str:
    return f"{TOKEN}-{caller}"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def note(sample: Sample, tally: Tally) -> None:
    rows = sum(sample.rows.values())
    say(
        f"{time.strftime('%H:%M:%S')} {sample.rss_mb:.1f} MB, {sample.files} files, {sample.tasks} tasks, "
        f"{sample.connections} connections, {rows} rows, {tally.calls} calls, {tally.late} late, "
        f"{tally.overslept} overslept, {len(tally.errors)} failed, load {os.getloadavg()[0]:.0f}, slept {tally.slept:.1f} s"
        + (f" ({tally.errors[-1]})" if tally.errors else "")
    )


def make_room(agents: int) -> None:
    """Every agent is an open file here and one in the gateway, which keeps a quarter of its limit for other things."""
    needed = agents * 4 // 3 + 500
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        sys.exit(
            f"{agents} agents need {needed} open files, and this shell allows {hard}: raise it (ulimit -Hn {needed}, as "
            "root), or take fewer with --agents"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))


def soak(plan: Plan, cores: set[int]) -> Soaked:
    """Start everything, let the agents come, call and go, and end everything."""
    make_room(plan.agents)
    with ExitStack() as life:
        folder = Path(life.enter_context(tempfile.TemporaryDirectory(prefix="agent-gate-soak-")))
        upstream = life.enter_context(upstream_server(cores))
        url = life.enter_context(postgres_server(cores)) if plan.store == "postgres" else None
        limited = {"max_requests_per_minute": 0}
        more: dict[str, Any] = {
            "gateway": {"port": 0},
            "agents": {f"agent-{n}": {"token": token_of(n), "rate_limit": limited} for n in range(CALLERS)},
            "limits": {"max_connections": max(64, plan.agents * 5 // 4)},
            **({"storage": {"type": "postgres", "url": url}} if url else {}),
        }
        config = write_config(folder / "gateway", {"http": remote(upstream)}, None, more)
        log = CACHE / "soak-gateway.log"
        child = life.enter_context(running([AGENT_GATE, "serve", "--config", config], cores, log))
        announced = wait_for_line(log)
        port = int(announced["url"].rpartition(":")[2])
        gate = Gate(port, trust(config.parent))
        watcher = Watcher(
            child.pid, AdminClient(config.parent / announced["socket"]), opener(url, config.parent), upstream
        )
        return uvloop.run(Soak(plan, gate, watcher).run())


def wait_for_line(log: Path) -> dict[str, Any]:
    """What the gateway says when it is up."""
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        for line in log.read_text().splitlines():
            if line.startswith('{"url"'):
                found: dict[str, Any] = json.loads(line)
                return found
        time.sleep(0.05)
    raise SystemExit(f"The gateway did not start: {log.read_text()[:2000]}")


def trust(folder: Path) -> ssl.SSLContext:
    """Trust what the gateway signed its certificate with."""
    return ssl.create_default_context(cafile=folder / "data" / "tls" / "gateway.crt")


def opener(url: str | None, folder: Path) -> Callable[[], Any]:
    """How to look into the store beside the gateway."""
    if url is not None:
        return lambda: psycopg.connect(url)
    file = f"file:{folder / 'data' / 'agent-gate.db'}?mode=ro"
    return lambda: sqlite3.connect(file, uri=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=Plan.minutes)
    parser.add_argument("--agents", type=int, default=Plan.agents)
    parser.add_argument("--rate", type=float, default=Plan.rate, help="calls a second")
    parser.add_argument("--store", choices=["sqlite", "postgres"], default=Plan.store)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))  # and end what was started
    found = report(soak(Plan(**vars(given)), set(CORES)))
    print(json.dumps(found, indent=2))
    sys.exit(1 if found["faults"] else 0)


if __name__ == "__main__":
    main()
