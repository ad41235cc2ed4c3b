"""Processes and what they cost: compiled helpers, pinned children, CPU time and memory of a process tree."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
CACHE = HERE.parent / ".cache" / "bench"
CORES = sorted(os.sched_getaffinity(0))
SERVED, LOADED = {CORES[0]}, {CORES[-1]}
"""The program that is measured has one core for itself; load and upstream have another, where there is one."""


def built(name: str) -> Path:
    """The helper `name`, compiled anew when its source changed."""
    source, program = HERE / f"{name}.c", CACHE / name
    CACHE.mkdir(parents=True, exist_ok=True)
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        if shutil.which("gcc") is None:
            sys.exit("The load generator and the upstream are C programs: install gcc, then run this again.")
        subprocess.run(["gcc", "-O2", "-o", str(program), str(source)], check=True)
    return program


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextmanager
def running(
    command: Sequence[object], cores: set[int], log: Path, env: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A child on `cores`, ended with everything it started."""
    with log.open("wb") as out:
        child = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            env={**os.environ, **(env or {})},
        )
    os.sched_setaffinity(child.pid, cores)
    try:
        yield child
    finally:
        end(child)


def end(child: subprocess.Popen[bytes]) -> None:
    pids = tree(child.pid)
    child.send_signal(signal.SIGTERM)
    try:
        child.wait(8)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    for pid in pids[1:]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def tree(pid: int) -> list[int]:
    """A process and all its descendants."""
    found = [pid]
    for one in found:
        try:
            for task in os.listdir(f"/proc/{one}/task"):
                found += map(int, Path(f"/proc/{one}/task/{task}/children").read_text().split())
        except OSError:
            continue
    return found


def cpu_us(pid: int) -> float:
    """Microseconds of CPU that a process tree has used."""
    total = 0
    for one in tree(pid):
        try:
            for task in os.listdir(f"/proc/{one}/task"):
                total += int(Path(f"/proc/{one}/task/{task}/schedstat").read_text().split()[0])
        except OSError:
            continue
    return total / 1e3


def memory_mib(pid: int, field: str = "VmRSS") -> float:
    """Memory of one process; `VmHWM` is the most it ever had."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field):
            return round(int(line.split()[1]) / 1024, 1)
    return 0.0
