"""What is measured: calls beside the limit and the SDK, lists, start, many upstreams, large results, endurance."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import product
from typing import Any

from bench.load import (
    HANDSHAKE,
    MODERN,
    Ask,
    drive,
    first_answer,
    initialize,
    measure,
    outcome,
    post,
)
from bench.machine import CORES, HERE, LOADED, cpu_us, memory_mib
from bench.subjects import (
    OTHERS,
    RAW,
    SDK,
    Peer,
    Subject,
    call_servers,
    gateway,
    paired_host,
    postgres_server,
    remote,
    token_desk,
    upstream_server,
)

Found = dict[str, Any]
KINDS = {
    "handshake, HTTP": ("http__echo", HANDSHAKE),
    "2026-07-28, HTTP": ("http__echo", MODERN),
    "handshake, stdio": ("child__echo", HANDSHAKE),
    "2026-07-28, stdio": ("child__echo", MODERN),
    "handshake, HTTP, record behind": ("behind__echo", HANDSHAKE),
    "2026-07-28, stdio, record behind": ("childbehind__echo", MODERN),
}
REST = "REST, http source"
STORED = (1, 16, 64)
"""Connections at which the stores are compared."""


def calls(connections: Sequence[int], seconds: float, rounds: int) -> Found:
    """CPU per governed call of every kind, in rounds with the limit and the SDK; medians of the rounds."""
    taken: dict[str, list[Mapping[int, Mapping[str, float]]]] = {}
    with upstream_server(LOADED) as upstream:
        for _ in range(rounds):
            taken.setdefault(RAW.name, []).append(peer(RAW, upstream, connections, seconds))
            for kind, found in governed(upstream, connections, seconds).items():
                taken.setdefault(kind, []).append(found)
            taken.setdefault(SDK.name, []).append(peer(SDK, upstream, connections, seconds))
    return {kind: medians(found) for kind, found in taken.items()}


def medians(rounds: Sequence[Mapping[int, Mapping[str, float]]]) -> dict[int, dict[str, float]]:
    return {
        connections: {
            name: statistics.median(one[connections][name] for one in rounds)
            for name in rounds[0][connections]
        }
        for connections in rounds[0]
    }


def peer(who: Peer, upstream: int, connections: Sequence[int], seconds: float) -> dict[int, dict[str, float]]:
    with who.started(upstream) as subject:
        ask = who.ask()
        first_answer(subject.port, ask)
        return {n: measure(subject.pid, subject.port, ask, n, seconds) for n in connections}


def governed(
    upstream: int, connections: Sequence[int], seconds: float
) -> dict[str, dict[int, dict[str, float]]]:
    found = {}
    with gateway(call_servers(upstream), upstream) as subject:
        for kind, ask in asks(subject).items():
            first_answer(subject.port, ask)
            found[kind] = {n: measure(subject.pid, subject.port, ask, n, seconds) for n in connections}
    return found


def asks(subject: Subject) -> dict[str, Ask]:
    """One request of each kind; those of the older era carry the session of a real client."""
    rest = Ask("/api/tools/api_echo", era="")
    first_answer(subject.port, rest)
    session = initialize(subject.port)
    found = {
        kind: Ask("/mcp", tool, era, session=session if era == HANDSHAKE else "")
        for kind, (tool, era) in KINDS.items()
    }
    return {**found, REST: rest}


def credentials(seconds: float, rounds: int) -> Found:
    """CPU per call with a header that stands in the file, and with a token that the gateway signed in for, in turns."""
    taken: dict[str, list[float]] = {"header": [], "token": []}
    with upstream_server(LOADED) as upstream, token_desk() as desk:
        signing = {
            "type": "client-credentials",
            "client_id": "bench",
            "client_secret": "b" * 32,
            "token_url": desk,
        }
        servers = {
            "header": remote(upstream, headers={"Authorization": "Bearer " + "h" * 40}),
            "token": remote(upstream, auth=signing),
        }
        with gateway(servers) as subject:
            for name in taken:
                first_answer(subject.port, Ask("/mcp", f"{name}__echo", MODERN))
            session = initialize(subject.port)
            for _ in range(rounds):
                for name, found in taken.items():
                    ask = Ask("/mcp", f"{name}__echo", session=session)
                    found.append(measure(subject.pid, subject.port, ask, 16, seconds)["cpu_us"])
    dearer = [token - header for header, token in zip(taken["header"], taken["token"], strict=True)]
    found = {f"{name}_us": statistics.median(each) for name, each in taken.items()}
    return {**found, "token_dearer_by_us": round(statistics.median(dearer), 1)}


def stores(seconds: float, rounds: int) -> Found:
    """The gateway's CPU for a governed call with its record in SQLite and in PostgreSQL, in turns; medians."""
    taken: dict[str, list[Mapping[int, Mapping[str, float]]]] = {"sqlite": [], "postgres": []}
    with upstream_server(LOADED) as upstream, postgres_server(LOADED) as url:
        storage = {"sqlite": {}, "postgres": {"storage": {"type": "postgres", "url": url}}}
        for _ in range(rounds):
            for name, more in storage.items():
                taken[name].append(stored(upstream, more, seconds))
    found = {name: medians(each) for name, each in taken.items()}
    return {
        f"{name}_{connections}": value
        for connections in STORED
        for name, value in (
            *((f"{store}_cpu_us", at[connections]["cpu_us"]) for store, at in found.items()),
            *((f"{store}_p50_ms", at[connections]["p50_ms"]) for store, at in found.items()),
            (
                "ratio",
                round(found["postgres"][connections]["cpu_us"] / found["sqlite"][connections]["cpu_us"], 2),
            ),
        )
    }


