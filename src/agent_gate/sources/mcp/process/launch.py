"""Run as a program: start a server's program and guard it, so that nothing it starts outlives it or the gateway.

    python -I -S launch.py PIPE PROGRAM [ARGUMENT ...]

The guard is the reaper of everything below it (`PR_SET_CHILD_SUBREAPER`): a process that leaves its parent, its group
and its session is handed to the guard, and is ended by it. That happens when the server ends, and when the gateway's
end of PIPE closes, which the kernel does for a gateway that is killed. `SIGTERM` is passed on to the server.

It imports as little as it can, because one of it stays for each server.
"""

import ctypes
import os
import select
import signal
import sys

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36
LINUX = sys.platform == "linux"
KILLED = 128
WAKE = 64


def call_prctl(option: int, value: int) -> None:
    if LINUX:
        ctypes.CDLL(None).prctl(option, value)


def become_server(argv: list[str], guard: int) -> None:
    """Run the program in a session of its own, so that what it does to its group does not reach the guard."""
    os.setsid()
    call_prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard:
        os._exit(1)
    for name in "SIGPIPE", "SIGXFSZ", "SIGTERM", "SIGCHLD":
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execv(argv[0], argv)  # noqa: S606 -- the point of this program is to run another without a shell
    except OSError as error:
        os.write(2, f"cannot run {argv[0]}: {error.strerror}\n".encode())
    os._exit(1)


def parents() -> dict[int, int]:
    """The parent of every process that can be seen; none where the kernel does not tell."""
    found: dict[int, int] = {}
    try:
        entries = os.listdir("/proc")  # noqa: PTH208 -- pathlib would stay in memory for as long as the server
    except OSError:
        return found
    for process in filter(str.isdigit, entries):
        try:
            with open(f"/proc/{process}/stat", "rb") as stat:  # noqa: PTH123
                found[int(process)] = int(stat.read().rpartition(b")")[2].split()[1])
        except OSError:
            continue
    return found


def descendants() -> list[int]:
    known, found = parents(), [os.getpid()]
    for parent in found:
        found += [process for process, above in known.items() if above == parent]
    return found[1:]


def send(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except OSError:
        return


def end_all(server: int) -> None:
    """Kill everything below this process. What is stopped first cannot start more while the rest is found."""
    try:
        os.killpg(server, signal.SIGKILL)
    except OSError:
        pass
    stopped: set[int] = set()
    while new := [process for process in descendants() if process not in stopped]:
        for process in new:
            send(process, signal.SIGSTOP)
        stopped.update(new)
    while True:
        for process in descendants():
            send(process, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def reap(server: int) -> int | None:
    """Let go of every child that has ended; the server's exit code where it is among them."""
    code = None
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if not process:
            return code
        if process == server:
            ended = os.waitstatus_to_exitcode(status)
            code = ended if ended >= 0 else KILLED - ended


def watch(server: int, pipe: int, wake: int) -> int:
    """The server's exit code, when it has ended or the gateway wants it to."""
    while True:
        ready, _, _ = select.select([pipe, wake], [], [])
        if pipe in ready:
            return KILLED + signal.SIGKILL
        os.read(wake, WAKE)
        code = reap(server)
        if code is not None:
            return code


def let_go_of_streams() -> None:
    """The server's streams end with the server."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)


def main(pipe: int, argv: list[str]) -> None:
    os.set_inheritable(pipe, False)
    call_prctl(PR_SET_CHILD_SUBREAPER, 1)
    wake, waken = os.pipe()
    os.set_blocking(waken, False)
    signal.set_wakeup_fd(waken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in signal.SIGHUP, signal.SIGINT:
        signal.signal(number, signal.SIG_DFL)
    guard = os.getpid()
    server = os.fork()
    if server == 0:
        become_server(argv, guard)
    signal.signal(signal.SIGTERM, lambda *_: send(-server, signal.SIGTERM))
    for number in signal.SIGHUP, signal.SIGINT, signal.SIGQUIT:
        signal.signal(number, signal.SIG_IGN)
    call_prctl(PR_SET_DUMPABLE, 0)
    let_go_of_streams()
    code = watch(server, pipe, wake)
    end_all(server)
    os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