def stored(upstream: int, more: Mapping[str, Any], seconds: float) -> dict[int, dict[str, float]]:
    with gateway({"http": remote(upstream)}, more=more) as subject:
        ask = Ask("/mcp", "http__echo", MODERN)
        first_answer(subject.port, ask)
        return {n: measure(subject.pid, subject.port, ask, n, seconds) for n in STORED}


def workers(seconds: float, rounds: int) -> Found:
    """CPU per call of one process and of `--workers 2` on one PostgreSQL, in turns; medians.

    `halved` is one process with half the connections beside it with all of them: what smaller commits cost. `beside` is
    what is left of the ratio then: what two processes cost each other on the same cores. `busier` is the part of the work
    that the busier worker had."""
    taken: dict[int, list[Mapping[int, Mapping[str, float]]]] = {1: [], 2: []}
    with upstream_server(LOADED) as upstream, postgres_server(LOADED) as url:
        more = {"storage": {"type": "postgres", "url": url}}
        for _ in range(rounds):
            taken[1].append(worked(upstream, more, (8, 16, 32, 64), seconds))
            taken[2].append(worked(upstream, more, (16, 64), seconds, "--workers", "2"))
    one, two = medians(taken[1]), medians(taken[2])
    return {
        f"{name}_{connections}": value
        for connections in two
        for name, value in (
            ("one_cpu_us", one[connections]["cpu_us"]),
            ("two_cpu_us", two[connections]["cpu_us"]),
            ("ratio", round(two[connections]["cpu_us"] / one[connections]["cpu_us"], 2)),
            ("halved", round(one[connections // 2]["cpu_us"] / one[connections]["cpu_us"], 2)),
            ("beside", round(two[connections]["cpu_us"] / one[connections // 2]["cpu_us"], 2)),
            ("busier", two[connections]["busier"]),
            ("one_calls_per_second", one[connections]["calls_per_second"]),
            ("two_calls_per_second", two[connections]["calls_per_second"]),
        )
    }


def worked(
    upstream: int, more: Mapping[str, Any], connections: Sequence[int], seconds: float, *options: str
) -> dict[int, dict[str, float]]:
    with gateway({"http": remote(upstream)}, more=more, options=options, cores=set(CORES)) as subject:
        ask = Ask("/mcp", "http__echo", MODERN)
        first_answer(subject.port, ask)
        pids = announced(subject).get("workers", [subject.pid])
        found = {}
        for number in connections:
            before = [cpu_us(pid) for pid in pids]
            found[number] = measure(subject.pid, subject.port, ask, number, seconds)
            used = [cpu_us(pid) - was for pid, was in zip(pids, before, strict=True)]
            found[number]["busier"] = round(max(used) / sum(used), 2)
        return found


def announced(subject: Subject) -> dict[str, Any]:
    """What `serve` says once all its processes are up."""
    while True:
        for line in subject.log.read_text().splitlines():
            if line.startswith('{"url"'):
                said: dict[str, Any] = json.loads(line)
                return said
        time.sleep(0.05)


def several(seconds: float) -> Found:
    """Calls a second, and CPU of all gateways for each, with 1, 2 and 4 of them on one PostgreSQL and 64 connections."""
    found: Found = {}
    with upstream_server(LOADED) as upstream, postgres_server(LOADED) as url, ExitStack() as life:
        subjects = []
        for count in (1, 2, 4):
            while len(subjects) < count:
                name = f"gate-{len(subjects) + 1}"
                more = {"storage": {"type": "postgres", "url": url}, "gateway": {"id": name}}
                made = gateway({"http": remote(upstream)}, more=more, name=name, cores=set(CORES))
                subjects.append(life.enter_context(made))
            found |= together(subjects, seconds)
    return found


def together(subjects: Sequence[Subject], seconds: float) -> Found:
    ask, count = Ask("/mcp", "http__echo", MODERN), len(subjects)
    for subject in subjects:
        first_answer(subject.port, ask)
    before = sum(cpu_us(subject.pid) for subject in subjects)
    ended = [outcome(load) for load in [drive(one.port, ask, 64 // count, seconds) for one in subjects]]
    calls = sum(one["calls"] for one in ended)
    used = sum(cpu_us(subject.pid) for subject in subjects) - before
    return {
        f"gateways_{count}_calls_per_second": round(calls / max(one["seconds"] for one in ended)),
        f"gateways_{count}_cpu_us": round(used / calls, 1),
    }


def single(connections: Sequence[int], seconds: float) -> Found:
    """Calls a second of a server that runs on one of two gateways: made there, and made on the other one."""
    found: Found = {}
    ask = Ask("/mcp", "http__echo", MODERN)
    with upstream_server(LOADED) as upstream, postgres_server(LOADED) as url, ExitStack() as life:
        subjects = {}
        for name in ("holder", "elsewhere"):
            more = {"storage": {"type": "postgres", "url": url}, "gateway": {"id": name}}
            servers = {"http": {**remote(upstream), "single": True}}
            env = {"AGENT_GATE_SECRET": "a passphrase that both have"}
            made = gateway(servers, more=more, name=name, cores=set(CORES), env=env)
            subjects[name] = life.enter_context(made)
            first_answer(subjects[name].port, ask)
        for name, number in product(subjects, connections):
            before = sum(cpu_us(subject.pid) for subject in subjects.values())
            ended = outcome(drive(subjects[name].port, ask, number, seconds))
            used = sum(cpu_us(subject.pid) for subject in subjects.values()) - before
            found[f"{name}_{number}_calls_per_second"] = round(ended["calls"] / ended["seconds"])
            found[f"{name}_{number}_cpu_us"] = round(used / ended["calls"], 1)
    return found


def peers(connections: Sequence[int], seconds: float) -> Found:
    """The other programs that install here; the reason, where one does not."""
    found: Found = {}
    with upstream_server(LOADED) as upstream:
        for who in OTHERS:
            try:
                found[who.name] = peer(who, upstream, connections, seconds)
            except (OSError, subprocess.CalledProcessError, SystemExit) as error:
                found[who.name] = f"not measured: {str(error)[:200]}"
    return found


def hosts(seconds: float, rounds: int) -> Found:
    """The gateway's CPU for a call to a paired host over mTLS, beside the same call to a plain HTTP service."""
    asked = {"service": Ask("/api/tools/api_echo", era=""), "host": Ask("/api/tools/paired__echo", era="")}
    taken: dict[str, list[float]] = {name: [] for name in asked}
    with upstream_server(LOADED) as upstream, gateway({}, upstream) as subject, paired_host(subject):
        for ask in asked.values():
            first_answer(subject.port, ask)
        for _ in range(rounds):
            for name, ask in asked.items():
                taken[name].append(measure(subject.pid, subject.port, ask, 16, seconds)["cpu_us"])
    found = {name: statistics.median(values) for name, values in taken.items()}
    return {
        "service_cpu_us": found["service"],
        "mtls_host_cpu_us": found["host"],
        "ratio": round(found["host"] / found["service"], 2),
    }


def lists(seconds: float) -> Found:
    """`tools/list` of 1,000 tools over 20 upstreams, and the memory they take."""
    with upstream_server(LOADED) as upstream:
        servers = {f"s{i}": remote(upstream, f"/tools/50/u{i}/mcp") for i in range(20)}
        with gateway(servers) as subject:
            ask = Ask("/mcp", era=MODERN)
            first_answer(subject.port, ask, mark=b"s19__u19_record_0049")
            memory = memory_mib(subject.pid)
            found = measure(subject.pid, subject.port, ask, 1, seconds, "s19__u19_record_0049")
            return {
                "cpu_ms": round(found["cpu_us"] / 1000, 2),
                "p50_ms": found["p50_ms"],
                "memory_mib": memory,
            }


def start() -> Found:
    """A gateway without sources: how soon it is ready, and what it takes when idle."""
    with gateway({}) as subject:
        first_answer(subject.port, Ask("/mcp", era=MODERN), mark=b'"tools"')
        ready = time.monotonic() - subject.started
        time.sleep(1.0)
        before = cpu_us(subject.pid)
        time.sleep(2.0)
        idle = (cpu_us(subject.pid) - before) / 2e4
        return {
            "ready_s": round(ready, 2),
            "memory_mib": memory_mib(subject.pid),
            "idle_cpu_percent": round(idle, 2),
        }


def many(seconds: float) -> Found:
    """48 good upstreams beside one that hangs and one that flaps: their p99 without and with calls to those two."""
    with upstream_server(LOADED) as upstream:
        servers = {f"s{i}": remote(upstream, f"/tools/1/u{i}/mcp", timeout=5) for i in range(48)}
        bad = {"hang": remote(upstream, "/hang/mcp", timeout=2), "flap": remote(upstream, "/flap/mcp")}
        with gateway({**servers, **bad}) as subject:
            good = [Ask("/mcp", f"s{i}__u{i}_echo", MODERN) for i in (0, 13, 29, 47)]
            for ask in good:
                first_answer(subject.port, ask)
            alone, beside = [], []
            for _ in range(3):
                alone.append(worst(subject, good, seconds))
                with_trouble = [
                    drive(subject.port, Ask("/mcp", f"{name}__echo", MODERN), 4, seconds, "", rate=20)
                    for name in bad
                ]
                beside.append(worst(subject, good, seconds))
                for load in with_trouble:
                    load.communicate()
            return {
                "p99_ms_alone": min(alone),
                "p99_ms_beside": min(beside),
                "ratio": round(min(beside) / min(alone), 2),
            }


def worst(subject: Subject, good: Sequence[Ask], seconds: float) -> float:
    loads = [drive(subject.port, ask, 4, seconds) for ask in good]
    return max(float(outcome(load)["p99_ms"]) for load in loads)


def large() -> Found:
    """A result of nearly 64 MiB through the gateway: the most memory that takes."""
    with upstream_server(LOADED) as upstream, gateway({"http": remote(upstream)}) as subject:
        small = Ask("/mcp", "http__echo", MODERN)
        first_answer(subject.port, small)
        before = memory_mib(subject.pid)
        big = Ask("/mcp", "http__big", MODERN, {"kib": 65_000})
        sizes = []
        for _ in range(3):
            status, data, _ = post(subject.port, big.path, big.body.replace("@" * 8, "1"), big.headers)
            sizes.append(len(data) if status == 200 else status)
        return {
            "result_mib": round(min(sizes) / 2**20, 1),
            "memory_before_mib": before,
            "memory_most_mib": memory_mib(subject.pid, "VmHWM"),
            "memory_after_mib": memory_mib(subject.pid),
        }


def endurance(seconds: float, rate: float = 1000.0) -> Found:
    """Governed calls at a steady rate: every answer checked, memory and files at the beginning and at the end."""
    with upstream_server(LOADED) as upstream, gateway(call_servers(upstream), upstream) as subject:
        ask = Ask("/mcp", "http__echo", MODERN)
        first_answer(subject.port, ask)
        outcome(drive(subject.port, ask, 32, min(10.0, seconds / 4), rate=rate))
        before, files = memory_mib(subject.pid), open_files(subject.pid)
        found = outcome(drive(subject.port, ask, 32, seconds, rate=rate))
        return {
            "seconds": round(found["seconds"]),
            "calls": found["calls"],
            "calls_per_second": round(found["calls"] / found["seconds"]),
            "errors": found["bad"] + found["broken"],
            "p50_ms": found["p50_ms"],
            "p99_ms": found["p99_ms"],
            "memory_before_mib": before,
            "memory_after_mib": memory_mib(subject.pid),
            "files_before": files,
            "files_after": open_files(subject.pid),
        }


def parts() -> Found:
    """The listener, the pool and the store by themselves."""
    found = {}
    for script in ("net_echo.py", "store_rows.py"):
        command = [sys.executable, str(HERE / script)]
        found[script] = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    return found


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))
